"""The result of a fit: what was read, tried and shown, what the figures of the report show, and what to do next.

The figures are loss curves, alignment and uniformity, cosines, and nearest neighbours. The advice is for fits that show
no better model.
"""

import datetime
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import metadata
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch

from sentloom.encoder import Encoder
from sentloom.engine.plan import to_yaml
from sentloom.evaluation.bench import Memory, vectors_of
from sentloom.evaluation.geometry import alignment
from sentloom.evaluation.metrics import cosine_of_pairs
from sentloom.fitting.bases import Base, base_at, language_gap
from sentloom.fitting.examples import shortened
from sentloom.fitting.gate import Gate
from sentloom.fitting.inputs import describe_unusable
from sentloom.fitting.lengths import LEAST_STEPS
from sentloom.fitting.plan import FitPlan, Job
from sentloom.fitting.planning import Standing
from sentloom.fitting.prepare import Prepared
from sentloom.fitting.race import BEST, TrainedRun
from sentloom.fitting.request import Request
from sentloom.fitting.result import (
    Advice,
    AdviceKind,
    BaseSummary,
    Curve,
    FitResult,
    Histogram,
    InputSummary,
    Measure,
    NearestTexts,
    RouteSummary,
    Run,
    Trail,
)
from sentloom.fitting.shapes import handler
from sentloom.fitting.tasks import HeldOut
from sentloom.fitting.training_sets import cut_line
from sentloom.fitting.verify import Proof
from sentloom.search.nearest import top_k
from sentloom.search.vectors import encode_distinct
from sentloom.training.health import Gauges, alarms, gauge, read_journal

VERSIONS = ("sentloom", "torch", "transformers", "tokenizers", "numpy")  # what the numbers depend on

BINS = 40  # of the histogram of cosines
MOST_POINTS = 400  # of a curve
SAMPLES = 6  # sentences whose neighbours are shown
NEAREST = 4  # neighbours of each
MOST_TEXTS = 2_000  # to search for neighbours in
BASE = "base"  # the label of the start of a trail
LOST_RANK = 0.5  # a model that loses half of the effective rank of its base gets a warning

LITTLE_LEFT = 95.0  # a base with this score has little left to gain
MOST_CLUSTERS = 100_000  # in test rows
POWER = ((1.96 + 0.84) / 1.96) ** 2  # times as many clusters show a gain in 80% of cases instead of every second one


@dataclass(frozen=True)
class PairGeometry:
    """How the vectors of related pairs are arranged."""

    alignment: float  # the mean squared distance of the two sides of a pair
    gauges: Gauges  # over the distinct texts


@dataclass(frozen=True)
class Findings:
    """What a fit came to."""

    standings: Sequence[Standing]  # of the bases
    runs: Sequence[TrainedRun]
    best: TrainedRun
    proof: Proof


