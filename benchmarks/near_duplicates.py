"""Near duplicates: ours against datasketch and rensa, in quality and in time.

    pip install datasketch rensa
    python benchmarks/near_duplicates.py [DATA]

Texts are the sentences in the docstrings of numpy and scipy, or those of DATA/text/sentences.en.tsv.gz. A fifth of them
gets a planted near duplicate, in which characters are replaced as long as the Jaccard index of the character shingles
stays above a drawn target between 0.5 and 1. The truth is every pair at or above the threshold by the exact
index, computed for all pairs. All systems use 128 hashes and the same shingles; ours looks up bands as it always does,
the libraries once with the bands that they choose for the threshold and once with ours. The candidates of a library are
verified by our exact index, as ours are; precision is also given without. Times are CPU seconds, the median of
interleaved rounds, as a ratio to ours.
"""

import argparse
import random
import time
from collections.abc import Callable, Sequence
from functools import partial
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from statistics import median
from string import ascii_lowercase

import numpy as np
import pyarrow as pa
from scipy.sparse import csr_array

from sentloom.data import Dataset, read
from sentloom.data.corpus.opening import open_data
from sentloom.data.hygiene.near_duplicates import HASHES, SHINGLE, banding, jaccard, similar_pairs

Pairs = set[tuple[int, int]]
ROUNDS, VERIFIED, BLOCK = 3, 1 << 11, 500
EDGES = (0.0, 0.05, 0.1, 1.0)  # of the index above the threshold, for recall by similarity


