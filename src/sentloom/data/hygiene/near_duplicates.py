"""Find near duplicates: banded MinHash signatures of character shingles give candidates, verified by exact Jaccard.

Two rows are near duplicates if the Jaccard index of their shingle sets reaches the threshold in every text column, and
if label and score are equal. Case is ignored. A shingle is five characters, so scripts without spaces work too.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from operator import itemgetter

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sentloom.data.columns import Texts, as_text, hashes, joined, walk
from sentloom.data.dataset import Dataset, scratch_table, take_rows
from sentloom.data.shapes import COLUMNS, text_columns
from sentloom.errors import InputError

SHINGLE = 5  # characters
LOWEST_THRESHOLD = 0.5  # below it most sentences of similar style are candidates, and the search is slow
RECALL = 0.999  # for a pair exactly at the threshold
HASHES = 128  # per signature
SIGNED_ROWS = 1 << 10  # sentences whose shingles fit in the processor's cache
VERIFIED_PAIRS = 1 << 11
WINDOW = 8  # candidates per row in one bucket
ODD = np.uint64(0x9E3779B97F4A7C15)  # 2^64 over the golden ratio: spreads small numbers


def check_threshold(threshold: float) -> None:
    """Refuse a threshold outside the supported range."""
    if not LOWEST_THRESHOLD <= threshold <= 1:
        raise InputError(
            "near duplicates, threshold",
            f"{threshold} is out of range",
            f"a Jaccard index between {LOWEST_THRESHOLD} and 1",
            "try 0.8, at which about one word in fifteen differs",
        )


def first_of_group(dataset: Dataset, threshold: float, seed: int = 0) -> np.ndarray:
    """Return for each row the first row of its group, the connected component of near duplicates: [rows]."""
    return connect(len(dataset), similar_pairs(dataset, threshold, seed))


def similar_pairs(dataset: Dataset, threshold: float, seed: int = 0) -> np.ndarray:
    """Return the pairs of rows that are near duplicates, as far as they were found: [pairs, 2], the lower row first."""
    check_threshold(threshold)
    if len(dataset) < 2:
        return np.empty((0, 2), np.int64)
    bands, rows = banding(threshold)
    table = scratch_table(_schema(bands), _signed(dataset, bands, rows, seed))
    sketches = [column.to_numpy() for column in table.columns[bands:]]
    pairs = candidate_pairs(table.columns[:bands], sketches, most_different_bits(threshold))
    return pairs[_similar(dataset, pairs, threshold)]


def leaders(dataset: Dataset, threshold: float) -> np.ndarray:
    """Return for each row the first row that it nearly repeats and that repeats no earlier one itself: [rows]."""
    return led(len(dataset), similar_pairs(dataset, threshold), lambda pairs: _similar(dataset, pairs, threshold))


def led(size: int, pairs: np.ndarray, similar: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """Return for each row the first row that it is similar to and that has no earlier leader itself: [rows].

    Unlike connected components (`connect`), these do not chain: every member is similar to its leader. A row may have
    been compared with few of those in its group, so the leaders of these are compared with it as well.
    """
    while True:
        leader = _leaders(size, pairs)
        alone = leader[pairs[:, 1]] == pairs[:, 1]  # near another row, but not near a leader that it was compared with
        asked = np.unique(np.sort(np.column_stack([leader[pairs[alone, 0]], pairs[alone, 1]])), axis=0)
        asked = asked[~_among_pairs(asked, pairs)]
        fresh = asked[similar(asked)]
        if not len(fresh):
            return leader
        pairs = np.concatenate([pairs, fresh])


def _leaders(size: int, pairs: np.ndarray) -> np.ndarray:
    leader = np.arange(size)
    for lower, higher in pairs[np.lexsort((pairs[:, 0], pairs[:, 1]))].tolist():
        if leader[lower] == lower and leader[higher] == higher:
            leader[higher] = lower
    return leader


def _among_pairs(asked: np.ndarray, pairs: np.ndarray) -> np.ndarray:
    """Return which pairs are known already."""
    width = 1 + int(pairs.max(initial=0))
    return np.isin(asked @ [width, 1], pairs @ [width, 1])


def coordinated_sample(dataset: Dataset, size: int, seed: int = 0) -> np.ndarray:
    """Sample about `size` rows (at most twice as many), in order, keeping near duplicates together.

    A plain random sample would separate nearly all of them. Here a row is sampled by its smallest shingle hash, which
    two rows share with a probability equal to their Jaccard index.
    """
    if len(dataset) <= size:
        return np.arange(len(dataset))
    permutation = _permutations(1, seed)
    least = [_row_signatures(batch, *permutation)[0] for _, batch in walk(dataset, text_columns(dataset.shape))]
    draw = mix(np.concatenate(least).astype(np.uint64))
    return np.flatnonzero(draw < np.uint64(size / len(dataset) * 2**64))[: 2 * size]


def banding(threshold: float) -> tuple[int, int]:
    """Return the number of bands and of hashes per band: as many hashes (fewer candidates) as RECALL allows."""
    choices = [(_bands_needed(threshold**rows), rows) for rows in range(1, HASHES + 1)]
    return max((choice for choice in choices if math.prod(choice) <= HASHES), key=itemgetter(1))


def _bands_needed(shared: float) -> int:
    """Return how many bands find a pair with probability RECALL if one band finds it with probability `shared`."""
    return 1 if shared == 1 else math.ceil(math.log1p(-RECALL) / math.log1p(-shared))


def mix(values: np.ndarray) -> np.ndarray:
    """Mix the bits of 64-bit values in place (the finaliser of splitmix64)."""
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        values ^= values >> np.uint64(shift)
        values *= np.uint64(factor)
    values ^= values >> np.uint64(31)
    return values


def shingles(texts: Texts) -> tuple[np.ndarray, np.ndarray]:
    """Hash each shingle [shingles] and return where each text's shingles start [texts]; short texts are padded."""
    padded = pc.utf8_rpad(pc.utf8_lower(texts), width=SHINGLE, padding="\0")
    points = np.frombuffer("".join(padded.to_pylist()).encode("utf-32-le"), np.uint32).astype(np.uint64)
    windows = max(len(points) - SHINGLE + 1, 0)
    values = np.zeros(windows, np.uint64)
    for place in range(SHINGLE):  # a polynomial in ODD, modulo 2^64
        values *= ODD
        values += points[place : place + windows]
    lengths = pc.utf8_length(padded).to_numpy()
    ends = np.cumsum(lengths)
    inside = np.ones(len(points), bool)  # windows that do not extend into the next text
    for place in range(1, SHINGLE):
        inside[ends - place] = False
    return mix(values[inside[:windows]]), ends - lengths - np.arange(len(texts)) * (SHINGLE - 1)