def build_result(job: Job, prepared: Prepared, found: Findings) -> FitResult:
    """The whole result except stability, merging, languages, dimensions and the time that each part took."""
    request, plan, memory = job.request, job.plan, job.memory
    runs, best, proof, bases = found.runs, found.best, found.proof, [standing.base for standing in found.standings]
    reference, own = base_at(bases, plan.reference), base_at(bases, best.plan.base)
    after, by_route = best.encoder(), geometries(runs, bases, prepared.validation or prepared.test, memory)
    written = proof.gate.passed or request.force
    hashes = {"base": reference.encoder.fingerprint(), "model": after.fingerprint()}
    return FitResult(
        title=_title(request),
        verdict=proof.gate.verdict,
        reason=proof.gate.reason,
        base=reference.name,
        started_from=own.name,
        bases=tuple(base_summaries(found.standings, reference, plan.latencies)),
        max_latency=request.max_latency,
        model=str(request.output) if written else None,
        forced=written and not proof.gate.passed,
        created=datetime.datetime.now(datetime.UTC).date().isoformat(),
        command=request.command,
        against=tuple(map(request.label, request.against)),
        sources=tuple(input_summaries(prepared)),
        routes=tuple(route_summaries(plan)),
        runs=tuple(final_run(trained.run, outcome(proof.gate, written)) for trained in runs),
        measures=proof.measures,
        total=proof.decided,
        power=proof.power,
        uses=proof.uses.number,
        test_sha256=proof.uses.sha256,
        believe=proof.believe,
        folds=len(prepared.folds),
        label_free=prepared.label_free,
        cluster_notes=prepared.cluster_notes,
        threshold=proof.threshold,
        won=proof.won if request.examples else (),
        lost=proof.lost if request.examples else (),
        advice=() if proof.gate.passed else advice_after(proof, best, prepared, plan, request.folder),
        curves=curves(best, request.folder),
        trails=tuple(trail(route, points) for route, points in by_route.items()),
        histogram=histogram(reference.encoder, after, prepared.test, memory),
        neighbours=neighbours(reference.encoder, after, prepared.test, memory) if request.examples else (),
        warnings=(
            *language_gap(own, prepared.inputs),
            *proof.warnings,
            *collapse_warnings(by_route[best.run.route], best),
        ),
        recipe=to_yaml(best.plan),
        budget=request.budget,
        versions={name: metadata.version(name) for name in VERSIONS},
        hashes=hashes | {fit_input.name: fit_input.data.sha256 for fit_input in prepared.inputs},
        cost={
            "all training, whenever it ran": sum(trained.run.seconds for trained in runs),
            "threads": str(torch.get_num_threads()),
        },
    )


def _title(request: Request) -> str:
    return f"{request.output.name}, fitted to {' and '.join(Path(request.label(name)).name for name in request.data)}"


def base_summaries(
    standings: Sequence[Standing], reference: Base, latencies: Mapping[str, float]
) -> Iterator[BaseSummary]:
    """Every base with its score on the validation rows, the best first."""
    for standing in sorted(standings, key=lambda standing: -standing.value):
        base, score = standing.base, standing.value
        yield BaseSummary(
            base.name,
            base.parameters,
            base.encoder.dimension,
            score,
            base is reference,
            prompts=base.is_asymmetric,
            adapters=base.is_large,
            languages=base.languages,
            made_for=base.made_for,
            latency=latencies.get(base.name),
        )


def input_summaries(prepared: Prepared) -> Iterator[InputSummary]:
    """What became of the rows of every input."""
    for fit_input, rows, cut in zip(prepared.inputs, prepared.row_counts, prepared.cuts, strict=True):
        cuts = () if prepared.recipe else (cut_line(cut),)
        yield InputSummary(
            name=fit_input.name,
            shape=str(fit_input.data.shape),
            rows=rows,
            distinct=len(fit_input.data),
            language=fit_input.language,
            languages=fit_input.shares,
            words=fit_input.words,
            duplicates=fit_input.inspection.duplicate_rows,
            sha256=fit_input.data.sha256,
            notes=(*fit_input.data.notes, *describe_unusable(fit_input), *cuts),
        )


def route_summaries(plan: FitPlan) -> Iterator[RouteSummary]:
    """The routes that were tried, and those that were skipped."""
    yield from (RouteSummary(route.name, route.why, tried=True) for route in plan.routes)
    yield from (RouteSummary(route.name, route.why, tried=False) for route in plan.skipped)


def outcome(gate: Gate, written: bool) -> str:
    """What became of the best run: it has won only if its model is better than the base."""
    return "won" if gate.passed else f"{BEST}, {'forced' if written else 'not written'}"


def final_run(run: Run, outcome: str) -> Run:
    """The run with its verdict for the report."""
    return replace(run, verdict=outcome) if run.verdict == BEST else run


def curves(trained: TrainedRun, folder: Path) -> tuple[Curve, ...]:
    """The loss along each stage of a run, from its journal."""
    assert trained.result is not None
    loss_curves = []
    for stage in (candidate for candidate in trained.result.stages if candidate["produces"] == "encoder"):
        lines = [line for line in read_journal(folder / stage["place"]) if "loss" in line]
        places = np.unique(np.linspace(0, len(lines) - 1, min(MOST_POINTS, len(lines))).astype(int))
        steps, loss = ([lines[place][name] for place in places] for name in ("step", "loss"))
        if steps:
            loss_curves.append(Curve(trained.run.route, stage["stage"], tuple(steps), tuple(loss)))
    return tuple(loss_curves)


