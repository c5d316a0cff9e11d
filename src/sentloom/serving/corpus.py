"""The texts that are searched, with the vectors that each model gives them, and a map of them in the plane."""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sentloom.files import cache_folder, new_file
from sentloom.search.nearest import top_k
from sentloom.search.vectors import normalised
from sentloom.serving.batcher import Vectors
from sentloom.serving.schema import FoundText

MAPPED = 2000  # texts on the map
PERPLEXITY = 30.0  # about how many neighbours t-SNE looks at
SHOWN = 240  # characters of a text on the map

Rows = NDArray[np.int64]


@dataclass(frozen=True)
class Corpus:
    """Texts, where each came from, and their vectors (n, d) by the name of a model."""

    texts: Sequence[str]
    place: Callable[[int], str]
    vectors: Mapping[str, Vectors]

    def search(self, model: str, queries: Vectors, k: int) -> list[list[FoundText]]:
        """The k texts nearest to each query."""
        rows, cosines = top_k(queries, self.vectors[model], k)
        return [
            [self._found(int(row), float(cosine)) for row, cosine in zip(*one, strict=True)]
            for one in zip(rows, cosines, strict=True)
        ]

    def _found(self, row: int, score: float) -> FoundText:
        return FoundText(row=row, place=self.place(row), score=round(score, 6), text=self.texts[row])

    def mapped_rows(self) -> Rows:
        """The rows on the map: all, or every n-th."""
        return np.unique(np.linspace(0, len(self.texts) - 1, min(MAPPED, len(self.texts))).astype(np.int64))

    def map_points(self, model: str) -> Vectors:
        """Positions (n, 2) of the mapped rows between 0 and 1; computed once, then read from the cache."""
        vectors = normalised(self.vectors[model][self.mapped_rows()])
        file = cache_folder() / "maps" / f"{hashlib.sha256(vectors.tobytes()).hexdigest()[:32]}.npy"
        if (found := _read(file, len(vectors))) is not None:
            return found
        points = plane(vectors)
        with new_file(file) as part, part.open("wb") as opened:
            np.save(opened, points)
        return points


def plane(vectors: Vectors) -> Vectors:
    """Vectors of unit length as points (n, 2) between 0 and 1, near ones near each other (t-SNE)."""
    from sklearn.manifold import TSNE

    if len(vectors) < 5:  # too few neighbours: the two main directions
        left, sizes, _ = np.linalg.svd(vectors - vectors.mean(axis=0), full_matrices=False)
        points = np.pad(left * sizes, ((0, 0), (0, 2)))[:, :2]
    else:
        perplexity = min(PERPLEXITY, (len(vectors) - 1) / 3)
        points = TSNE(perplexity=perplexity, init="pca", random_state=0).fit_transform(vectors)
    low, high = points.min(axis=0), points.max(axis=0)
    return np.ascontiguousarray((points - low) / np.maximum(high - low, 1e-9), np.float32)


def _read(file: Path, count: int) -> Vectors | None:
    """The cached points; None if there are none, or the file is damaged."""
    try:
        points = np.load(file, allow_pickle=False)
    except (OSError, ValueError, EOFError):
        return None
    return points if points.shape == (count, 2) and np.isfinite(points).all() else None
