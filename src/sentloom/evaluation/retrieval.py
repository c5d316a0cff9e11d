"""Retrieval: the ranks of relevant documents among all documents, by exact search."""

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from sentloom.search.nearest import QUERY_BLOCK, cosine_blocks
from sentloom.search.vectors import normalised

TIE = 1e-6  # cosines this close are equal: float32 cannot distinguish them, whatever block they were computed in


def ranks_of(
    queries: npt.NDArray[Any], documents: npt.NDArray[Any], relevant: Sequence[Collection[int]]
) -> list[npt.NDArray[np.int64]]:
    """Return for each query the ranks of its relevant documents, from 1, in ascending order.

    Ties count against the system: an irrelevant document with the same cosine as a relevant one ranks before it.
    """
    right = [np.unique(np.fromiter(numbers, np.int64)) for numbers in relevant]
    sizes = [len(numbers) for numbers in right]
    owner = np.repeat(np.arange(len(right)), sizes)  # the query of each relevant document
    cosines = np.einsum("nd,nd->n", normalised(queries)[owner], normalised(documents[np.concatenate(right)]))
    as_near = np.zeros(len(owner), np.int64)  # documents at least as close as this one, including itself
    for query, _, block in cosine_blocks(queries, documents):
        first, end = np.searchsorted(owner, [query, query + len(block)])
        for start in range(first, end, QUERY_BLOCK):  # bounds memory for a query with many relevant documents
            some = slice(start, min(start + QUERY_BLOCK, end))
            as_near[some] += (block[owner[some] - query] >= cosines[some, None] - TIE).sum(axis=1)
    ends = np.cumsum(sizes)[:-1]
    return [_ranks(*pair) for pair in zip(np.split(cosines, ends), np.split(as_near, ends), strict=True)]


def _ranks(cosines: npt.NDArray[np.float32], as_near: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Rank the relevant documents: the j-th best follows j - 1 relevant ones and all irrelevant ones as close.

    Due to rounding, a relevant document at the edge of a tie may count in only one sum, so ranks are at least j.
    """
    order = np.argsort(-cosines, kind="stable")
    falling, best = cosines[order], np.arange(1, len(order) + 1)
    right_as_near = len(order) - np.searchsorted(falling[::-1], falling - TIE)
    ranks: npt.NDArray[np.int64] = np.maximum(as_near[order] - right_as_near + best, best)
    return ranks
