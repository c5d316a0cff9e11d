"""Scores of what was written: by the writer itself, or, for queries, by the round trip and a cross-encoder."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sentloom.encoder import Encoder
from sentloom.encoder.shared import shared_encoder
from sentloom.search.cross_encoder import CrossEncoder
from sentloom.search.pair_scores import PairScores, pair_scores
from sentloom.writing.ledger import LedgerPlan
from sentloom.writing.prompts import Kind
from sentloom.writing.round_trip import RoundTrip
from sentloom.writing.writer import Pair, Writer

BM25_ALONE = "none"  # as the name of the encoder


class Scores(NamedTuple):
    """All scores (n,) of candidates; a kind that a judge does not score has 0, from the cross-encoder NaN."""

    score: NDArray[np.float64]  # the probability of the judgement that the kind needs; of a query, 1 / its rank
    bm25_rank: NDArray[np.int32]
    encoder_rank: NDArray[np.int32]
    cross_encoder: NDArray[np.float32]


class QueryJudges(NamedTuple):
    """Who judges queries."""

    round_trip: RoundTrip
    teacher: PairScores | None = None  # a cross-encoder, if one is named


def open_encoder(name: str) -> Encoder | None:
    """The encoder that queries are searched with, besides BM25."""
    return None if name == BM25_ALONE else shared_encoder(name)


def open_query_judges(
    plan: LedgerPlan, texts: Callable[[], list[str]], encoder: str, teacher: str | None
) -> QueryJudges | None:
    """The judges of queries, if there are any queries; `texts` gives all raw texts."""
    if "query" not in plan.prompts:
        return None
    scores = partial(pair_scores, CrossEncoder.load(teacher)) if teacher else None
    return QueryJudges(RoundTrip(texts(), open_encoder(encoder)), scores)


def score_all(kinds: Sequence[Kind], pairs: Sequence[Pair], writer: Writer, judges: QueryJudges | None) -> Scores:
    """The scores of candidates; a pair is a source and what was written for it."""
    count, of = len(pairs), np.array(kinds, dtype=object)
    found = Scores(
        np.zeros(count), np.zeros(count, np.int32), np.zeros(count, np.int32), np.full(count, np.nan, np.float32)
    )
    judged = _places(of != "query")
    found.score[judged] = writer.judge([pairs[place] for place in judged])
    found.score[of == "contradiction"] = 1 - found.score[of == "contradiction"]
    both = _places(of == "paraphrase")  # each follows from the other
    found.score[both] = np.minimum(found.score[both], writer.judge([pairs[place][::-1] for place in both]))
    queries = _places(of == "query")
    if judges and queries:
        _fill(found, queries, _of_queries([pairs[place] for place in queries], judges))
    return found


def _places(mask: NDArray[np.bool_]) -> list[int]:
    return [int(place) for place in np.flatnonzero(mask)]


def _fill(scores: Scores, places: Sequence[int], found: Scores) -> None:
    """Write the scores of some candidates in place."""
    scores.score[places] = found.score
    scores.bm25_rank[places] = found.bm25_rank
    scores.encoder_rank[places] = found.encoder_rank
    scores.cross_encoder[places] = found.cross_encoder


def _of_queries(pairs: Sequence[Pair], judges: QueryJudges) -> Scores:
    sources, queries = zip(*pairs, strict=True)
    ranks = judges.round_trip.find(queries, sources)
    score = np.where(ranks.fused > 0, 1 / np.maximum(ranks.fused, 1), 0.0)
    relevance = np.full(len(pairs), np.nan, np.float32)
    if judges.teacher:
        relevance = judges.teacher(list(zip(queries, sources, strict=True)))
    return Scores(score, ranks.bm25, ranks.encoder, relevance)
