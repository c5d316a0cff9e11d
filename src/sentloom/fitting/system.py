"""The whole search: whether words, and then a re-ranker, add to the encoder that will be written.

Their weights are chosen on the validation rows, 0 among the choices, and tested once on the test rows, which counts as
a use of them. What is not shown to be better gets the weight 0. If no trained encoder beats its base, the same is tried
with the base: a base whose search is shown to be better is a result too.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from sentloom.encoder import Encoder
from sentloom.encoder.system import Fusion, Reranking, System
from sentloom.evaluation.fusion import WEIGHTS, Ranked, SearchParts, best_weight, with_reranker
from sentloom.evaluation.reranking import MOST_QUERIES, sample_queries
from sentloom.evaluation.retrieval import SearchSet
from sentloom.evaluation.significance import corrected_level
from sentloom.evaluation.task import Task
from sentloom.fitting.gate import Basis, Gate, judge, mean_measure, measure, record_use
from sentloom.fitting.plan import Job
from sentloom.fitting.prepare import Prepared
from sentloom.fitting.request import Request
from sentloom.fitting.result import Addition, FitResult, SystemResult
from sentloom.fitting.tasks import task_labels
from sentloom.search.cross_encoder import CrossEncoder, Pairs, PairScores, pair_scores
from sentloom.search.words import stemming_of

WORDS, RERANKER = "what words add to the search", "what the re-ranker adds to the search"  # if there is time
DEPTHS = (10, 30, 100)  # results that a re-ranker reads
LATENCY = 0.2  # seconds that a re-ranker may take for a query
TIMED = 32  # pairs, to see how long one takes
MOST_RERANKED = 300  # test queries: a cross-encoder takes long


@dataclass(frozen=True)
class Kept:
    """The encoder that will be written, and the same trained without each fold."""

    encoder: Encoder
    folds: tuple[Encoder, ...] = ()
    of_base: bool = False  # whether it is the base, since nothing that was trained is better


def prove_system(kept: Kept, prepared: Prepared, job: Job) -> SystemResult | None:
    """Which parts a search with this encoder should have; None if nothing is searched, or no labels say what is right.

    Each part is measured if there is time for it.
    """
    tested = [task for task in prepared.proving if task.searched]
    chosen = _choosing(kept, prepared)
    if prepared.label_free or not tested or not chosen:
        return None
    job.log("Trying words beside the vectors ...")
    stemming = stemming_of(chosen[0][1].documents)

    def parts_of(encoder: Encoder, searched: SearchSet) -> SearchParts:
        return SearchParts.of(searched, encoder, job.memory, stemming)

    choosing = [parts_of(encoder, searched) for encoder, searched in chosen]
    proving = [parts_of(kept.encoder, task.searched) for task in tested if task.searched]
    proof = _Proof(kept.encoder, tested, stemming)
    fusion = job.if_time(WORDS, lambda: proof.words(choosing, proving))
    reranking = None
    if fusion and job.request.reranker:
        name, words = job.request.reranker, fusion.weight
        reranking = job.if_time(RERANKER, lambda: proof.reranker(name, choosing, proving, words, job))
    if fusion is None:
        return None
    result = SystemResult(stemming, fusion, reranking, job.request.reranker, job.plan.depth, kept.of_base)
    job.log(f"The search is by {system_of(result)}")
    return result


def _choosing(kept: Kept, prepared: Prepared) -> list[tuple[Encoder, SearchSet]]:
    """The sets that choose weights, each with a model that has not seen it: validation rows, or folds."""
    if prepared.validation:
        sides = [(kept.encoder, prepared.deciding(prepared.validation))]
    else:
        models = kept.folds or (kept.encoder,) * len(prepared.folds)
        sides = [(model, fold.tasks) for model, fold in zip(models, prepared.folds, strict=True)]
    return [(model, task.searched) for model, tasks in sides for task in tasks if task.searched]


@dataclass(frozen=True)
class _Proof:
    """Weights are chosen on some sets, and tested on the tasks that decide."""

    encoder: Encoder
    tasks: Sequence[Task]
    stemming: str

    def words(self, choosing: Sequence[SearchParts], proving: Sequence[SearchParts]) -> Addition:
        """What words add to vectors."""
        weight = best_weight([parts.ranked(WEIGHTS) for parts in choosing])
        rankings = [parts.ranked([0.0, weight]) for parts in proving]
        return self._tested(weight, f"words {weight:g} {self.stemming}", rankings)

    def reranker(
        self, name: str, choosing: Sequence[SearchParts], proving: Sequence[SearchParts], words: float, job: Job
    ) -> Addition:
        """What a re-ranker adds to vectors and words."""
        model = CrossEncoder.load(name)

        def score(pairs: Pairs) -> npt.NDArray[np.float32]:
            return pair_scores(model, pairs, show_progress=True)

        if not job.plan.depth:
            job.change(replace(job.plan, depth=depth_in_time(model.score, choosing[0].searched)))
        depth = job.plan.depth

        def reranked(parts: SearchParts, most: int, weights: Sequence[float]) -> list[Ranked]:
            (ranked,) = _few(parts, most).ranked([words], depth)
            return with_reranker(ranked, score, weights)

        weight = best_weight([reranked(parts, MOST_QUERIES, WEIGHTS) for parts in choosing])
        rankings = [reranked(parts, MOST_RERANKED, [0.0, weight]) for parts in proving]
        return self._tested(weight, f"words {words:g} {self.stemming} {model.identity} {depth} {weight:g}", rankings)

    def _tested(self, weight: float, what: str, rankings: Sequence[Sequence[Ranked]]) -> Addition:
        """The test rows with a part and without it; a part without weight is not tested."""
        if not weight:
            return Addition(0.0, 0.0)
        uses = record_use(self.tasks, f"{self.encoder.fingerprint()} {what}", self.encoder.fingerprint())
        level = corrected_level(uses.number)
        before, after = ([of_task[side].scores for of_task in rankings] for side in (0, 1))
        scored = zip(self.tasks, task_labels(self.tasks), before, after, strict=True)
        measures = [measure(task, label, "deciding", old, new, level) for task, label, old, new in scored]
        old, new = (
            [scores[task.main] for task, scores in zip(self.tasks, side, strict=True)] for side in (before, after)
        )
        total = mean_measure(measures, old, new, level)
        shown = total.better and total.has_enough_clusters
        return Addition(weight if shown else 0.0, weight, tuple(measures), total, uses.number)


def _few(parts: SearchParts, most: int) -> SearchParts:
    """The same with at most `most` of its queries."""
    searched = sample_queries(parts.searched, most)
    place = {query: row for row, query in enumerate(parts.searched.queries)}
    return replace(parts, searched=searched, queries=parts.queries[[place[query] for query in searched.queries]])


def depth_in_time(score: PairScores, searched: SearchSet) -> int:
    """The most results of DEPTHS that a re-ranker reads within LATENCY on this machine; at least the first of them."""
    pairs = [(searched.queries[0], text) for text in searched.documents[:TIMED]]
    score(pairs[:2])  # the first call is slower
    began = time.perf_counter()
    score(pairs)
    seconds = (time.perf_counter() - began) / len(pairs)
    return max([depth for depth in DEPTHS if depth * seconds <= LATENCY], default=DEPTHS[0])


def system_of(proven: SystemResult) -> System:
    """What the model's folder records: the parts, with a weight of 0 for those that were not shown to be better."""
    fusion = Fusion(proven.fusion.weight, proven.stemming, proven.fusion.gain, proven.fusion.interval)
    if proven.reranking is None or proven.reranker is None:
        return System(fusion)
    added, name = proven.reranking, proven.reranker
    place = str(Path(name).resolve()) if Path(name).is_dir() else name
    return System(fusion, Reranking(place, added.weight, proven.depth, added.gain, added.interval))