def main() -> None:
    """Print a line per system."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "data", type=Path, nargs="?", help="a data folder; by default the docstrings of numpy and scipy"
    )
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--threshold", type=float, default=0.8)
    chosen = parser.parse_args()
    texts = planted(sentences(chosen.data)[: chosen.rows])
    truth = exact_pairs(texts, chosen.threshold)
    dataset = read(texts)
    bands = banding(chosen.threshold)
    systems: dict[str, Callable[[], np.ndarray]] = {"ours": partial(ours, dataset, chosen.threshold)}
    for name, find in (("datasketch", datasketch_pairs), ("rensa", rensa_pairs)):
        if find_spec(name) is None:
            print(f"{name} is not installed and left out")
            continue
        systems[f"{name}, its bands"] = partial(find, texts, chosen.threshold, None)
        systems[f"{name}, our bands"] = partial(find, texts, chosen.threshold, bands)
    print(f"{len(texts):,} texts, {len(truth):,} pairs at {chosen.threshold} or above; our bands are {bands}")
    report(texts, truth, chosen.threshold, systems)


def report(
    texts: Sequence[str], truth: dict[tuple[int, int], float], threshold: float, systems: dict[str, Callable]
) -> None:
    """Run all systems in turn, several times, and print what they found."""
    seconds: dict[str, list[float]] = {name: [] for name in systems}
    found: dict[str, tuple[Pairs, Pairs]] = {}
    for _ in range(ROUNDS):
        for name, find in systems.items():
            start = time.process_time()
            candidates = find()
            kept = candidates if name == "ours" else verified(texts, candidates, threshold)
            seconds[name].append(time.process_time() - start)
            found[name] = as_set(candidates), as_set(kept)
    base = median(seconds["ours"])
    for name, (candidates, kept) in found.items():
        right = kept & truth.keys()
        recalls = [share(kept, truth, threshold + low, threshold + high) for low, high in pairwise(EDGES)]
        print(
            f"{name:22} recall {len(right) / len(truth):.2%} ({', '.join(recalls)}), "
            f"precision {len(right) / len(kept):.2%}, of candidates {len(right) / len(candidates):.2%}, "
            f"CPU {median(seconds[name]):.1f} s, {median(seconds[name]) / base:.1f} times ours"
        )


def share(found: Pairs, truth: dict[tuple[int, int], float], low: float, high: float) -> str:
    """How many of the pairs in a range of the index were found."""
    pairs = [pair for pair, index in truth.items() if low <= index < high]
    return f"{low:.2f}+: {len(found.intersection(pairs)) / max(1, len(pairs)):.2%}"


# --- the texts and the truth ---


def sentences(folder: Path | None) -> list[str]:
    """Distinct sentences in a fixed random order."""
    data = read(folder / "text/sentences.en.tsv.gz") if folder else open_data("embedded:numpy,scipy")
    texts = sorted({" ".join(text.split()) for text in data.column("text").to_pylist()})
    random.Random(0).shuffle(texts)
    return texts


def planted(texts: list[str]) -> list[str]:
    """Add an edited copy of every fifth text, and shuffle."""
    draw = random.Random(1)
    copies = [edited(text, draw.uniform(0.5, 1), draw) for text in texts[::5]]
    both = list(dict.fromkeys([*texts, *copies]))
    draw.shuffle(both)
    return both


def edited(text: str, target: float, draw: random.Random) -> str:
    """Replace characters until the index with the original would fall below the target."""
    original, now = shingle_set(text), text
    for place in draw.sample(range(len(text)), len(text)):
        changed = f"{now[:place]}{draw.choice(ascii_lowercase)}{now[place + 1 :]}"
        other = shingle_set(changed)
        if len(original & other) / len(original | other) < target:
            break
        now = changed
    return now


def shingle_set(text: str) -> set[str]:
    """As ours: five characters in lower case."""
    padded = text.lower().ljust(SHINGLE, "\0")
    return {padded[start : start + SHINGLE] for start in range(len(padded) - SHINGLE + 1)}


def exact_pairs(texts: Sequence[str], threshold: float) -> dict[tuple[int, int], float]:
    """All pairs that reach the threshold, with their index, from the counts of shared shingles of all pairs."""
    numbers: dict[str, int] = {}
    rows = [[numbers.setdefault(one, len(numbers)) for one in shingle_set(text)] for text in texts]
    sizes = np.array([*map(len, rows)])
    starts = np.cumsum([0, *sizes])
    table = csr_array((np.ones(starts[-1], np.int32), np.concatenate(rows), starts), shape=(len(rows), len(numbers)))
    columns = table.T.tocsr()
    found = {}
    for start in range(0, len(rows), BLOCK):
        shared = (table[start : start + BLOCK] @ columns).tocoo()
        one, two = shared.coords[0] + start, shared.coords[1]
        index = shared.data / (sizes[one] + sizes[two] - shared.data)
        right = (index >= threshold) & (one < two)
        found |= {
            (a, b): j for a, b, j in zip(one[right].tolist(), two[right].tolist(), index[right].tolist(), strict=True)
        }
    return found


# --- the systems: pairs of rows, the lower one first ---


def ours(dataset: Dataset, threshold: float) -> np.ndarray:
    return similar_pairs(dataset, threshold)


def datasketch_pairs(texts: Sequence[str], threshold: float, bands: tuple[int, int] | None) -> np.ndarray:
    from datasketch import MinHash, MinHashLSH

    index = MinHashLSH(threshold=threshold, num_perm=HASHES, params=bands)
    tokens = ([one.encode() for one in shingle_set(text)] for text in texts)
    pairs = []
    for row, signature in enumerate(MinHash.bulk(tokens, num_perm=HASHES, seed=1)):
        pairs += [(earlier, row) for earlier in index.query(signature)]
        index.insert(row, signature)
    return np.array(pairs, np.int64).reshape(-1, 2)


def rensa_pairs(texts: Sequence[str], threshold: float, bands: tuple[int, int] | None) -> np.ndarray:
    from rensa import RMinHash, RMinHashLSH

    many = bands[0] if bands else 16  # as in rensa's examples: it does not derive them from the threshold
    index = RMinHashLSH(threshold=threshold, num_perm=many * (HASHES // many), num_bands=many)
    signatures = RMinHash.from_token_sets([[*shingle_set(text)] for text in texts], many * (HASHES // many), 1)
    index.insert_many(signatures)
    pairs = [(row, one) for row, found in enumerate(index.query_all(signatures)) for one in found if row < one]
    return np.array(pairs, np.int64).reshape(-1, 2)


def verified(texts: Sequence[str], pairs: np.ndarray, threshold: float) -> np.ndarray:
    """The candidates that reach the threshold, by our exact index."""
    array = pa.array(texts, pa.large_string())
    kept = [pairs[:0]]
    for start in range(0, len(pairs), VERIFIED):
        part = pairs[start : start + VERIFIED]
        kept.append(part[jaccard(array.take(part[:, 0]), array.take(part[:, 1])) >= threshold])
    return np.concatenate(kept)


def as_set(pairs: np.ndarray) -> Pairs:
    return {(min(pair), max(pair)) for pair in pairs.tolist()}


if __name__ == "__main__":
    main()
