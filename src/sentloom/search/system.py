"""A whole search: vectors, words and a re-ranker, each with a weight, over one collection of texts.

The scores of each part are scaled to the range from 0 to 1 over the texts of a query and then averaged with weights (a
convex combination), which keeps how far apart two texts are; reciprocal rank fusion, which drops it, measured worse.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from sentloom.encoder.system import VECTORS_ALONE, System
from sentloom.search.cross_encoder import CrossEncoder
from sentloom.search.nearest import top_k
from sentloom.search.vectors import Vectors, normalised
from sentloom.search.words import WordIndex

CELLS = 1 << 24  # scores of queries with all texts that are in memory at a time

Rows = npt.NDArray[np.int64]


def fused(first: npt.NDArray[Any], second: npt.NDArray[Any], weight: float) -> npt.NDArray[np.float32]:
    """Scores (queries, texts) of which the second ones have a weight, both scaled over the texts of a query."""
    return (1 - weight) * scaled(first) + weight * scaled(second)


def scaled(scores: npt.NDArray[Any]) -> npt.NDArray[np.float32]:
    """Scores with a least of 0 and a largest of 1 in every row; 0 where all are equal.

    >>> scaled(np.array([[1.0, 3.0, 2.0], [5.0, 5.0, 5.0]])).tolist()
    [[0.0, 1.0, 0.5], [0.0, 0.0, 0.0]]
    """
    if not scores.shape[1]:
        return np.asarray(scores, np.float32)
    least, most = scores.min(axis=1, keepdims=True), scores.max(axis=1, keepdims=True)
    spread = np.where(most > least, most - least, 1.0)
    return np.asarray((scores - least) / spread, np.float32)


@dataclass(frozen=True)
class Index:
    """Texts with their vectors, searched by a system."""

    texts: Sequence[str]
    vectors: Vectors  # (texts, d)
    system: System = VECTORS_ALONE

    @cached_property
    def words(self) -> WordIndex:
        """The texts by their words."""
        return WordIndex(self.texts, self.system.fusion.stemming if self.system.fusion else "")

    @cached_property
    def _reranker(self) -> CrossEncoder:
        assert self.system.reranking is not None
        return CrossEncoder.load(self.system.reranking.model)

    def ready(self) -> "Index":
        """The same index, with everything loaded that a search needs, before the first one."""
        if self.system.word_weight:
            _ = self.words
        if self.system.rerank_weight:
            _ = self._reranker
        return self

    def find(self, queries: Sequence[str], vectors: Vectors, k: int) -> tuple[Rows, npt.NDArray[np.float32]]:
        """The rows and the scores of the k best texts for each query, both (queries, k), best first."""
        reranking = self.system.reranking if self.system.rerank_weight else None
        rows, scores = self._first(queries, vectors, max(k, reranking.depth) if reranking else k)
        if reranking is None:
            return rows, scores
        rows, scores = self._reranked(queries, rows, scores, reranking.weight)
        return rows[:, :k], scores[:, :k]

    def _first(self, queries: Sequence[str], vectors: Vectors, k: int) -> tuple[Rows, npt.NDArray[np.float32]]:
        """By vectors and words."""
        weight = self.system.word_weight
        if not weight or not len(self.texts):
            rows, cosines = top_k(vectors, self.vectors, k)
            order = np.lexsort((rows, -np.round(cosines, 6)))  # equal texts stay in order, whatever rounding says
            return np.take_along_axis(rows, order, axis=1), np.take_along_axis(cosines, order, axis=1)
        step, unit = max(1, CELLS // len(self.texts)), normalised(self.vectors)
        parts = []
        for start in range(0, len(queries), step):
            cosines = normalised(vectors[start : start + step]) @ unit.T
            scores = fused(cosines, self.words.scores(queries[start : start + step]), weight)
            best = np.argsort(-np.round(scores, 6), axis=1, kind="stable")[:, :k]
            parts.append((best, np.take_along_axis(scores, best, axis=1)))
        rows, scores = (np.concatenate(side) for side in zip(*parts, strict=True))
        return rows, scores

    def _reranked(
        self, queries: Sequence[str], rows: Rows, scores: npt.NDArray[np.float32], weight: float
    ) -> tuple[Rows, npt.NDArray[np.float32]]:
        pairs = [(query, str(self.texts[row])) for query, of in zip(queries, rows.tolist(), strict=True) for row in of]
        again = fused(scores, self._reranker.score(pairs).reshape(scores.shape), weight)
        order = np.argsort(-np.round(again, 6), axis=1, kind="stable")
        return np.take_along_axis(rows, order, axis=1), np.take_along_axis(again, order, axis=1)
