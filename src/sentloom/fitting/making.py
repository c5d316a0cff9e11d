"""Mining, writing and views before the race: only then it is known how much there is to learn from.

With a time budget, making the data of a route has a limit. Writing that reaches it stops, and what was written is used;
any other route is dropped, unless it is the only one. Writing also stops at the token limit of an endpoint. All of this
is written to plan.json first, so that a resumed fit does the same.
"""

import math
from dataclasses import dataclass, replace

from accelerate import Accelerator

from sentloom.data.shapes import Shape
from sentloom.errors import InputError
from sentloom.fitting.budget import Pace, least_cost
from sentloom.fitting.clock import Clock
from sentloom.fitting.costs import made_share, most_steps
from sentloom.fitting.pacing import LEAST_SHARE, SECONDS, at_most, writes
from sentloom.fitting.plan import FitPlan, refuse_no_route, time_left
from sentloom.fitting.request import Budget, Log, Request
from sentloom.fitting.routes import FEWEST_NEGATIVES, Route, batch_size
from sentloom.pipeline.plan import Plan
from sentloom.pipeline.runner import prepare
from sentloom.pipeline.stages import Train
from sentloom.pipeline.stages.synthesize import WritingStopped
from sentloom.progress import OutOfTime

FEWEST_KEPT = 25  # rows that a writer's filters kept: with fewer, a route is not worth it
LATE = "the time ran out before its data was made"
TOKEN_LIMIT = "The token limit was reached"
NO_TOKENS = "the token limit was reached before anything was written for it"


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
        """Make the data of all routes: what comes of it bounds their length, and little is not worth it."""
        for route in self.plan.routes:
            if route.makers and route.name not in self.plan.made:
                self._make(route)
        refuse_no_route(self.plan.routes, self.plan.skipped)
        return self.plan

    def _make(self, route: Route) -> None:
        found = self._rows_or_reason(route)
        if isinstance(found, str):
            self.log(f"{route.name} is skipped: {found}")
            self._change(self.plan.without(route.name, found, for_time=found == LATE))
            return
        route = self.plan.route(route.name)  # which may write less now
        pace = bounded(self.plan.paces[route.name], route, found, self.plan.trainings)
        plan = replace(self.plan, paces={**self.plan.paces, route.name: pace}, made=(*self.plan.made, route.name))
        self._change(plan.with_route(_fitting(route, found)))

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
        limits = {} if several else {one.name: limit for one in route.makers}
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
            found = sum(map(bool, made.column("negatives").to_pylist()))
            few = f"hard negatives were found for {found:,} pairs, and it needs {FEWEST_NEGATIVES}"
            return len(made) if found >= FEWEST_NEGATIVES else few
        return len(made)

    def _stopped(self, route: Route, early: WritingStopped) -> Route:
        """The route that writes no more than there is; in the plan, with a line for the report, before it is used."""
        route = replace(route, stages=tuple(at_most(one, {early.stage: early.rows}) for one in route.stages))
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


def _learns_from_made(one: Train, route: Route) -> bool:
    """Views are as many as their texts, and count as these."""
    return bool({*one.references()} & {maker.name for maker in route.makers if maker.MODEL_KIND})


def _fitting(route: Route, rows: int) -> Route:
    """The route with smaller batches where what is learned from is little."""
    learning = (one for one in route.training if _learns_from_made(one, route))
    return route.with_training(_with_smaller_batch(one, rows) for one in learning)


def bounded(pace: Pace, route: Route, rows: int, trainings: int) -> Pace:
    """The pace of a route whose data is there, except that of folds: no more steps than the rows are good for."""
    most = [
        most_steps(_with_smaller_batch(one, rows), Shape.TRIPLETS, rows) if _learns_from_made(one, route) else known
        for one, known in zip(route.training, pace.most, strict=True)
    ]
    paid = pace.made if trainings == 1 else 0.0
    return replace(pace, once=pace.once - paid, made=pace.made - paid, most=tuple(most))


def _with_smaller_batch(one: Train, rows: int) -> Train:
    batch = min(one.settings.batch, batch_size(rows))
    return one.model_copy(update={"settings": one.settings.model_copy(update={"batch": batch})})