def signatures(values: np.ndarray, starts: np.ndarray, factors: np.ndarray, terms: np.ndarray) -> np.ndarray:
    """Smallest hash of each text under each permutation x -> factor * x + term modulo 2^32: [permutations, texts]."""
    short = (values >> np.uint64(32)).astype(np.uint32)
    permuted = np.empty_like(short)
    least = np.empty((len(factors), len(starts)), np.uint32)
    for number, (factor, term) in enumerate(zip(factors, terms, strict=True)):
        np.multiply(short, factor, out=permuted)
        permuted += term
        np.minimum.reduceat(permuted, starts, out=least[number])
    return least


def _permutations(count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    factors, terms = np.random.default_rng(seed).integers(0, 1 << 32, (2, count), np.uint32)
    return factors | np.uint32(1), terms  # an odd factor gives a permutation


def _signed(dataset: Dataset, bands: int, rows: int, seed: int) -> Iterator[pa.RecordBatch]:
    """Yield for each row one number per band, of which near duplicates probably share one, and its sketch."""
    factors, terms = _permutations(HASHES, seed)
    for _, batch in walk(dataset, text_columns(dataset.shape)):
        for start in range(0, batch.num_rows, SIGNED_ROWS):
            least = _row_signatures(batch.slice(start, SIGNED_ROWS), factors, terms)
            numbers = np.zeros((bands, least.shape[1]), np.uint64)
            for row in range(rows):
                numbers = numbers * ODD + least[row * bands : (row + 1) * bands]
            yield pa.record_batch([pa.array(column) for column in (*numbers, *sketch(least))], schema=_schema(bands))


def _schema(bands: int) -> pa.Schema:
    names = [*(f"band {number}" for number in range(bands)), *(f"sketch {number}" for number in range(HASHES // 64))]
    return pa.schema([(name, pa.uint64()) for name in names])


def sketch(least: np.ndarray) -> np.ndarray:
    """Keep one bit of each hash of a signature: [permutations, texts] -> [permutations / 64, texts]."""
    packed = np.packbits((least & np.uint32(1)).astype(bool), axis=0)
    return np.ascontiguousarray(packed.T).view(np.uint64).T


def most_different_bits(threshold: float) -> float:
    """Return an upper bound on how many sketch bits of two texts at the threshold differ (four standard deviations).

    A bit differs in half of the cases in which the hash differs.
    """
    differing = (1 - threshold) / 2
    return HASHES * differing + 4 * math.sqrt(HASHES * differing * (1 - differing))


def _row_signatures(batch: pa.RecordBatch, factors: np.ndarray, terms: np.ndarray) -> np.ndarray:
    """Return signatures of whole rows, with distinct shingles for each column: [permutations, rows].

    If two rows reach the threshold in every column, they also reach it in the union, so no candidate is lost.
    """
    least = []
    for number, column in enumerate(batch.columns):
        values, starts = shingles(as_text(column))
        least.append(signatures(mix(values + np.uint64(number)), starts, factors, terms))
    return np.asarray(np.minimum.reduce(least))


def candidate_pairs(bands: Sequence[pa.ChunkedArray], sketches: Sequence[np.ndarray], most_bits: float) -> np.ndarray:
    """Return distinct pairs of rows with a common band and similar sketches: [pairs, 2], the lower row first."""
    pairs = np.empty(0, np.uint64)
    for number, band in enumerate(bands):  # only two bands are in memory at a time
        left, right = neighbours(band.to_numpy(), bands[(number + 1) % len(bands)].to_numpy())
        bits = sum(np.bitwise_count(part[left] ^ part[right]) for part in sketches)
        left, right = left[bits <= most_bits].astype(np.uint64), right[bits <= most_bits].astype(np.uint64)
        pairs = np.union1d(pairs, np.minimum(left, right) << np.uint64(32) | np.maximum(left, right))
    return np.stack([pairs >> np.uint64(32), pairs & np.uint64(0xFFFFFFFF)], axis=1).astype(np.int64)


def neighbours(band: np.ndarray, following: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return pairs of rows in the same bucket of a band.

    A large bucket has too many pairs, so each row is paired with the WINDOW rows before it in its bucket, which is
    sorted by the next band: rows that share two bands are adjacent.
    """
    order = np.argsort(band)
    equal = band[order[1:]] == band[order[:-1]]
    rows = order[np.append(equal, False) | np.append(False, equal)]
    rows = rows[np.lexsort((rows, following[rows], band[rows]))]
    pairs = [(rows[:0], rows[:0])]
    for step in range(1, min(WINDOW, len(rows) - 1) + 1):
        shared = band[rows[step:]] == band[rows[:-step]]
        pairs.append((rows[:-step][shared], rows[step:][shared]))
    left, right = zip(*pairs, strict=True)
    return np.concatenate(left), np.concatenate(right)


def _similar(dataset: Dataset, pairs: np.ndarray, threshold: float) -> np.ndarray:
    """Return which candidate pairs are near duplicates, by their texts."""
    names = text_columns(dataset.shape)
    others = tuple(name for name in COLUMNS[dataset.shape] if name not in names)
    table = dataset.table.select([*names, *others])
    similar = np.ones(len(pairs), bool)
    for start in range(0, len(pairs), VERIFIED_PAIRS):
        part = slice(start, start + VERIFIED_PAIRS)
        left, right = (_batch(take_rows(table, rows)) for rows in pairs[part].T)
        for name in names:
            similar[part] &= jaccard(as_text(left.column(name)), as_text(right.column(name))) >= threshold
        if others:
            similar[part] &= hashes(joined(left, others)) == hashes(joined(right, others))
    return similar


def _batch(table: pa.Table) -> pa.RecordBatch:
    return table.combine_chunks().to_batches()[0]


def jaccard(left: Texts, right: Texts) -> np.ndarray:
    """Return the Jaccard index of the shingle sets of each pair of texts: [texts]."""
    (left_set, left_owner), (right_set, right_owner) = _shingle_sets(left), _shingle_sets(right)
    shared = np.bincount(left_owner[np.isin(left_set, right_set, assume_unique=True)], minlength=len(left))
    sizes = np.bincount(left_owner, minlength=len(left)) + np.bincount(right_owner, minlength=len(left))
    return shared / (sizes - shared)


def _shingle_sets(texts: Texts) -> tuple[np.ndarray, np.ndarray]:
    """Return each text's distinct shingles, made unique across texts as well, and the text that each belongs to."""
    values, starts = shingles(texts)
    owner = np.repeat(np.arange(len(texts)), np.diff(starts, append=len(values)))
    distinct, first = np.unique(mix(values ^ (owner.astype(np.uint64) * ODD)), return_index=True)
    return distinct, owner[first]


def connect(size: int, pairs: np.ndarray) -> np.ndarray:
    """Return the first member of each node's connected component, with the pairs as edges: [size]."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    edges = coo_array((np.ones(len(pairs), bool), tuple(pairs.T)), shape=(size, size))
    _, component = connected_components(edges, directed=False)
    _, first = np.unique(component, return_index=True)
    return np.asarray(first[component])
