"""Nearest neighbours with faiss: exact up to 200,000 documents, approximate (IVF) for more."""

from typing import Any

import numpy as np
import numpy.typing as npt

from sentloom.errors import MissingPart, option
from sentloom.search.vectors import Vectors, normalised

EXACT = 200_000  # documents that are searched exhaustively
CELLS = 4  # times the square root of the number of documents
SEARCHED = 16  # one in 16 cells is searched
LEARNED_FROM = 64  # documents per cell


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
