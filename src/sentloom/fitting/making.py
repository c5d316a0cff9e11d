"""Making the data of all routes before the race: views, mined negatives and what a writer writes.

What comes of it bounds how long a route trains, and a route whose data is too little or too late is skipped. Making is
under the clock, as the race is: the share of time that a run gets, where its decay begins and which runs are dropped
are decided here for both.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from accelerate import Accelerator

from sentloom.data.shapes import Shape
from sentloom.engine.plan import Plan
from sentloom.engine.runner import prepare
from sentloom.engine.stages import Stage, Train
from sentloom.engine.stages.synthesize import WritingStopped
from sentloom.errors import InputError
from sentloom.fitting.budget import LEAST_STEPS, Pace, least_cost, made_share, most_expensive, most_steps, round_costs
from sentloom.fitting.clock import Clock
from sentloom.fitting.plan import FitPlan, refuse_no_route, time_left
from sentloom.fitting.request import Budget, Log, Request
from sentloom.fitting.routes import FEWEST_NEGATIVES, Route, batch_size
from sentloom.progress import OutOfTime
from sentloom.training.optimizers import stable_steps, total_steps

FEWEST_KEPT = 25  # rows that a writer's filters kept: with fewer, a route is not worth it
LATE = "the time ran out before its data was made"
TOKEN_LIMIT = "The token limit was reached"
NO_TOKENS = "the token limit was reached before anything was written for it"

GRACE = 5.0  # seconds for up to ten steps before the decay, however late it is
LEAST_SHARE = 0.25  # of its planned training that a run must have time for, or it is dropped
SECONDS = Budget(1.0, None)  # of any size: with it, costs are in seconds


@dataclass
class Making:
    """What making the data of all routes shares, and the plan, which it changes."""

    plan: FitPlan
    request: Request
    budget: Budget  # of a single training
    accelerator: Accelerator
    clock: Clock
    log: Log

    def run(self) -> FitPlan:
        """Make the data of all routes: what comes of it bounds their length, and a route with too little is skipped."""
        for route in self.plan.routes:
            if route.makers and route.name not in self.plan.made:
                self._make(route)
        refuse_no_route(self.plan.routes, self.plan.skipped)
        return self.plan

    def _make(self, route: Route) -> None:
        rows = self._rows_or_reason(route)
        if isinstance(rows, str):
            self.log(f"{route.name} is skipped: {rows}")
            self._change(self.plan.without(route.name, rows, for_time=rows == LATE))
            return
        route = self.plan.route(route.name)  # which may write less now
        pace = bounded(self.plan.paces[route.name], route, rows, self.plan.trainings)
        plan = replace(self.plan, paces={**self.plan.paces, route.name: pace}, made=(*self.plan.made, route.name))
        self._change(plan.with_route(_fitting(route, rows)))

    def _rows_or_reason(self, route: Route) -> int | str:
        """How many rows a route can learn from, or why it is skipped."""
        alone = len(self.plan.routes) == 1
        limit = time_to_make(self.plan, route.name, self.budget, self.clock)
        if limit < LEAST_SHARE * self.plan.paces[route.name].made and not alone:
            return LATE
        self.log(f"{_doing(route)} for {route.name} ...")
        while True:
            try:
                return self._made(route, limit)
            except WritingStopped as early:
                if not early.rows:
                    return NO_TOKENS
                route = self._stopped(route, early)
            except OutOfTime:
                if not alone:
                    return LATE
                limit = math.inf

    def _made(self, route: Route, limit: float) -> int | str:
        """Run the stages that make its data; their artifacts are reused when the route runs."""
        *_, last = route.makers
        plan = Plan("making", route.base or self.request.base_paths[0], route.makers, seeds=(self.request.seed,))
        several = self.accelerator.num_processes > 1  # of which one makes the data, and the others wait for it
        limits = {} if several else {stage.name: limit for stage in route.makers}
        try:
            (runner,) = prepare([plan], self.request.folder, self.accelerator, self.log, limits)
            runner.run()
            made = runner.artifacts[last.name].rows("")
        except InputError as error:  # none at all
            return error.problem
        if any(map(writes, route.makers)):
            few = f"the filters kept {len(made):,} rows of what was written, and it needs {FEWEST_KEPT}"
            return len(made) if len(made) >= FEWEST_KEPT else few
        if last.method == "mine":
            mined = sum(map(bool, made.column("negatives").to_pylist()))
            few = f"hard negatives were found for {mined:,} pairs, and it needs {FEWEST_NEGATIVES}"
            return len(made) if mined >= FEWEST_NEGATIVES else few
        return len(made)

    def _stopped(self, route: Route, early: WritingStopped) -> Route:
        """The route that writes no more than there is; in the plan, with a line for the report, before it is used."""
        route = replace(route, stages=tuple(at_most(stage, {early.stage: early.rows}) for stage in route.stages))
        line, plan = writing_line(route.name, early), self.plan
        if not early.late:
            plan = plan.warned(f"{TOKEN_LIMIT}: {line}.", self.log)
        elif early.rows < early.wanted:  # otherwise only the filters were late
            plan = plan.changed(line)
            self.log(f"Out of time: {line}")
        self._change(plan.with_route(route))
        return route

    def _change(self, plan: FitPlan) -> None:
        self.plan = plan
        plan.write(self.request.folder / "plan.json")


def writing_line(route: str, early: WritingStopped) -> str:
    """How far writing came."""
    return f"{route} writes for {early.rows:,} texts instead of {early.wanted:,}"


def time_to_make(plan: FitPlan, name: str, budget: Budget, clock: Clock) -> float:
    """Seconds that making the data of a route may take: its share of the budget, if the others can still run then.

    A forecast that fits into the time left is always granted.
    """
    left = time_left(plan.ending, budget, clock, plan.trainings).seconds
    if budget.seconds is None or left is None:
        return math.inf
    made, spare = plan.paces[name].made, left - least_cost(plan.paces, SECONDS)
    return min(max(made, made_share(len(plan.routes)) * budget.seconds), made + spare)


def _doing(route: Route) -> str:
    if any(map(writes, route.makers)):
        return "Writing"
    return "Mining" if route.makers[-1].method == "mine" else "Making views"


def _fitting(route: Route, rows: int) -> Route:
    """The route with smaller batches where what is learned from is little."""
    learning = (stage for stage in route.training if _learns_from_made(stage, route))
    return route.with_training(_with_smaller_batch(stage, rows) for stage in learning)


def bounded(pace: Pace, route: Route, rows: int, trainings: int) -> Pace:
    """The pace of a route whose data is there, except that of folds: no more steps than the rows are good for."""
    most = [
        most_steps(_with_smaller_batch(stage, rows), Shape.TRIPLETS, rows) if _learns_from_made(stage, route) else known
        for stage, known in zip(route.training, pace.most, strict=True)
    ]
    paid = pace.made if trainings == 1 else 0.0
    return replace(pace, once=pace.once - paid, made=pace.made - paid, most=tuple(most))


def _with_smaller_batch(stage: Train, rows: int) -> Train:
    batch = min(stage.settings.batch, batch_size(rows))
    return stage.model_copy(update={"settings": stage.settings.model_copy(update={"batch": batch})})


def _learns_from_made(stage: Train, route: Route) -> bool:
    """Whether a stage learns from what a model made; views do not count, as they are as many as their texts."""
    return bool({*stage.references()} & {maker.name for maker in route.makers if maker.MODEL_KIND})


def seconds_of(plan: FitPlan, number: int) -> dict[str, float]:
    """What the run of each route in one round (from 0) is expected to take."""
    return round_costs(plan.rungs, number, plan.paces, SECONDS)


def time_share(plan: FitPlan, number: int, names: Sequence[str], left: float) -> float:
    """The share of the seconds left that the first of these runs of a round (from 0) may take, by expected cost."""
    costs = {name: cost for name, cost in seconds_of(plan, number).items() if name in names}
    later = [
        most_expensive({name: cost for name, cost in seconds_of(plan, at).items() if name in names}, rung.runs)
        for at, rung in enumerate(plan.rungs)
        if at > number
    ]
    whole = sum(costs.values()) + sum(later)
    return left * costs[names[0]] / whole if whole else left


def is_hopeless(plan: FitPlan, name: str, number: int, share: float) -> bool:
    """Whether a run has time for so little that it is dropped."""
    return name in plan.paces and _quotient(plan, name, number, share) < LEAST_SHARE


def limits(plan: FitPlan, name: str, number: int, share: float) -> dict[str, float]:
    """By stage: the seconds after which its decay begins, whatever it has learned. A few steps are always trained.

    What has to be computed before the first step is counted with the first stage.
    """
    if name not in plan.paces:
        return {}
    pace, steps = plan.paces[name], plan.rungs[number].steps[name]
    times = max(0.0, _quotient(plan, name, number, share))
    fresh = pace.fresh(steps, _before(plan, name, number))
    seconds_by_stage: dict[str, float] = {}
    for stage, total, new, seconds in zip(plan.route(name).training, steps, fresh, pace.seconds, strict=True):
        stable = new - (total - stable_steps(total, stage.settings.decay))
        before = pace.once - pace.made if not (number or seconds_by_stage) else 0.0
        seconds_by_stage[stage.name] = before + max(times * stable * seconds, min(LEAST_STEPS * seconds, GRACE))
    return seconds_by_stage


def fold_limits(plan: FitPlan, name: str, number: int, share: float) -> dict[str, float]:
    """The limits of a run without a fold, which also writes: at least half of the time for the rest is left for it."""
    rest = seconds_of(plan, number).get(name, 0.0) - plan.paces[name].made if name in plan.paces else 0.0
    writing = {stage.name: share - rest / 2 for stage in plan.route(name).makers if writes(stage)}
    return {**writing, **(limits(plan, name, number, share) if math.isfinite(share) else {})}


def _quotient(plan: FitPlan, name: str, number: int, share: float) -> float:
    """How many times its expected training a run has time for."""
    pace = plan.paces[name]
    besides = pace.per_run + (0.0 if number else pace.once)
    training = sum(pace.training(plan.rungs[number].steps[name], _before(plan, name, number)))
    return (share - besides) / max(training, 1e-9)


def _before(plan: FitPlan, name: str, number: int) -> tuple[int, ...]:
    return plan.rungs[number - 1].steps.get(name, ()) if number else ()


def fold_key(plan: Plan, number: int) -> str:
    """The name of a training without a fold, which a merged model of it has as well."""
    trained = (f"{stage.name} {stage.settings.steps}" for stage in plan.stages if stage.settings)
    return f"{plan.base}, {', '.join(trained)}, fold {number}"


def writes(stage: Stage) -> bool:
    """Whether a stage makes data with a writer."""
    return stage.MODEL_KIND == "writer" and stage.PRODUCES == "dataset"


def at_most(stage: Stage, lengths: Mapping[str, int]) -> Stage:
    """A stage with fewer steps, or one that writes for fewer texts, if `lengths` has its name."""
    if stage.name not in lengths:
        return stage
    if stage.settings is not None:
        return stage.model_copy(update={"settings": stage.settings.model_copy(update={"steps": lengths[stage.name]})})
    return stage.model_copy(update={"options": stage.options.model_copy(update={"rows": lengths[stage.name]})})


def shortened(plan: FitPlan, number: int, name: str, late: OutOfTime) -> FitPlan:
    """The plan if the decay of a stage begins at the step at which it was out of time."""
    steps = tuple(
        total_steps(late.step, stage.settings.decay) if stage.name == late.stage else known
        for stage, known in zip(plan.route(name).training, plan.rungs[number].steps[name], strict=True)
    )
    return _with_rung(plan, number, {**plan.rungs[number].steps, name: steps})


def without_run(plan: FitPlan, number: int, name: str) -> FitPlan:
    """The plan without a route from one round on; from the first on, it is skipped."""
    if number == 0:
        plan = plan.without(name, "the time ran out before it could be trained", for_time=True)
    for at in range(number, len(plan.rungs)):
        plan = _with_rung(plan, at, {route: steps for route, steps in plan.rungs[at].steps.items() if route != name})
    return plan


def _with_rung(plan: FitPlan, number: int, steps: Mapping[str, tuple[int, ...]]) -> FitPlan:
    changed = [replace(rung, steps=steps) if at == number else rung for at, rung in enumerate(plan.rungs)]
    return replace(plan, rungs=tuple(changed))
