"""The last step: everything that was done and measured, as one result that the report and the model card render."""

import datetime
from collections.abc import Iterator, Sequence
from dataclasses import replace
from importlib import metadata
from pathlib import Path

import torch

from sentloom.encoder import Encoder
from sentloom.fitting.advice import advise
from sentloom.fitting.inputs import describe_unusable
from sentloom.fitting.plan import FitPlan
from sentloom.fitting.prepare import Prepared
from sentloom.fitting.race import BEST, Trained
from sentloom.fitting.request import Request
from sentloom.fitting.result import FitResult, InputSummary, RouteSummary, Run, Verdict
from sentloom.fitting.result_figures import collapse_warnings, curves, geometries, histogram, neighbours, trail
from sentloom.fitting.verify import Proof
from sentloom.pipeline.plan import to_yaml

VERSIONS = ("sentloom", "torch", "transformers", "tokenizers", "numpy")  # what the numbers depend on


def build_result(
    request: Request,
    prepared: Prepared,
    plan: FitPlan,
    runs: Sequence[Trained],
    best: Trained,
    proof: Proof,
    base: Encoder,
) -> FitResult:
    """The whole result except stability and the time that each part took."""
    after, by_route = best.encoder(), geometries(runs, base, prepared.validation)
    verdict: Verdict = "written" if proof.gate.passed else "forced" if request.force else "refused"
    hashes = {"base": base.fingerprint(), "model": after.fingerprint()}
    return FitResult(
        title=f"{request.output.name}, fitted to {' and '.join(Path(name).name for name in request.data)}",
        verdict=verdict,
        reason=proof.gate.reason,
        base=request.base,
        model=None if verdict == "refused" else str(request.output),
        created=datetime.datetime.now(datetime.UTC).date().isoformat(),
        command=request.command,
        against=request.against,
        sources=tuple(input_summaries(prepared)),
        routes=tuple(route_summaries(plan)),
        runs=tuple(final_run(one.run, verdict) for one in runs),
        measures=proof.measures,
        total=proof.decided,
        advice=() if proof.gate.passed else advice_after(proof, best, prepared, plan),
        curves=curves(best, request.folder),
        trails=tuple(trail(route, points) for route, points in by_route.items()),
        histogram=histogram(base, after, prepared.test),
        neighbours=neighbours(base, after, prepared.test),
        warnings=(*proof.warnings, *collapse_warnings(by_route[best.run.route], best)),
        recipe=to_yaml(best.plan),
        budget=request.budget,
        versions={name: metadata.version(name) for name in VERSIONS},
        hashes=hashes | {given.name: given.data.sha256 for given in prepared.inputs},
        cost={
            "all training, whenever it ran": sum(one.run.seconds for one in runs),
            "threads": str(torch.get_num_threads()),
        },
    )


def input_summaries(prepared: Prepared) -> Iterator[InputSummary]:
    """What became of the rows of every input."""
    for given, split, rows in zip(prepared.inputs, prepared.splits, prepared.training_rows, strict=True):
        yield InputSummary(
            name=given.name,
            shape=str(given.data.shape),
            rows=given.inspection.rows,
            distinct=len(given.data),
            language=given.language,
            languages=given.shares,
            words=given.words,
            duplicates=given.inspection.duplicate_rows,
            held_out=len(split.validation) + len(split.test),
            trained=len(rows),
            sha256=given.data.sha256,
            notes=(*given.data.notes, *describe_unusable(given)),
        )


def route_summaries(plan: FitPlan) -> Iterator[RouteSummary]:
    """The routes that were tried, and those that were skipped."""
    yield from (RouteSummary(route.name, route.why, tried=True) for route in plan.routes)
    yield from (RouteSummary(one.name, one.why, tried=False) for one in plan.skipped)


def final_run(run: Run, verdict: Verdict) -> Run:
    """The run with its verdict for the report: the best one has won only if its model is better than the base."""
    if run.verdict != BEST:
        return run
    return replace(run, verdict="won" if verdict == "written" else f"{BEST}, {verdict}")


def advice_after(proof: Proof, best: Trained, prepared: Prepared, plan: FitPlan) -> tuple[str, ...]:
    """What may help a fit that the gate refused."""
    return advise(
        proof.decided,
        best.run.difference or 0.0,
        label_free=prepared.label_free,
        not_prose=proof.not_prose,
        skipped=plan.skipped,
    )
