"""From what was run to what is told: the story that the report and the model card are made of."""

import datetime
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from importlib import metadata
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch

from sentloom.data.shapes import COLUMNS, Shape
from sentloom.encoder import Encoder
from sentloom.evaluation.metrics import cosine_of_pairs
from sentloom.fitting.advice import advise
from sentloom.fitting.gauges import Gauges, collapsed, gauges
from sentloom.fitting.inputs import left_out
from sentloom.fitting.plan import FitPlan
from sentloom.fitting.prepare import Prepared
from sentloom.fitting.race import BEST, Trained
from sentloom.fitting.request import Request
from sentloom.fitting.result import (
    Curve,
    FitResult,
    Histogram,
    InputSummary,
    Neighbours,
    RouteSummary,
    Run,
    Trail,
    Verdict,
)
from sentloom.fitting.tasks import HeldOut
from sentloom.fitting.verify import Proof
from sentloom.pipeline.plan import to_yaml
from sentloom.pipeline.recipe import read_recipe
from sentloom.search.nearest import top_k
from sentloom.training.journal import read_journal

BINS = 40
SAMPLES = 6  # sentences whose neighbours are shown
NEAREST = 4
MOST_TEXTS = 2_000  # among which they are looked for
BASE = "base"  # the label of the start of a trail
VERSIONS = ("sentloom", "torch", "transformers", "sentence-transformers", "tokenizers", "numpy")


def build_result(
    request: Request,
    prepared: Prepared,
    plan: FitPlan,
    runs: Sequence[Trained],
    best: Trained,
    proof: Proof,
    base: Encoder,
) -> FitResult:
    """All of a fit but what it cost in time."""
    assert best.result is not None
    after = Encoder.load(str(best.result.model))
    lies = trails(runs, base, prepared.choose)
    verdict: Verdict = "written" if proof.gate.passed else "forced" if request.force else "refused"
    advice = () if proof.gate.passed else advice_after(proof, best, prepared, plan)
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
        sources=tuple(sources(prepared)),
        routes=tuple(routes(plan)),
        runs=tuple(final_run(one.run, verdict) for one in runs),
        measures=proof.measures,
        total=proof.decided,
        advice=advice,
        curves=curves(best, request.folder),
        trails=tuple(trail(route, points) for route, points in lies.items()),
        histogram=histogram(base, after, prepared.prove),
        neighbours=neighbours(base, after, prepared.prove),
        warnings=(*proof.warnings, *_collapse(lies[best.run.route], best)),
        recipe=to_yaml(read_recipe(best.recipe).resolve()),
        budget=request.budget,
        versions={name: metadata.version(name) for name in VERSIONS},
        hashes=hashes | {one.name: one.data.sha256 for one in prepared.materials},
        cost={
            "all trainings, whenever they ran": sum(one.run.seconds for one in runs),
            "threads": str(torch.get_num_threads()),
        },
    )


def final_run(run: Run, verdict: Verdict) -> Run:
    """A run with the word that the report has for it: the best one has won only if its model is better."""
    if run.verdict != BEST:
        return run
    return replace(run, verdict="won" if verdict == "written" else f"{BEST}, {verdict}")


def advice_after(proof: Proof, best: Trained, prepared: Prepared, plan: FitPlan) -> tuple[str, ...]:
    """What may help a fit that the gate refused."""
    chosen = best.run.difference or 0.0
    return advise(proof.decided, chosen, label_free=prepared.label_free, no_prose=proof.no_prose, closed=plan.closed)


def routes(plan: FitPlan) -> Iterator[RouteSummary]:
    """Those that were tried, and those that were not."""
    for route in plan.routes:
        yield RouteSummary(route.name, route.why, tried=True)
    for closed in plan.closed:
        yield RouteSummary(closed.name, closed.why, tried=False)


def sources(prepared: Prepared) -> Iterator[InputSummary]:
    """What became of every input."""
    for material, split, trained in zip(prepared.materials, prepared.splits, prepared.trained, strict=True):
        yield InputSummary(
            name=material.name,
            shape=str(material.data.shape),
            rows=material.inspection.rows,
            distinct=len(material.data),
            language=material.language,
            languages=material.shares,
            words=material.words,
            duplicates=material.inspection.duplicate_rows,
            held_out=len(split.choose) + len(split.prove),
            trained=len(trained),
            sha256=material.data.sha256,
            notes=(*material.data.notes, *left_out(material)),
        )


