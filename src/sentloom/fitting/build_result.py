"""The result of a fit: what was read, tried and shown, and what to do next."""

import datetime
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import metadata
from pathlib import Path

import torch

from sentloom.engine.plan import to_yaml
from sentloom.evaluation.task import Score
from sentloom.fitting.advice import Advice, Refusal
from sentloom.fitting.bases import Base, base_at, language_gap
from sentloom.fitting.classifying import Classified
from sentloom.fitting.figures import collapse_warnings, curves, geometries, histogram, neighbours, trail
from sentloom.fitting.gate import Gate
from sentloom.fitting.inputs import describe_unusable
from sentloom.fitting.measures import Measure
from sentloom.fitting.plan import FitPlan, Job
from sentloom.fitting.planning import Standing
from sentloom.fitting.prepare import Prepared
from sentloom.fitting.race import BEST, TrainedRun
from sentloom.fitting.request import Request
from sentloom.fitting.result import (
    BaseSummary,
    ClassifierSummary,
    FitResult,
    InputSummary,
    Merging,
    RouteSummary,
    Run,
    Stability,
    SystemResult,
)
from sentloom.fitting.training_sets import cut_line
from sentloom.fitting.verify import Proof, language_warnings

VERSIONS = ("sentloom", "torch", "transformers", "tokenizers", "numpy")  # what the numbers depend on


@dataclass(frozen=True)
class Raced:
    """What a race came to."""

    standings: Sequence[Standing]  # of the bases
    reference: Base  # that the winner has to beat
    runs: Sequence[TrainedRun]
    best: TrainedRun

    @property
    def bases(self) -> list[Base]:
        """The bases that raced."""
        return [standing.base for standing in self.standings]

    @property
    def choosing(self) -> tuple[Sequence[Score], Sequence[Score]]:
        """What the reference and the winner scored on what they were chosen on."""
        before = next(standing.scores for standing in self.standings if standing.base is self.reference)
        return before, self.best.scores


@dataclass(frozen=True)
class Findings:
    """What the tests of the winner came to; all but the proof and the system only informs."""

    proof: Proof
    classified: Classified | None  # None: there are no labels
    system: SystemResult | None
    merging: Merging | None
    stability: Stability | None
    by_language: tuple[Measure, ...]
    by_dimension: tuple[Measure, ...]


def build_result(job: Job, prepared: Prepared, raced: Raced, findings: Findings) -> FitResult:
    """The whole result except the time that each part took."""
    request, plan, proof, classified = job.request, job.plan, findings.proof, findings.classified
    runs, best, reference = raced.runs, raced.best, raced.reference
    own, forced = base_at(raced.bases, best.plan.base), request.force and not proof.gate.passed
    written = proof.gate.passed or request.force or classified is not None
    hashes = {"base": reference.encoder.fingerprint(), "model": best.encoder().fingerprint()}
    result = FitResult(
        title=_title(request),
        verdict=proof.gate.verdict,
        reason=proof.gate.reason,
        base=reference.name,
        started_from=own.name,
        bases=tuple(base_summaries(raced.standings, reference, plan.latencies)),
        max_latency=request.max_latency,
        model=str(request.output) if written else None,
        forced=forced,
        classifiers=_classifiers(classified, request),
        created=datetime.datetime.now(datetime.UTC).date().isoformat(),
        command=request.command,
        against=tuple(map(request.label, request.against)),
        sources=tuple(input_summaries(prepared)),
        routes=tuple(route_summaries(plan)),
        runs=tuple(final_run(trained.run, outcome(proof.gate, forced, classified)) for trained in runs),
        measures=proof.measures,
        total=proof.decided,
        by_language=findings.by_language,
        by_dimension=findings.by_dimension,
        merging=findings.merging,
        changes=plan.changes,
        stability=findings.stability,
        tested=best.model.relative_to(request.folder).as_posix(),
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
        advice=()
        if proof.gate.passed or not prepared.proving
        else advice_after(proof, best, prepared, plan, request.folder),
        warnings=(
            *_other_vectors(request, written and not (classified and not classified.fitted)),
            *language_gap(own, prepared.inputs),
            *proof.warnings,
            *language_warnings(findings.by_language),
            *plan.warnings,
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
    return _with_figures(result, job, prepared, raced)


def _with_figures(result: FitResult, job: Job, prepared: Prepared, raced: Raced) -> FitResult:
    """The result with what its figures show, and a warning if the vectors have collapsed."""
    base, best, test, memory = raced.reference.encoder, raced.best, prepared.test, job.memory
    by_route = geometries(raced.runs, raced.bases, prepared.validation or test, memory)
    return replace(
        result,
        curves=curves(best, job.request.folder),
        trails=tuple(trail(route, points) for route, points in by_route.items()),
        histogram=histogram(base, best.encoder(), test, memory),
        neighbours=neighbours(base, best.encoder(), test, memory) if job.request.examples else (),
        warnings=(*result.warnings, *collapse_warnings(by_route[best.run.route], best)),
    )


def _classifiers(classified: Classified | None, request: Request) -> tuple[ClassifierSummary, ...]:
    """What is known about the classifiers, with texts of rows if these may be shown."""
    if classified is None or request.examples:
        return classified.summaries if classified else ()
    return tuple(replace(summary, mistakes=(), suspects=()) for summary in classified.summaries)


def _other_vectors(request: Request, is_new: bool) -> Iterator[str]:
    """What to do with an index after a model is continued."""
    if request.continue_ and is_new:
        old = request.continue_.name
        yield f"Its vectors are other ones than those of {old}, which it continues: an index of those must be rebuilt."


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


def outcome(gate: Gate, forced: bool, classified: Classified | None = None) -> str:
    """What became of the best run: it has won only if its model is better than the base."""
    if gate.passed:
        return "won"
    if forced:
        return f"{BEST}, forced"
    return f"{BEST}, {'written for its classifier' if classified and classified.fitted else 'not written'}"


def final_run(run: Run, outcome: str) -> Run:
    """The run with its verdict for the report."""
    return replace(run, verdict=outcome) if run.verdict == BEST else run


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
