"""`fit`, the main job: look at the data, try the routes that it permits, compare, choose or refuse, and tell.

MODEL/               the encoder, an ordinary sentence-transformers folder; not there if the gate refuses it
MODEL.fit/           all else
    plan.json        what is done: made once, so that a call that goes on does the same
    data/            the training rows of each input, without what is held out
    recipes/         every run as a recipe
    stages/ ...      what the runs gave, under content hashes (see `stages.running`)
    corpus.parquet   what `sentloom search MODEL` looks in
    report.json, report.html, report.md, plots/
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from accelerate import Accelerator

from sentloom.encoder import Encoder
from sentloom.errors import InputError, TrainingStopped
from sentloom.evaluation.bench import score_tasks
from sentloom.evaluation.evaluate import open_memory
from sentloom.fitting.gate import agreement
from sentloom.fitting.gauges import K, shared_neighbours
from sentloom.fitting.plan import (
    REVISION,
    FitPlan,
    Rates,
    bearable_routes,
    make_plan,
    pace_of,
    read_plan,
    seconds_a_step,
)
from sentloom.fitting.prepare import (
    Prepared,
    find_resources,
    pairs_a_second,
    prepare_inputs,
    refuse_nothing,
    stand_in_triplets,
    views_a_second,
    with_negatives,
    written_a_second,
)
from sentloom.fitting.race import Log, RaceContext, Trained, race, score_chosen, twin, winner
from sentloom.fitting.request import Request
from sentloom.fitting.result import FitResult, Stability
from sentloom.fitting.routes import Route, SkippedRoute, find_routes
from sentloom.fitting.tasks import PANEL_TEXTS
from sentloom.fitting.telling import build_result
from sentloom.fitting.verify import Duel, prove, refuse_no_prose
from sentloom.pipeline.runner import refuse_no_model, start_accelerator


def refuse_before(request: Request) -> None:
    """Say at once what would only show at the end."""
    if not request.data or not all(request.data):
        raise InputError("data", "none", "one file or more", "name what there is to learn from")
    if not all(request.against):
        raise InputError("--against", "an empty name", "a set or a file", "name one, or leave it out")
    assert request.means, "a budget that is understood"
    refuse_no_model(request.output)
    _refuse_foreign_model(request)


def _refuse_foreign_model(request: Request) -> None:
    """A model is replaced only if a fit wrote it, and never by one that starts from it."""
    output = request.output.resolve()
    if output.exists() and Path(request.base).resolve() == output:
        found = "the base itself"
    elif output.exists() and not output.with_name(f"{output.name}.fit").is_dir():
        found = "a model that no fit wrote"
    else:
        return
    raise InputError(str(request.output), found, "a free name", "choose another folder")


def run(request: Request, log: Log) -> tuple[FitResult, Path]:
    """From inputs to a result, and the folder of the winner. Times are reported, and change nothing."""
    clock = _Clock()
    accelerator, base = start_accelerator((), request.folder), Encoder.load(request.base)
    prepared, memory = prepare_inputs(request, base, log), open_memory(request.folder / "measured")
    if not request.force:
        refuse_no_prose(base, prepared, memory)
    clock.lap("looking")
    plan = planned(request, prepared, base, accelerator, log)
    clock.lap("planning")
    tasks = prepared.deciding(prepared.choose)
    before = score_chosen(base, tasks, memory)
    context = RaceContext(
        plan, request.base_place, request.seed, request.folder, tasks, before, memory, accelerator, log
    )
    runs = race(context)
    best = winner(runs)
    if best is None:
        raise TrainingStopped("fit", "no route that ended well", "at least one", "look at what each run said above")
    clock.lap("training and choosing")
    proof = prove(Duel(base, model_of(best), memory), prepared, best.run.difference or 0.0)
    usable = proof.gate.passed or request.force
    agreed = stability(context, runs, best, prepared) if usable and prepared.label_free else None
    result = replace(build_result(request, prepared, plan, runs, best, proof, base), stability=agreed)
    clock.lap("proving and telling")
    assert best.result is not None
    assert best.result.model is not None
    return clock.into(result), best.result.model


def planned(request: Request, prepared: Prepared, base: Encoder, accelerator: Accelerator, log: Log) -> FitPlan:
    """The plan that was made before for the same inputs, or a new one; told either way."""
    path, inputs = request.folder / "plan.json", inputs_of(request, prepared, base)
    plan = read_plan(path, inputs)
    if plan:
        log(f"\nGoing on with the plan in {path}")
    else:
        plan = new_plan(inputs, request, prepared, base, accelerator, log)
        plan.write(path)
    for route in plan.routes:
        log(f"  will try {route.name}: {route.why}")
    for closed in plan.closed:
        log(f"  will not try {closed.name}: {closed.why}")
    for number, rung in enumerate(plan.rungs, 1):
        longest = max(sum(steps) for steps in rung.steps.values())
        log(f"  round {number}: {rung.runs} of them, up to {longest:,} steps each")
    return plan


def inputs_of(request: Request, prepared: Prepared, base: Encoder) -> dict[str, Any]:
    """All that a plan depends on."""
    return {
        "revision": REVISION,
        "folder": str(request.folder.resolve()),  # which the recipes of a plan name
        "data": [material.data.sha256 for material in prepared.materials],
        "base": base.fingerprint(),
        "budget": request.budget,
        "against": [task.sha256 for task in prepared.against],
        "synthesizer": request.synthesizer,
        "seed": request.seed,
        "shape": request.shape,
        "columns": request.columns and dict(request.columns),
    }


def new_plan(
    inputs: Mapping[str, Any], request: Request, prepared: Prepared, base: Encoder, accelerator: Accelerator, log: Log
) -> FitPlan:
    """Find the routes, and measure what they and a scoring cost."""
    means = find_resources(request, prepared, base)
    routes, closed = find_routes(prepared.bodies, means)
    log("\nMeasuring what the open routes cost ...")
    start = time.perf_counter()
    score_tasks(base, prepared.deciding(prepared.choose))
    scoring = time.perf_counter() - start
    rates = Rates(
        views_a_second(prepared, routes),
        pairs_a_second(prepared, base),
        written_a_second(prepared, request.synthesizer),
    )
    routes, dear = bearable_routes(routes, request.means, rates)
    closed = [*closed, *dear]
    refuse_nothing(routes, closed)
    with stand_in_triplets(routes, prepared, Path(means.mined)) as timed:
        known: dict[str, float] = {}
        seconds = {
            route.name: seconds_a_step(route, request.base_place, request.seed, request.folder, accelerator, known)
            for route in timed
        }

    def plan_of(routes: Sequence[Route], closed: Sequence[SkippedRoute]) -> FitPlan:
        paces = {route.name: pace_of(route, seconds[route.name], rates) for route in routes}
        return make_plan(inputs, routes, closed, paces, request.means, scoring)

    plan = plan_of(routes, closed)
    if not any(route.mined for route in plan.routes):  # nothing is mined for a route that will not run
        return plan
    log("Searching hard negatives ...")
    routes, without = with_negatives(routes, prepared, base, Path(means.mined))
    return plan_of(routes, [*closed, *without])


def stability(context: RaceContext, runs: Sequence[Trained], best: Trained, prepared: Prepared) -> Stability | None:
    """Where no labels decide: whether two seeds of the winner's route agree on the neighbours of held-out text."""
    texts = list(dict.fromkeys(text for part in prepared.prove for _, _, text in part.data.sentences()))[:PANEL_TEXTS]
    first = next(one for one in runs if one.run.route == best.run.route and one.result)
    second = twin(context, best) if len(texts) > K else None
    if second is None:
        return None
    one, other = (model_of(each).encode(texts) for each in (first, second))
    return agreement(shared_neighbours(one, other))


def model_of(trained: Trained) -> Encoder:
    """What a run gave."""
    assert trained.result is not None
    return Encoder.load(str(trained.result.model))


class _Clock:
    """What took how long."""

    def __init__(self) -> None:
        self.last, self.laps = time.perf_counter(), dict[str, float]()

    def lap(self, name: str) -> None:
        """The time since the last lap has a name."""
        now = time.perf_counter()
        self.last, self.laps[name] = now, now - self.last

    def into(self, result: FitResult) -> FitResult:
        """The story with its cost."""
        return replace(result, cost={**self.laps, **result.cost})