def with_system(result: FitResult, proven: SystemResult | None, request: Request, mined: bool) -> FitResult:
    """The result with its system. If that is the base with a better search, this is the verdict and what is written."""
    result = replace(result, system=proven)
    shown = proven.shown if proven and proven.of_base else None
    if proven is None or shown is None:
        return result
    gate = judge_system(proven, mined)
    trained = tuple(
        replace(known, part="watched", label=f"{known.label}, by the best trained encoder alone")
        for known in result.measures
    )
    return replace(
        result,
        verdict=gate.verdict,
        reason=gate.reason,
        model=str(request.output),
        started_from=result.base,
        total=shown.total,
        measures=(*shown.measures, *trained),
        uses=shown.uses,
        runs=tuple(replace(run, verdict="best, not written" if run.is_best else run.verdict) for run in result.runs),
        believe="",
        threshold=None,
        won=(),
        lost=(),
        advice=(),
        histogram=None,
        neighbours=(),
        by_language=(),
        by_dimension=(),
        warnings=(),
        stability=None,
        merging=None,
    )


def judge_system(proven: SystemResult, mined: bool) -> Gate:
    """The verdict on a base whose search is better than by its vectors alone."""
    assert proven.shown is not None
    assert proven.shown.total is not None
    gate = judge(proven.shown.total, proven.shown.total.difference, Basis("its vectors alone", mined=mined))
    better = f"No trained encoder is better than its base, but a search by {system_of(proven)} is"
    return replace(gate, reason=f"{better}. {gate.reason}")
