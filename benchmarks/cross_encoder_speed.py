"""Scores of pairs: sentloom's packed pass beside `CrossEncoder.predict` of sentence-transformers, interleaved.

    python -m benchmarks.cross_encoder_speed DATA [--pairs 160] [--rounds 5]

DATA has qa/qa_pairs.en.tsv.gz. Both run the catalogue's `reranker` in fp32 on the same pairs, in alternating order: a
round is one call each, and the ratio is the median over the rounds. Every query has pairs of all lengths, as results
of a search have.
"""

import argparse
import gzip
import time
from pathlib import Path
from statistics import median

import numpy as np
from sentence_transformers import CrossEncoder as Peer

from sentloom.encoder.locate import locate
from sentloom.search.cross_encoder import CrossEncoder

BATCH = 32  # the peer's default


def read_pairs(data: Path, count: int) -> list[tuple[str, str]]:
    """Queries with answers of other questions, of several sets."""
    with gzip.open(data / "qa" / "qa_pairs.en.tsv.gz", "rt", encoding="utf-8") as file:
        rows = [line.rstrip("\n").split("\t") for line in file][1:]
    chosen = np.random.default_rng(0).permutation(len(rows))[: 2 * count].tolist()
    return [(rows[first][0], rows[second][1]) for first, second in zip(chosen[:count], chosen[count:], strict=True)]


def main() -> None:
    """Print the seconds of both, the ratio, and how far their scores are apart."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--pairs", type=int, default=160)
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    pairs = read_pairs(given.data, given.pairs)
    ours, peer = CrossEncoder.load("reranker"), Peer(str(locate("reranker")), device="cpu")
    calls = {
        "sentloom": lambda: ours.score(pairs),
        "predict": lambda: peer.predict(pairs, batch_size=BATCH, activation_fn=None, show_progress_bar=False),
    }
    scores = {name: np.asarray(call()) for name, call in calls.items()}  # also warms up
    seconds: dict[str, list[float]] = {name: [] for name in calls}
    for number in range(given.rounds):
        for name in sorted(calls, reverse=bool(number % 2)):
            began = time.perf_counter()
            calls[name]()
            seconds[name].append(time.perf_counter() - began)
    ratios = [slow / fast for slow, fast in zip(seconds["predict"], seconds["sentloom"], strict=True)]
    for name, taken in seconds.items():
        print(f"{name}: {given.pairs / median(taken):.0f} pairs/s")
    print(f"ratio {median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f} in {given.rounds} rounds)")
    rank = np.corrcoef(*(np.argsort(np.argsort(own)) for own in scores.values()))[0, 1]
    print(f"rank correlation of the scores {rank:.6f}")


if __name__ == "__main__":
    main()
