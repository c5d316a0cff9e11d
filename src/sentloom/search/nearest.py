"""Find the nearest documents by cosine: exactly, or among many documents with faiss.

Exact search goes block by block, so that only one block of cosines is in memory.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from sentloom.errors import InputError, MissingPart, option
from sentloom.search.vectors import Vectors, normalised

BLOCKS = 512, 16384  # queries and documents: 32 MB of cosines
EXACT = 200_000  # documents that faiss searches exhaustively; more of them are divided into cells
CELLS = 4  # for each square root of the number of documents
SEARCHED = 16  # one in 16 cells is searched
LEARNED_FROM = 64  # documents per cell


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


def faiss_top_k(
    queries: npt.NDArray[Any], documents: npt.NDArray[Any], k: int, exact: int = EXACT
) -> tuple[npt.NDArray[np.int64], Vectors]:
    """Like `top_k`: indices and cosines (q, k) of the nearest documents, nearest first; -1 where none was found."""
    try:
        import faiss
    except ImportError:
        raise MissingPart(
            option("search", "faiss"), "faiss is not installed", "", 'pip install "sentloom[faiss]"'
        ) from None
    unit, width = normalised(documents), documents.shape[1]
    index = faiss.IndexFlatIP(width)
    if len(unit) > exact:
        cells = int(CELLS * np.sqrt(len(unit)))
        by_cells = faiss.IndexIVFFlat(index, width, cells, faiss.METRIC_INNER_PRODUCT)
        by_cells.cp.seed = 0
        by_cells.nprobe = max(1, cells // SEARCHED)
        by_cells.train(unit[:: max(1, len(unit) // (LEARNED_FROM * cells))])
        by_cells.add(unit)
        cosines, numbers = by_cells.search(normalised(queries), min(k, len(unit)))
        return numbers, cosines
    index.add(unit)
    cosines, numbers = index.search(normalised(queries), min(k, len(unit)))
    return numbers, cosines
