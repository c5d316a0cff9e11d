"""The plan of a fit: which routes run, in how many rounds, how many steps each; made once and read again on resume."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from accelerate import Accelerator
from pydantic import TypeAdapter, ValidationError

from sentloom.encoder import Encoder
from sentloom.errors import DamagedFile, InputError
from sentloom.evaluation.bench import score_tasks
from sentloom.files import read_record, write_record
from sentloom.fitting.budget import Pace, Rung, affordable, rungs
from sentloom.fitting.costs import TimedRoute, affordable_routes, time_routes
from sentloom.fitting.prepare import Prepared
from sentloom.fitting.request import Budget, Log, Request
from sentloom.fitting.resources import find_resources
from sentloom.fitting.routes import Route, SkippedRoute, batch_size, find_routes
from sentloom.pipeline.plan import Plan
from sentloom.pipeline.runner import prepare
from sentloom.pipeline.stages import Mine, Train
from sentloom.progress import note

REVISION = 5  # raised when the same inputs would lead to another plan
FEWEST_NEGATIVES = 100  # pairs with a hard negative, for a route of their own


@dataclass(frozen=True)
class FitPlan:
    """What will be done. `inputs` is everything that the plan depends on: for other inputs there is a new plan."""

    inputs: Mapping[str, Any]
    routes: tuple[Route, ...]
    skipped: tuple[SkippedRoute, ...]
    paces: Mapping[str, Pace]
    scoring: float  # seconds to score one model
    rungs: tuple[Rung, ...]

    def route(self, name: str) -> Route:
        """A route by its name."""
        return next(route for route in self.routes if route.name == name)

    def write(self, path: Path) -> None:
        """Write it as JSON."""
        write_record(path, TypeAdapter(FitPlan).dump_python(self, mode="json"))


def read_plan(path: Path, inputs: Mapping[str, Any]) -> FitPlan | None:
    """The plan for these inputs; None if there is none, if it is damaged, or if it was made for other inputs."""
    if not path.is_file():
        return None
    try:
        plan = TypeAdapter(FitPlan).validate_python(read_record(path, ""))
    except (DamagedFile, ValidationError, InputError):
        note(f"{path} is damaged; making a new plan")
        return None
    return plan if plan.inputs == inputs else None


def find_plan(request: Request, prepared: Prepared, base: Encoder, accelerator: Accelerator, log: Log) -> FitPlan:
    """The plan that was made before for the same inputs, or a new one; described either way."""
    path, inputs = request.folder / "plan.json", plan_inputs(request, prepared, base)
    plan = read_plan(path, inputs)
    if plan:
        log(f"\nResuming the plan in {path}")
    else:
        plan = new_plan(inputs, request, prepared, base, accelerator, log)
        plan.write(path)
    for route in plan.routes:
        log(f"  try {route.name}: {route.why}")
    for skipped in plan.skipped:
        log(f"  skip {skipped.name}: {skipped.why}")
    for number, rung in enumerate(plan.rungs, 1):
        longest = max(sum(steps) for steps in rung.steps.values())
        length = f"up to {longest:,} steps each" if longest else "as long as the recipe says"
        log(f"  round {number}: {rung.runs} {'routes' if rung.runs > 1 else 'route'}, {length}")
    return plan


def plan_inputs(request: Request, prepared: Prepared, base: Encoder) -> dict[str, Any]:
    """Everything that a plan depends on."""
    return {
        "revision": REVISION,
        "folder": str(request.folder.resolve()),  # the stages of a plan name it
        "data": [given.data.sha256 for given in prepared.inputs],
        "recipe": prepared.recipe and prepared.recipe.sha256,
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
    """Find the routes, and measure what training and scoring cost. A recipe has its own routes and lengths."""
    if prepared.recipe:
        own = prepared.recipe.routes
        return FitPlan(inputs, own, (), {}, 0.0, (Rung({route.name: () for route in own}, len(own), 0),))
    routes, skipped = find_routes(prepared.training_sets, find_resources(request, base))
    refuse_no_route(routes, skipped)
    log("\nMeasuring what each route costs ...")
    start = time.perf_counter()
    score_tasks(base, prepared.deciding(prepared.validation))
    scoring, budget = time.perf_counter() - start, request.parsed_budget
    timed, expensive = affordable_routes(time_routes(routes, request.base_path, request.seed, accelerator), budget)
    skipped = [*skipped, *expensive]
    refuse_no_route([one.route for one in timed], skipped)
    plan = make_plan(inputs, timed, skipped, budget, scoring)
    if not any(map(_miner, plan.routes)):  # nothing is mined for a route that will not run
        return plan
    log("Mining hard negatives ...")
    timed, without = with_mined_rows(timed, request, accelerator, log)
    return make_plan(inputs, timed, [*skipped, *without], budget, scoring)


def refuse_no_route(routes: Sequence[Route], skipped: Sequence[SkippedRoute]) -> None:
    """There must be at least one route."""
    if not routes:
        why = "; ".join(f"{one.name}: {one.why}" for one in skipped)
        raise InputError("data", f"no method can learn from it ({why})", "", "add data of another shape")


def make_plan(
    inputs: Mapping[str, Any],
    timed: Sequence[TimedRoute],
    skipped: Sequence[SkippedRoute],
    budget: Budget,
    scoring: float,
) -> FitPlan:
    """Fix which routes run, in what order and how long: the cheapest first; too expensive ones are skipped."""
    paces = {one.route.name: one.pace for one in timed}
    names = affordable(paces, budget, scoring)
    routes = {one.route.name: one.route for one in timed}
    expensive = [
        SkippedRoute(name, "the budget has no time for it besides the cheaper ones", for_time=True)
        for name in paces
        if name not in names
    ]
    field = {name: paces[name] for name in names}
    lengths = tuple(rungs(field, budget, scoring))
    return FitPlan(inputs, tuple(routes[name] for name in names), (*skipped, *expensive), field, scoring, lengths)


def with_mined_rows(
    timed: Sequence[TimedRoute], request: Request, accelerator: Accelerator, log: Log
) -> tuple[list[TimedRoute], list[SkippedRoute]]:
    """Mine now, because the number of negatives bounds a run's length; skip routes for which few are found."""
    kept, skipped = list[TimedRoute](), list[SkippedRoute]()
    for one in timed:
        miner = _miner(one.route)
        found = _mined(miner, request, accelerator, log) if miner else None
        if miner is None or found is None:
            kept.append(one)
        elif found >= FEWEST_NEGATIVES:
            kept.append(_with_negatives(one, miner, found))
        else:
            why = f"hard negatives were found for {found:,} pairs, and it needs {FEWEST_NEGATIVES}"
            skipped.append(SkippedRoute(one.route.name, why))
    return kept, skipped


