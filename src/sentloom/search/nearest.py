"""Exact search by cosine, block by block, so that only one block of cosines is in memory."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from sentloom.errors import InputError
from sentloom.search.vectors import Vectors, normalised

BLOCKS = 512, 16384  # queries and documents: 32 MB of cosines


def top_k(
    queries: npt.NDArray[Any], documents: npt.NDArray[Any], k: int, blocks: tuple[int, int] = BLOCKS
) -> tuple[npt.NDArray[np.int64], Vectors]:
    """Return the indices and cosines of the k documents nearest to each query, both (queries, k), best first.

    Ties are broken by document order. If there are fewer than k documents, all of them are returned.
    """
    if k < 1:
        raise InputError("k", f"{k} is too small", "1 or more", "ask for at least one document")
    width = min(k, len(documents))
    numbers, cosines = np.empty((len(queries), width), np.int64), np.empty((len(queries), width), np.float32)
    for query, document, block in cosine_blocks(queries, documents, blocks):
        stop = document + block.shape[1]
        kept, best = min(width, document), min(width, stop)  # columns filled before and after this block
        for row, values in enumerate(block, start=query):
            candidates = np.concatenate([numbers[row, :kept], np.arange(document, stop)])
            candidate_cosines = np.concatenate([cosines[row, :kept], values])
            chosen = _largest(candidate_cosines, best)
            numbers[row, :best], cosines[row, :best] = candidates[chosen], candidate_cosines[chosen]
    return numbers, cosines


def cosine_blocks(
    queries: npt.NDArray[Any], documents: npt.NDArray[Any], blocks: tuple[int, int] = BLOCKS
) -> Iterator[tuple[int, int, Vectors]]:
    """Yield all cosines in blocks: the index of the first query, of the first document, and the (q, d) cosines.

    The documents are read once, in order, so they may be a memory map.
    """
    many_queries, many_documents = blocks
    unit_queries = normalised(queries)
    for document in range(0, len(documents), many_documents):
        unit_documents = normalised(documents[document : document + many_documents])
        for query in range(0, len(queries), many_queries):
            yield query, document, unit_queries[query : query + many_queries] @ unit_documents.T


def _largest(values: Vectors, k: int) -> npt.NDArray[np.intp]:
    """Return the indices of the k largest values, largest first, ties in order."""
    threshold = np.partition(values, -k)[-k]
    places = np.flatnonzero(values >= threshold)
    return places[np.argsort(-values[places], kind="stable")[:k]]