def geometries(
    runs: Sequence[TrainedRun], bases: Sequence[Base], parts: Sequence[HeldOut], memory: Memory
) -> dict[str, dict[str, PairGeometry | None]]:
    """By route: the geometry of its base and of every run."""
    starts = {base.path: geometry(base.encoder, parts, memory) for base in bases}
    by_route: dict[str, dict[str, PairGeometry | None]] = {}
    for trained in runs:
        if trained.result:
            start = starts[base_at(bases, trained.plan.base).path]
            points = by_route.setdefault(trained.run.route, {BASE: start})
            points[_round(trained)] = geometry(trained.encoder(), parts, memory)
    return by_route


def _round(trained: TrainedRun) -> str:
    return "merged" if trained.route else f"round {trained.run.rung}"


def geometry(encoder: Encoder, parts: Sequence[HeldOut], memory: Memory) -> PairGeometry | None:
    """The geometry of a model on pairs that belong together, most of them cached; None if no pairs are known."""
    pairs = [pair for part in parts for pair in part.related]
    if not pairs:
        return None
    left, right = zip(*pairs, strict=True)
    vectors = encode_distinct(lambda texts: vectors_of(encoder, texts, "symmetric", memory), [*left, *right])
    lefts, rights = (np.stack([vectors[text] for text in side]) for side in (left, right))
    return PairGeometry(
        alignment(lefts, rights), gauge(np.stack([vectors[text] for text in dict.fromkeys([*left, *right])]))
    )


def trail(route: str, points: Mapping[str, PairGeometry | None]) -> Trail:
    """Alignment and uniformity along a route."""
    known = [(label, point.alignment, point.gauges.uniformity) for label, point in points.items() if point]
    return Trail(route, tuple(known))


def collapse_warnings(points: Mapping[str, PairGeometry | None], best: TrainedRun) -> Iterator[str]:
    """A warning if the vectors of the best run have collapsed compared with the base."""
    before, after = points[BASE], points[_round(best)]
    signs = alarms(after.gauges, before.gauges, lost_rank=LOST_RANK) if before and after else []
    if signs:
        yield f"The vectors have collapsed: {'; '.join(signs)}."


def histogram(before: Encoder, after: Encoder, parts: Sequence[HeldOut], memory: Memory) -> Histogram | None:
    """The cosines of pairs that belong together, and of the same texts paired differently."""
    pairs = [pair for part in parts for pair in part.related]
    if len(pairs) < 2:
        return None
    cosines = [_related_and_not(encoder, pairs, memory) for encoder in (before, after)]
    least = min(-0.2, *(float(values.min()) for both in cosines for values in both))
    edges = np.linspace(least, 1.0, BINS + 1)
    counts = [np.histogram(np.clip(values, least, 1.0), edges)[0].tolist() for both in cosines for values in both]
    return Histogram(tuple(edges.tolist()), *(tuple(count) for count in counts))


def _related_and_not(
    encoder: Encoder, pairs: Sequence[tuple[str, str]], memory: Memory
) -> tuple[npt.NDArray[np.float64], ...]:
    left, right = (vectors_of(encoder, list(side), "symmetric", memory) for side in zip(*pairs, strict=True))
    return cosine_of_pairs(left, right), cosine_of_pairs(left, np.roll(right, 1, axis=0))


def neighbours(before: Encoder, after: Encoder, parts: Sequence[HeldOut], memory: Memory) -> tuple[NearestTexts, ...]:
    """What a few test texts find among the others, before and after."""
    queries, documents = _queries_and_documents(parts)
    if len(documents) <= NEAREST:
        return ()
    nearest = []
    for encoder in (before, after):
        vectors = vectors_of(encoder, documents, "document", memory)
        numbers, cosines = top_k(vectors_of(encoder, queries, "query", memory), vectors, NEAREST + 1)
        rows = zip(queries, numbers.tolist(), cosines.tolist(), strict=True)
        nearest.append([_others(*row, documents) for row in rows])
    return tuple(NearestTexts(*row) for row in zip(map(shortened, queries), *nearest, strict=True))


