"""The round trip: a written query must find the text that it was written for among all texts of the raw data.

Two searches, by BM25 and by the base encoder, are fused by reciprocal ranks (Cormack et al., 2009). Neither alone may
decide: BM25 likes queries that copy, and an encoder that judges alone keeps what it knows already.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from sentloom.encoder import Encoder
from sentloom.search.bm25 import Bm25
from sentloom.search.nearest import top_k

DEPTH = 100  # results of each search that count
FUSION = 60  # the constant of reciprocal rank fusion
BATCH = 32  # queries scored at a time against all texts

Ranks = npt.NDArray[np.int32]


class Found(NamedTuple):
    """The rank (n,) of each query's source, from 1; 0 if it is not among the first DEPTH."""

    fused: Ranks
    bm25: Ranks
    encoder: Ranks


class RoundTrip:
    """All distinct texts of the raw data, ready to be searched; equal texts are one."""

    def __init__(self, texts: Sequence[str], encoder: Encoder | None) -> None:
        """Without an encoder, BM25 decides alone."""
        self._places = {text: place for place, text in enumerate(dict.fromkeys(texts))}
        self._bm25 = Bm25(list(self._places))
        self._encoder = encoder
        self._vectors = encoder.encode(list(self._places), role="document") if encoder else None

    def find(self, queries: Sequence[str], sources: Sequence[str]) -> Found:
        """The ranks of the sources for these queries."""
        wanted = np.array([self._places[source] for source in sources], np.int64)
        lists = [self._by_words(queries)]
        if self._encoder and self._vectors is not None and queries:
            vectors = self._encoder.encode(queries, role="query")
            lists.append(top_k(vectors, self._vectors, min(DEPTH, len(self._places)))[0])
        ranks = [rank_in(found, wanted) for found in lists]
        by_encoder = ranks[1] if len(ranks) > 1 else np.zeros(len(queries), np.int32)
        return Found(fused_rank(lists, wanted), ranks[0], by_encoder)

    def _by_words(self, queries: Sequence[str]) -> npt.NDArray[np.int64]:
        """(queries, DEPTH): the best texts by BM25; -1 where no more share a word with the query."""
        width = min(DEPTH, len(self._places))
        found = np.full((len(queries), width), -1, np.int64)
        for start in range(0, len(queries), BATCH):
            scores = self._bm25.scores(queries[start : start + BATCH])
            best = np.argsort(-scores, axis=1, kind="stable")[:, :width]
            scored = np.take_along_axis(scores, best, axis=1) > 0
            found[start : start + BATCH] = np.where(scored, best, -1)
        return found


def rank_in(found: npt.NDArray[np.int64], wanted: npt.NDArray[np.int64]) -> Ranks:
    """The rank of each wanted text in its row of results, from 1; 0 if it is not there."""
    hits = found == wanted[:, None]
    return np.where(hits.any(axis=1), hits.argmax(axis=1) + 1, 0).astype(np.int32)


def fused_rank(lists: Sequence[npt.NDArray[np.int64]], wanted: npt.NDArray[np.int64]) -> Ranks:
    """The rank of each wanted text by the sum of 1 / (60 + rank) over the lists; ties count against it."""
    ranks = np.zeros(len(wanted), np.int32)
    for row, target in enumerate(wanted):
        points: dict[int, float] = {}
        for found in lists:
            for rank, text in enumerate(found[row].tolist(), 1):
                if text >= 0:
                    points[text] = points.get(text, 0.0) + 1 / (FUSION + rank)
        if target in points:
            ranks[row] = sum(one >= points[target] for one in points.values())
    return ranks
