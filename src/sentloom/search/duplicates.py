"""Duplicates: groups of texts whose vectors have at least some cosine with that of their representative.

Every text is compared with its nearest others: with all of them if there are few, otherwise with those that faiss finds
among compressed vectors, whose cosines are then computed exactly. The vectors may be a memory map: only blocks of them
are in memory, besides the compressed ones (a byte for each number). Groups do not chain: each member is
similar to the representative itself, which is the text with the most similar ones.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sentloom.data.hygiene.near_duplicates import led
from sentloom.errors import MissingPart
from sentloom.progress import progress
from sentloom.search.nearest import top_k
from sentloom.search.vectors import Vectors, normalised

NEAREST = 24  # others that a text is compared with
EXACT = 20_000  # texts that are compared with all others
ADDED = 1 << 15  # vectors that are compressed at a time
ASKED = 1 << 9  # texts whose candidates are in memory
SEARCHED = 8  # cells
LEARNED_FROM = 48  # vectors for each cell
LOST = 0.02  # of a cosine, at most, in compressed vectors
SAMPLE = 500  # texts that are compared with all others to see what is missed
SEED = 0

Places = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Groups:
    """For each text its representative, which may be itself, and the cosine with it."""

    representatives: Places
    cosines: npt.NDArray[np.float32]
    recall: float | None  # share of the near pairs of a sample that was found; None: everything was compared


def find_groups(vectors: Vectors, threshold: float, *, exact: int = EXACT) -> Groups:
    """Group vectors with at least this cosine with their representative."""
    approximate = len(vectors) > exact
    pairs = _pairs(_approximate(vectors, threshold) if approximate else _exact(vectors), threshold)
    order = np.argsort(-np.bincount(pairs.ravel(), minlength=len(vectors)), kind="stable")
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))  # texts with the most similar ones come first, and lead
    leader = led(len(vectors), np.sort(rank[pairs], axis=1), lambda asked: _are_near(vectors, order[asked], threshold))
    representatives = order[leader[rank]]
    recall = _recall(vectors, pairs, threshold) if approximate else None
    return Groups(representatives, cosines_of(vectors, np.arange(len(vectors)), representatives), recall)


Found = Iterator[tuple[Places, Places, npt.NDArray[np.float32]]]  # rows (n,), their nearest (n, k), and cosines (n, k)


def _pairs(found: Found, threshold: float) -> Places:
    """The distinct pairs of rows from the threshold on: (pairs, 2), the lower row first."""
    parts = [np.empty((0, 2), np.int64)]
    for rows, others, cosines in found:
        near = (cosines >= threshold) & (others >= 0) & (others != rows[:, None])
        at, place = np.nonzero(near)
        parts.append(np.sort(np.column_stack([rows[at], others[at, place]]), axis=1))
    return np.unique(np.concatenate(parts), axis=0)


def _exact(vectors: Vectors) -> Found:
    for start in range(0, len(vectors), ADDED):
        rows = np.arange(start, min(start + ADDED, len(vectors)))
        yield (rows, *top_k(vectors[rows], vectors, NEAREST + 1))


def _approximate(vectors: Vectors, threshold: float) -> Found:
    try:
        import faiss
    except ImportError:
        raise MissingPart("dedupe", "faiss is not installed", "", 'pip install "sentloom[faiss]"') from None
    width, cells = vectors.shape[1], int(np.sqrt(len(vectors)))
    compressed = faiss.ScalarQuantizer.QT_8bit
    index = faiss.IndexIVFScalarQuantizer(
        faiss.IndexFlatIP(width), width, cells, compressed, faiss.METRIC_INNER_PRODUCT
    )
    index.cp.seed, index.nprobe = SEED, SEARCHED
    drawn = np.random.default_rng(SEED).permutation(len(vectors))[: LEARNED_FROM * cells]
    index.train(normalised(vectors[np.sort(drawn)]))
    with progress("comparing", 2 * len(vectors), "texts", True) as advance:
        for start in range(0, len(vectors), ADDED):
            part = normalised(vectors[start : start + ADDED])
            index.add(part)
            advance(len(part))
        for start in range(0, len(vectors), ASKED):
            rows = np.arange(start, min(start + ASKED, len(vectors)))
            about, others = index.search(normalised(vectors[rows]), NEAREST + 1)
            likely = (others >= 0) & (about >= threshold - LOST)
            exactly = np.full(others.shape, -1.0, np.float32)
            at, place = np.nonzero(likely)
            exactly[at, place] = cosines_of(vectors, rows[at], others[at, place])
            yield rows, others, exactly
            advance(len(rows))


def cosines_of(vectors: Vectors, left: Places, right: Places) -> npt.NDArray[np.float32]:
    """The cosines of pairs of rows."""
    cosines = np.empty(len(left), np.float32)
    for start in range(0, len(left), ADDED):
        part = slice(start, start + ADDED)
        cosines[part] = np.einsum("nd,nd->n", normalised(vectors[left[part]]), normalised(vectors[right[part]]))
    return cosines


def _are_near(vectors: Vectors, pairs: Places, threshold: float) -> npt.NDArray[np.bool_]:
    near: npt.NDArray[np.bool_] = cosines_of(vectors, pairs[:, 0], pairs[:, 1]) >= threshold
    return near


def _recall(vectors: Vectors, pairs: Places, threshold: float) -> float:
    """Of the nearest others of some texts that an exact search finds from the threshold on, how many were found."""
    asked = np.sort(np.random.default_rng(SEED).permutation(len(vectors))[:SAMPLE])
    others, cosines = top_k(vectors[asked], vectors, NEAREST + 1)
    there = _pairs(iter([(asked, others, cosines)]), threshold)
    keys = [both @ np.array([len(vectors), 1]) for both in (there, pairs)]
    return float(np.isin(*keys).mean()) if len(there) else 1.0