def _others(
    query: str, numbers: Sequence[int], cosines: Sequence[float], documents: Sequence[str]
) -> tuple[tuple[float, str], ...]:
    """The nearest texts except the query itself."""
    near = [(cosine, documents[number]) for number, cosine in zip(numbers, cosines, strict=True)]
    return tuple((cosine, shortened(text)) for cosine, text in near if text != query)[:NEAREST]


def _queries_and_documents(parts: Sequence[HeldOut]) -> tuple[list[str], list[str]]:
    """A few queries, evenly from all test rows, and the texts to search in."""
    queries, documents = [], []
    for part in parts:
        asked, shown = handler(part.data).shown_columns
        queries += part.data.column(asked).to_pylist()
        documents += part.data.column(shown).to_pylist()
    distinct = list(dict.fromkeys(queries))
    places = np.linspace(0, len(distinct) - 1, min(SAMPLES, len(distinct))).astype(int)
    return [distinct[place] for place in places], list(dict.fromkeys(documents))[:MOST_TEXTS]


@dataclass(frozen=True)
class Refusal:
    """What the advice after a refusal depends on."""

    decided: Measure
    validation_gain: float
    folder: Path
    label_free: bool = False
    not_prose: bool = False
    late: tuple[str, ...] = ()  # routes that a larger budget would have time for
    steps: int = 0  # of the training; 0: nothing was trained for it

    @property
    def advice(self) -> tuple[Advice, ...]:
        """What the numbers mean, and what to try next."""
        if self.not_prose:
            return (Advice(AdviceKind.LABEL),)
        short = 0 < self.steps <= LEAST_STEPS and not self.decided.worse
        return (*self._advice(), *([Advice(AdviceKind.MORE_STEPS, self.steps)] if short else []))

    def _advice(self) -> Iterator[Advice]:
        if not self.label_free or self.decided.worse or not self.decided.has_enough_clusters:
            yield self._meaning
        if self.decided.before >= LITTLE_LEFT:
            yield Advice(AdviceKind.LITTLE_LEFT)
        if self.label_free:
            yield Advice(AdviceKind.TICK, names=(str(self.folder),))
            yield Advice(AdviceKind.ADD_PAIRS)
        else:
            yield Advice(AdviceKind.IMPROVE_DATA)
        if self.late:
            yield Advice(AdviceKind.MORE_TIME, names=self.late)

    @property
    def _meaning(self) -> Advice:
        if not self.decided.has_enough_clusters:
            return Advice(AdviceKind.ADD_CLUSTERS)
        if self.decided.worse:
            return Advice(AdviceKind.KEEP_BASE)
        if self.decided.better and self.validation_gain <= 0:
            return Advice(AdviceKind.SETTLE)
        needed = _clusters_needed(self.decided)
        return Advice(AdviceKind.KEEP_BETTER_BASE) if needed is None else Advice(AdviceKind.ADD_ROWS, needed)


def advice_after(proof: Proof, best: TrainedRun, prepared: Prepared, plan: FitPlan, folder: Path) -> tuple[Advice, ...]:
    """What may help a fit that the gate refused."""
    stages = best.result.stages if best.result else ()
    return Refusal(
        proof.decided,
        best.run.difference or 0.0,
        folder,
        label_free=prepared.label_free,
        not_prose=proof.not_prose,
        late=tuple(route.name for route in plan.skipped if route.for_time),
        steps=sum(stage["outcome"]["steps"] for stage in stages if "outcome" in stage),
    ).advice


def _clusters_needed(decided: Measure) -> int | None:
    """How many clusters show this gain in 80% of cases (an interval's width falls with their root); None without one.

    A gain that needs more than `MOST_CLUSTERS` is as good as none.
    """
    if decided.difference <= 0:
        return None
    half = decided.difference - decided.low
    needed = math.ceil(POWER * decided.clusters * (half / decided.difference) ** 2)
    return max(needed, decided.clusters + 1) if needed <= MOST_CLUSTERS else None