def _miner(route: Route) -> Mine | None:
    """The stage that mines with a model that is there before anything is trained."""
    return next((one for one in route.stages if isinstance(one, Mine) and one.model), None)


def _mined(miner: Mine, request: Request, accelerator: Accelerator, log: Log) -> int:
    """Run the stage; its artifact is reused when the route runs."""
    plan = Plan("mining", request.base_path, (miner,), seeds=(request.seed,))
    try:
        (runner,) = prepare([plan], request.folder, accelerator, log)
        (result,) = runner.run()
    except InputError:  # none at all
        return 0
    return int(result.stages[0]["produced"]["rows"])


def _with_negatives(timed: TimedRoute, miner: Mine, found: int) -> TimedRoute:
    """The route with as many rows as there are triplets, in smaller batches if they are few."""
    trains_on = tuple(
        replace(learnt, rows=found) if miner.name in one.references() else learnt for one, _, learnt in timed.training
    )
    stages = tuple(
        _with_smaller_batch(one, found) if isinstance(one, Train) and miner.name in one.references() else one
        for one in timed.route.stages
    )
    return TimedRoute(replace(timed.route, stages=stages), timed.forecasts, trains_on)


def _with_smaller_batch(one: Train, rows: int) -> Train:
    batch = min(one.settings.batch, batch_size(rows))
    return one.model_copy(update={"settings": one.settings.model_copy(update={"batch": batch})})
