"""Score what was written: `score_all` gives every candidate the judgement that its kind needs.

A language model judges sentences: the probability of "true" against "false" (GenSE, section 3.2). Queries are judged by
two searches, which have to find the source again, and by a cross-encoder if one is named.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from sentloom.encoder import Encoder
from sentloom.encoder.device import pack_workers
from sentloom.encoder.loading import shared_encoder
from sentloom.errors import ModelError
from sentloom.search.cross_encoder import CrossEncoder, PairScores, pair_scores
from sentloom.search.nearest import top_k
from sentloom.search.words import WordIndex
from sentloom.writing.language_model import Ids, LanguageModel
from sentloom.writing.ledger import LedgerPlan
from sentloom.writing.writer import Kind, Pair, Writer

DEPTH = 100  # results of each search that count
FUSION = 60  # the constant of reciprocal rank fusion
BATCH = 32  # queries scored at a time against all texts
BM25_ALONE = "none"  # as the name of the encoder

Ranks = NDArray[np.int32]


class Scores(NamedTuple):
    """All scores (n,) of candidates; a kind that a judge does not score has 0, from the cross-encoder NaN."""

    score: NDArray[np.float64]  # the probability of the judgement that the kind needs; of a query, 1 / its rank
    bm25_rank: NDArray[np.int32]
    encoder_rank: NDArray[np.int32]
    cross_encoder: NDArray[np.float32]


class QueryJudges(NamedTuple):
    """Who judges queries."""

    round_trip: "RoundTrip"
    teacher: PairScores | None = None  # a cross-encoder, if one is named


def open_query_judges(
    plan: LedgerPlan, texts: Callable[[], list[str]], encoder: str, teacher: str | None
) -> QueryJudges | None:
    """The judges of queries, if there are any queries; `texts` gives all raw texts."""
    if "query" not in plan.prompts:
        return None
    scores = partial(pair_scores, CrossEncoder.load(teacher)) if teacher else None
    return QueryJudges(RoundTrip(texts(), open_encoder(encoder)), scores)


def open_encoder(name: str) -> Encoder | None:
    """The encoder that queries are searched with, besides BM25."""
    return None if name == BM25_ALONE else shared_encoder(name)


def score_all(kinds: Sequence[Kind], pairs: Sequence[Pair], writer: Writer, judges: QueryJudges | None) -> Scores:
    """The scores of candidates; a pair is a source and what was written for it."""
    count, of = len(pairs), np.array(kinds, dtype=object)
    scores = Scores(
        np.zeros(count), np.zeros(count, np.int32), np.zeros(count, np.int32), np.full(count, np.nan, np.float32)
    )
    judged = _places(of != "query")
    scores.score[judged] = writer.judge([pairs[place] for place in judged])
    scores.score[of == "contradiction"] = 1 - scores.score[of == "contradiction"]
    both = _places(of == "paraphrase")  # each follows from the other
    scores.score[both] = np.minimum(scores.score[both], writer.judge([pairs[place][::-1] for place in both]))
    queries = _places(of == "query")
    if judges and queries:
        _fill(scores, queries, _of_queries([pairs[place] for place in queries], judges))
    return scores


def _places(mask: NDArray[np.bool_]) -> list[int]:
    return [int(place) for place in np.flatnonzero(mask)]


def _fill(scores: Scores, places: Sequence[int], part: Scores) -> None:
    """Write the scores of some candidates in place."""
    scores.score[places] = part.score
    scores.bm25_rank[places] = part.bm25_rank
    scores.encoder_rank[places] = part.encoder_rank
    scores.cross_encoder[places] = part.cross_encoder


def _of_queries(pairs: Sequence[Pair], judges: QueryJudges) -> Scores:
    sources, queries = zip(*pairs, strict=True)
    ranks = judges.round_trip.find(queries, sources)
    score = np.where(ranks.fused > 0, 1 / np.maximum(ranks.fused, 1), 0.0)
    relevance = np.full(len(pairs), np.nan, np.float32)
    if judges.teacher:
        relevance = judges.teacher(list(zip(queries, sources, strict=True)))
    return Scores(score, ranks.bm25, ranks.encoder, relevance)


def judge(model: LanguageModel, pairs: Sequence[Pair], batch: int = 64) -> NDArray[np.float64]:
    """P(true) (n,) of each pair: the softmax over the two answers alone, at the first decoded position."""
    ids = judging_ids(model, pairs)
    batches = by_length(ids, batch)
    chances = np.empty(len(pairs))
    prefix = model.prefix(model.opening(model.judge_ids)) if pairs else None
    with pack_workers(model.model.device) as executor:
        parts = executor.map(lambda rows: _judged(model, [ids[row] for row in rows], prefix), batches)
        for rows, part in zip(batches, parts, strict=True):
            chances[rows] = part
    return chances


def judging_ids(model: LanguageModel, pairs: Sequence[Pair]) -> list[Ids]:
    """What the model reads to judge each pair."""
    prompt = model.judge_ids
    premises, hypotheses = (model.sentences([pair[side] for pair in pairs]) for side in (0, 1))
    return [model.framed(prompt, both) for both in zip(premises, hypotheses, strict=True)]


def by_length(ids: Sequence[Ids], size: int) -> list[NDArray[np.int64]]:
    """The rows of each batch, longest first: similar lengths share a batch, so that there is little padding."""
    order = np.argsort([-len(row) for row in ids], kind="stable")
    return [order[at : at + size] for at in range(0, len(order), size)]


def chance_of_true(true: NDArray[np.float64], false: NDArray[np.float64]) -> NDArray[np.float64]:
    """The softmax over two logits, which is the logistic function of their difference."""
    if not (np.isfinite(true).all() and np.isfinite(false).all()):
        problem, fix = "its verdicts are NaN or infinite", "check the model: its weights may be damaged"
        raise ModelError("judge", problem, "finite numbers", fix)
    return np.exp(-np.logaddexp(0, false - true))


@torch.inference_mode()
def _judged(model: LanguageModel, ids: Sequence[Ids], prefix: Any) -> NDArray[np.float64]:
    logits = model.first_logits(ids, prefix)
    true, false = logits[:, list(model.verdict_ids)].double().cpu().numpy().T
    return chance_of_true(true, false)


class SourceRanks(NamedTuple):
    """The rank (n,) of each query's source, from 1; 0 if it is not among the first DEPTH."""

    fused: Ranks
    bm25: Ranks
    encoder: Ranks


