"""Retrieval: how high the right documents stand among all documents, by exact search."""

from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from sentloom.errors import InputError
from sentloom.evaluation.metrics import mrr_at, recall_at
from sentloom.search.nearest import QUERY_BLOCK, cosine_blocks
from sentloom.search.vectors import Encode, encode_checked, normalised

TIE = 1e-6  # cosines this near are equal: float32 does not tell them apart, whatever block they were computed in


@dataclass(frozen=True)
class RetrievalResult:
    """Scores from 0 to 1."""

    queries: int
    documents: int
    k: int
    mrr: float  # within the first k
    recall_at_1: float
    recall_at_k: float

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return asdict(self)


def retrieval(
    encode: Encode,
    queries: Sequence[str],
    documents: Sequence[str],
    relevant: Sequence[Collection[int]],
    *,
    k: int = 10,
    encode_documents: Encode | None = None,
) -> RetrievalResult:
    """Search every query among all documents; `relevant` has the right document numbers of each query.

    Documents have their own encoder where a model treats them otherwise than queries.
    """
    _check(len(queries), len(documents), relevant)
    query_vectors = encode_checked(encode, queries)
    document_vectors = encode_checked(encode_documents or encode, documents)
    ranks = ranks_of(query_vectors, document_vectors, relevant)
    return RetrievalResult(len(queries), len(documents), k, mrr_at(k, ranks), recall_at(1, ranks), recall_at(k, ranks))


def _check(queries: int, documents: int, relevant: Sequence[Collection[int]]) -> None:
    if not queries or len(relevant) != queries:
        raise InputError("relevant", f"{len(relevant)} entries", f"one for each of {queries} queries", "give both")
    for query, numbers in enumerate(relevant):
        if not numbers or not all(0 <= number < documents for number in numbers):
            raise InputError(
                f"relevant, query {query}", f"{list(numbers)}", f"numbers from 0 to {documents - 1}", "mend the list"
            )


def ranks_of(
    queries: npt.NDArray[Any], documents: npt.NDArray[Any], relevant: Sequence[Collection[int]]
) -> list[npt.NDArray[np.int64]]:
    """For each query the ranks of its relevant documents, from 1, rising.

    Ties go against the system: a wrong document as near as a right one stands before it.
    """
    right = [np.unique(np.fromiter(numbers, np.int64)) for numbers in relevant]
    sizes = [len(numbers) for numbers in right]
    owner = np.repeat(np.arange(len(right)), sizes)  # the query of each right document
    cosines = np.einsum("nd,nd->n", normalised(queries)[owner], normalised(documents[np.concatenate(right)]))
    as_near = np.zeros(len(owner), np.int64)  # documents at least as near as this one, itself included
    for query, _, block in cosine_blocks(queries, documents):
        first, end = np.searchsorted(owner, [query, query + len(block)])
        for start in range(first, end, QUERY_BLOCK):  # a query with many right documents takes no more room than many
            some = slice(start, min(start + QUERY_BLOCK, end))
            as_near[some] += (block[owner[some] - query] >= cosines[some, None] - TIE).sum(axis=1)
    ends = np.cumsum(sizes)[:-1]
    return [_ranks(*pair) for pair in zip(np.split(cosines, ends), np.split(as_near, ends), strict=True)]


def _ranks(cosines: npt.NDArray[np.float32], as_near: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """The j-th best right document has before it j - 1 right ones, and the wrong ones at least as near.

    A right one at the edge of a tie may count in one of the two sums alone: no rank is better than j for that.
    """
    order = np.argsort(-cosines, kind="stable")
    falling, best = cosines[order], np.arange(1, len(order) + 1)
    right_as_near = len(order) - np.searchsorted(falling[::-1], falling - TIE)
    ranks: npt.NDArray[np.int64] = np.maximum(as_near[order] - right_as_near + best, best)
    return ranks
