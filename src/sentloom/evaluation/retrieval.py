"""Retrieval: the ranks of relevant documents among all documents, by exact search."""

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from sentloom.search.nearest import BLOCKS, cosine_blocks
from sentloom.search.vectors import normalised

TIE = 1e-6  # cosines this close are equal: float32 cannot distinguish them, whatever block they were computed in


def ranks_of(
    queries: npt.NDArray[Any],
    documents: npt.NDArray[Any],
    relevant: Sequence[Collection[int]],
    blocks: tuple[int, int] = BLOCKS,
) -> list[npt.NDArray[np.int64]]:
    """Return for each query the ranks of its relevant documents, from 1, in ascending order.

    Ties count against the system: an irrelevant document with the same cosine as a relevant one ranks before it.
    """
    return [ranks for ranks, _ in ranked_relevant(queries, documents, relevant, blocks)]


def ranked_relevant(
    queries: npt.NDArray[Any],
    documents: npt.NDArray[Any],
    relevant: Sequence[Collection[int]],
    blocks: tuple[int, int] = BLOCKS,
) -> list[tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]]:
    """Return for each query the ranks of its relevant documents as `ranks_of`, and the document at each of them."""
    right = [np.unique(np.fromiter(numbers, np.int64)) for numbers in relevant]
    sizes = [len(numbers) for numbers in right]
    owner = np.repeat(np.arange(len(right)), sizes)  # the query of each relevant document
    cosines = np.einsum("nd,nd->n", normalised(queries)[owner], normalised(documents[np.concatenate(right)]))
    as_near = np.zeros(len(owner), np.int64)  # documents at least as close as this one, including itself
    for query, _, block in cosine_blocks(queries, documents, blocks):
        first, end = np.searchsorted(owner, [query, query + len(block)])
        for start in range(first, end, blocks[0]):  # bounds memory for a query with many relevant documents
            some = slice(start, min(start + blocks[0], end))
            as_near[some] += (block[owner[some] - query] >= cosines[some, None] - TIE).sum(axis=1)
    ends = np.cumsum(sizes)[:-1]
    orders = [np.argsort(-some, kind="stable") for some in np.split(cosines, ends)]
    parts = zip(np.split(cosines, ends), np.split(as_near, ends), orders, right, strict=True)
    return [(_ranks(some[order], near[order]), numbers[order]) for some, near, order, numbers in parts]


def _ranks(falling: npt.NDArray[np.float32], as_near: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Rank relevant documents, closest first: the j-th follows j - 1 relevant ones and all irrelevant ones as close.

    Due to rounding, a relevant document at the edge of a tie may count in only one sum, so ranks are at least j.
    """
    best = np.arange(1, len(falling) + 1)
    right_as_near = len(falling) - np.searchsorted(falling[::-1], falling - TIE)
    ranks: npt.NDArray[np.int64] = np.maximum(as_near - right_as_near + best, best)
    return ranks