def trails(runs: Sequence[Trained], base: Encoder, parts: Sequence[HeldOut]) -> dict[str, dict[str, Gauges | None]]:
    """How vectors lie: of the base, and of every run, by route."""
    start = lie(base, parts)
    found: dict[str, dict[str, Gauges | None]] = {}
    for one in runs:
        if one.result:
            points = found.setdefault(one.run.route, {BASE: start})
            points[_round(one)] = lie(Encoder.load(str(one.result.model)), parts)
    return found


def _round(one: Trained) -> str:
    return f"round {one.run.rung}"


def _collapse(points: Mapping[str, Gauges | None], best: Trained) -> Iterator[str]:
    before, after = points[BASE], points[_round(best)]
    if before and after and (reason := collapsed(before, after)):
        yield f"The vectors have collapsed: {reason}."


def curves(trained: Trained, folder: Path) -> tuple[Curve, ...]:
    """The loss along each stage of a run, as its journal has it."""
    assert trained.result is not None
    found = []
    for stage in (one for one in trained.result.stages if "outcome" in one):
        lines = [
            line for line in read_journal(folder / "stages" / f"{stage['stage']}-{stage['key']}") if "loss" in line
        ]
        steps, loss = ([line[name] for line in lines] for name in ("step", "loss"))
        if steps:
            found.append(Curve(trained.run.route, stage["stage"], tuple(steps), tuple(loss)))
    return tuple(found)


def lie(encoder: Encoder, parts: Sequence[HeldOut]) -> Gauges | None:
    """How a model's vectors lie, over pairs that belong together; None where none are known."""
    pairs = [pair for part in parts for pair in part.related]
    if not pairs:
        return None
    left, right = zip(*pairs, strict=True)
    return gauges(encoder.encode, left, right, [*left, *right])


def trail(route: str, points: Mapping[str, Gauges | None]) -> Trail:
    """A route's way from the base on."""
    known = [(label, one.alignment, one.uniformity) for label, one in points.items() if one]
    return Trail(route, tuple(known))


def histogram(before: Encoder, after: Encoder, parts: Sequence[HeldOut]) -> Histogram | None:
    """The cosines of pairs that belong together, and of the same texts paired anew."""
    pairs = [pair for part in parts for pair in part.related]
    if len(pairs) < 2:
        return None
    cosines = [_related_and_not(encoder, pairs) for encoder in (before, after)]
    least = min(-0.2, *(float(some.min()) for both in cosines for some in both))
    edges = np.linspace(least, 1.0, BINS + 1)
    counts = [np.histogram(np.clip(some, least, 1.0), edges)[0].tolist() for both in cosines for some in both]
    return Histogram(tuple(edges.tolist()), *(tuple(one) for one in counts))


def _related_and_not(encoder: Encoder, pairs: Sequence[tuple[str, str]]) -> tuple[npt.NDArray[np.float64], ...]:
    left, right = (encoder.encode(list(side)) for side in zip(*pairs, strict=True))
    return cosine_of_pairs(left, right), cosine_of_pairs(left, np.roll(right, 1, axis=0))


def neighbours(before: Encoder, after: Encoder, parts: Sequence[HeldOut]) -> tuple[Neighbours, ...]:
    """What some held-out texts find among the others, before and after."""
    asked, among = _asked(parts)
    if len(among) <= NEAREST:
        return ()
    found = []
    for encoder in (before, after):
        documents = encoder.encode(among, role="document")
        numbers, cosines = top_k(encoder.encode(asked, role="query"), documents, NEAREST + 1)
        found.append([_others(*row, among) for row in zip(asked, numbers.tolist(), cosines.tolist(), strict=True)])
    return tuple(Neighbours(*row) for row in zip(asked, *found, strict=True))


def _others(
    asked: str, numbers: Sequence[int], cosines: Sequence[float], among: Sequence[str]
) -> tuple[tuple[float, str], ...]:
    """The nearest texts but the one that asks."""
    near = [(cosine, among[number]) for number, cosine in zip(numbers, cosines, strict=True)]
    return tuple(one for one in near if one[1] != asked)[:NEAREST]


def _asked(parts: Sequence[HeldOut]) -> tuple[list[str], list[str]]:
    """Texts that look for others, evenly from all held-out rows, and the texts that they look among."""
    asking, among = [], []
    for part in parts:
        names = [name for name in COLUMNS[part.data.shape] if name not in ("negatives", "score", "label")]
        asking += part.data.column(names[0]).to_pylist()
        among += part.data.column(names[-1] if part.data.shape is not Shape.SCORED_PAIRS else names[0]).to_pylist()
    distinct = list(dict.fromkeys(asking))
    places = np.linspace(0, len(distinct) - 1, min(SAMPLES, len(distinct))).astype(int)
    return [distinct[place] for place in places], list(dict.fromkeys(among))[:MOST_TEXTS]
