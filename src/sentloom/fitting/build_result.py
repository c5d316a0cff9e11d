"""The last step: everything that was done and measured, as one result that the report and the model card render."""

import datetime
from collections.abc import Iterator, Sequence
from dataclasses import replace
from importlib import metadata
from pathlib import Path

import torch

from sentloom.evaluation.bench import Memory
from sentloom.fitting.advice import advise
from sentloom.fitting.base_languages import language_gap
from sentloom.fitting.bases import Base, base_at
from sentloom.fitting.gate import Gate
from sentloom.fitting.inputs import describe_unusable
from sentloom.fitting.plan import FitPlan
from sentloom.fitting.prepare import Prepared
from sentloom.fitting.race import BEST, TrainedRun
from sentloom.fitting.reference import mean_score
from sentloom.fitting.request import Request
from sentloom.fitting.result import BaseSummary, FitResult, InputSummary, RouteSummary, Run
from sentloom.fitting.result_figures import collapse_warnings, curves, geometries, histogram, neighbours, trail
from sentloom.fitting.training_sets import cut_line
from sentloom.fitting.verify import Proof
from sentloom.pipeline.plan import to_yaml

VERSIONS = ("sentloom", "torch", "transformers", "tokenizers", "numpy")  # what the numbers depend on


def build_result(
    request: Request,
    prepared: Prepared,
    plan: FitPlan,
    runs: Sequence[TrainedRun],
    best: TrainedRun,
    proof: Proof,
    bases: Sequence[Base],
    memory: Memory,
) -> FitResult:
    """The whole result except stability, merging, languages, dimensions and the time that each part took."""
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
        bases=tuple(base_summaries(bases, reference, prepared, memory)),
        model=str(request.output) if written else None,
        forced=written and not proof.gate.passed,
        created=datetime.datetime.now(datetime.UTC).date().isoformat(),
        command=request.command,
        against=tuple(map(request.label, request.against)),
        sources=tuple(input_summaries(prepared)),
        routes=tuple(route_summaries(plan)),
        runs=tuple(final_run(one.run, outcome(proof.gate, written)) for one in runs),
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
        hashes=hashes | {given.name: given.data.sha256 for given in prepared.inputs},
        cost={
            "all training, whenever it ran": sum(one.run.seconds for one in runs),
            "threads": str(torch.get_num_threads()),
        },
    )


def _title(request: Request) -> str:
    return f"{request.output.name}, fitted to {' and '.join(Path(request.label(one)).name for one in request.data)}"


def base_summaries(bases: Sequence[Base], reference: Base, prepared: Prepared, memory: Memory) -> Iterator[BaseSummary]:
    """Every base with its score on the validation rows, the best first."""
    scored = [(mean_score(one, prepared, memory), one) for one in bases]
    for score, one in sorted(scored, key=lambda both: -both[0]):
        yield BaseSummary(
            *(one.name, one.parameters, one.encoder.dimension, score, one is reference),
            prompts=one.is_asymmetric,
            adapters=one.is_large,
            languages=one.languages,
            made_for=one.made_for,
        )


def input_summaries(prepared: Prepared) -> Iterator[InputSummary]:
    """What became of the rows of every input."""
    for given, rows, cut in zip(prepared.inputs, prepared.row_counts, prepared.cuts, strict=True):
        yield InputSummary(
            name=given.name,
            shape=str(given.data.shape),
            rows=rows,
            distinct=len(given.data),
            language=given.language,
            languages=given.shares,
            words=given.words,
            duplicates=given.inspection.duplicate_rows,
            sha256=given.data.sha256,
            notes=(*given.data.notes, *describe_unusable(given), *(() if prepared.recipe else (cut_line(cut),))),
        )


def route_summaries(plan: FitPlan) -> Iterator[RouteSummary]:
    """The routes that were tried, and those that were skipped."""
    yield from (RouteSummary(route.name, route.why, tried=True) for route in plan.routes)
    yield from (RouteSummary(one.name, one.why, tried=False) for one in plan.skipped)


def outcome(gate: Gate, written: bool) -> str:
    """What became of the best run: it has won only if its model is better than the base."""
    return "won" if gate.passed else f"{BEST}, {'forced' if written else 'not written'}"


def final_run(run: Run, outcome: str) -> Run:
    """The run with its verdict for the report."""
    return replace(run, verdict=outcome) if run.verdict == BEST else run


def advice_after(proof: Proof, best: TrainedRun, prepared: Prepared, plan: FitPlan, folder: Path) -> tuple[str, ...]:
    """What may help a fit that the gate refused."""
    stages = best.result.stages if best.result else ()
    return advise(
        proof.decided,
        best.run.difference or 0.0,
        label_free=prepared.label_free,
        not_prose=proof.not_prose,
        skipped=plan.skipped,
        folder=folder,
        steps=sum(one["outcome"]["steps"] for one in stages if "outcome" in one),
    )