class RoundTrip:
    """All distinct texts of the raw data, ready to be searched; equal texts are one."""

    def __init__(self, texts: Sequence[str], encoder: Encoder | None) -> None:
        """Without an encoder, BM25 decides alone."""
        self._places = {text: place for place, text in enumerate(dict.fromkeys(texts))}
        self._bm25 = WordIndex(list(self._places))
        self._encoder = encoder
        self._vectors = encoder.encode(list(self._places), role="document") if encoder else None

    def find(self, queries: Sequence[str], sources: Sequence[str]) -> SourceRanks:
        """The ranks of the sources for these queries."""
        targets = np.array([self._places[source] for source in sources], np.int64)
        lists = [self._by_words(queries)]
        if self._encoder and self._vectors is not None and queries:
            vectors = self._encoder.encode(queries, role="query")
            lists.append(top_k(vectors, self._vectors, min(DEPTH, len(self._places)))[0])
        ranks = [rank_in(results, targets) for results in lists]
        by_encoder = ranks[1] if len(ranks) > 1 else np.zeros(len(queries), np.int32)
        return SourceRanks(fused_rank(lists, targets), ranks[0], by_encoder)

    def _by_words(self, queries: Sequence[str]) -> NDArray[np.int64]:
        """(queries, DEPTH): the best texts by BM25; -1 where no more share a word with the query."""
        width = min(DEPTH, len(self._places))
        results = np.full((len(queries), width), -1, np.int64)
        for start in range(0, len(queries), BATCH):
            scores = self._bm25.scores(queries[start : start + BATCH])
            best = np.argsort(-scores, axis=1, kind="stable")[:, :width]
            scored = np.take_along_axis(scores, best, axis=1) > 0
            results[start : start + BATCH] = np.where(scored, best, -1)
        return results


def rank_in(results: NDArray[np.int64], targets: NDArray[np.int64]) -> Ranks:
    """The rank of each target in its row of results, from 1; 0 if it is not there."""
    hits = results == targets[:, None]
    return np.where(hits.any(axis=1), hits.argmax(axis=1) + 1, 0).astype(np.int32)


def fused_rank(lists: Sequence[NDArray[np.int64]], targets: NDArray[np.int64]) -> Ranks:
    """The rank of each target by the sum of 1 / (60 + rank) over the lists; ties count against it."""
    ranks = np.zeros(len(targets), np.int32)
    for row, target in enumerate(targets):
        points: dict[int, float] = {}
        for results in lists:
            for rank, text in enumerate(results[row].tolist(), 1):
                if text >= 0:
                    points[text] = points.get(text, 0.0) + 1 / (FUSION + rank)
        if target in points:
            ranks[row] = sum(total >= points[target] for total in points.values())
    return ranks
