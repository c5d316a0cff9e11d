"""The plan of a fit, and the fit under way that follows it.

With a time budget, what the clock decides on the way is written to the plan before anything follows from it, so that a
resumed fit does the same.
"""

import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

from accelerate import Accelerator
from pydantic import TypeAdapter, ValidationError

from sentloom.data.dataset import Dataset
from sentloom.engine.plan import Plan
from sentloom.engine.runner import PlanResult, Runner, prepare
from sentloom.errors import DamagedFile, InputError
from sentloom.evaluation.bench import Memory
from sentloom.files import read_record, write_record
from sentloom.fitting.bases import Base
from sentloom.fitting.clock import Clock
from sentloom.fitting.lengths import Extent, Round
from sentloom.fitting.measures import Power
from sentloom.fitting.options import plan_values
from sentloom.fitting.prepare import Prepared
from sentloom.fitting.request import Log, Request
from sentloom.fitting.routes import Route, SkippedRoute
from sentloom.fitting.tasks import Candidates
from sentloom.progress import OutOfTime, deadline, note

REVISION = 19  # raised when the same inputs would lead to another plan

T = TypeVar("T")


@dataclass(frozen=True)
class FitPlan:
    """What will be done. `inputs` is everything that the plan depends on: for other inputs there is a new plan."""

    inputs: Mapping[str, Any]
    routes: tuple[Route, ...]
    skipped: tuple[SkippedRoute, ...]
    extents: Mapping[str, Extent] = field(default_factory=dict)  # by route
    rounds: tuple[Round, ...] = ()  # empty until the data of all routes is made
    candidates: Candidates = field(default_factory=Candidates)  # that held-out queries search at most
    power: Power | None = None  # what the test rows can show
    reference: str = ""  # the path of the base that the winner has to beat
    latencies: Mapping[str, float] = field(default_factory=dict)  # of bases that were chosen from: ms for a query
    merges: int = 0  # merged models that are scored after the last round
    trainings: int = 1  # of every run: one on all rows, and one without each fold
    again: int = 0  # 1 if the best route will be trained once more, with another seed
    spare: tuple[Route, ...] = ()  # what takes the place of a route whose data cannot be made
    made: tuple[str, ...] = ()  # routes whose data has been made
    speed: float = 0.0  # of scoring the base (`Clock.speed`)
    # What the clock decided, all of it written before anything followed from it:
    lengths: Mapping[str, Mapping[str, int]] = field(default_factory=dict)  # by training and stage: its steps or rows
    depth: int = 0  # results that a re-ranker reads; 0: not decided
    measured: Mapping[str, bool] = field(default_factory=dict)  # what only informs: whether there was time for it
    changes: tuple[str, ...] = ()  # what there was no time for
    warnings: tuple[str, ...] = ()  # what else is less than planned, for the report

    def route(self, name: str) -> Route:
        """A route by its name."""
        return next(route for route in self.routes if route.name == name)

    def with_route(self, route: Route) -> "FitPlan":
        """The plan with a route in place of the one of its name."""
        return replace(self, routes=tuple(route if known.name == route.name else known for known in self.routes))

    def without(self, skipped: SkippedRoute) -> "FitPlan":
        """The plan without a route; the next one takes its place."""
        routes = (*(route for route in self.routes if route.name != skipped.name), *self.spare[:1])
        return replace(self, routes=routes, spare=self.spare[1:], skipped=(*self.skipped, skipped))

    def with_length(self, training: str, stage: str, length: int) -> "FitPlan":
        """The plan with the steps that a stage trains for, or the rows that it writes for, in one training."""
        own = {**self.lengths.get(training, {}), stage: length}
        return replace(self, lengths={**self.lengths, training: own})

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


def plan_inputs(
    request: Request, prepared: Prepared, bases: Sequence[Base], teachers: Sequence[str] = ()
) -> dict[str, Any]:
    """Everything that a plan depends on; teachers by their content."""
    content = {
        "base": [*request.base[: request.picks_base], *(base.encoder.fingerprint() for base in bases)],
        "against": [task.sha256 for task in prepared.against],
        "general": prepared.general.sha256,
        "corpus": hashlib.sha256("\0".join(prepared.more).encode()).hexdigest() if prepared.more else None,
        "force": request.force and prepared.blind,  # only then there is a second training to plan
    }
    return {
        "revision": REVISION,
        "folder": str(request.folder.resolve()),  # the stages of a plan name it
        "data": [fit_input.data.sha256 for fit_input in prepared.inputs],
        "teachers": [*teachers],
        "recipe": prepared.recipe and prepared.recipe.sha256,
        **plan_values(request, content),
    }


@dataclass
class Job:
    """A fit under way: what all its steps share, and its plan, which is on disk before a change takes effect."""

    request: Request
    memory: Memory
    accelerator: Accelerator
    clock: Clock
    log: Log
    plan: FitPlan = field(default_factory=lambda: FitPlan({}, (), ()))
    files: dict[str, Dataset] = field(default_factory=dict)  # of training rows: each is opened once, for all runs

    def change(self, plan: FitPlan) -> None:
        """Change the plan."""
        self.plan = plan
        plan.write(self.request.folder / "plan.json")

    def give_up(self, what: str, plan: FitPlan | None = None) -> None:
        """Change the plan because there is no time, with a line for the report."""
        self.log(f"Out of time: {what}")
        plan = plan or self.plan
        self.change(replace(plan, changes=(*plan.changes, what)))

    def warn(self, line: str) -> None:
        """Log a warning, which is also for the report."""
        self.log(line)
        self.change(replace(self.plan, warnings=(*self.plan.warnings, line)))

    def run(self, plan: Plan, seconds: Mapping[str, float], log: Log) -> PlanResult:
        """Run stages, or reuse what was done before; each stage may take its seconds, if it has any."""
        (result,) = self.runner(plan, seconds, log).run()
        return result

    def runner(self, plan: Plan, seconds: Mapping[str, float], log: Log) -> Runner:
        """What runs a plan; its data has been read and checked."""
        (runner,) = prepare([plan], self.request.folder, self.accelerator, log, seconds, self.files)
        return runner

    def if_time(self, what: str, measure: Callable[[], T]) -> T | None:
        """Measure what only informs, as long as the budget lasts; None if it was given up, now or before a kill."""
        if not self.clock.timed:
            return measure()
        known = self.plan.measured.get(what)
        if known is False:
            return None
        try:
            alone = self.accelerator.num_processes == 1  # several processes would not stop at the same moment
            with deadline(self.clock.left - self.clock.reporting if alone and not known else math.inf):
                result = measure()
        except OutOfTime:
            self.give_up(f"{what} is not measured", replace(self.plan, measured={**self.plan.measured, what: False}))
            return None
        if not known:
            self.change(replace(self.plan, measured={**self.plan.measured, what: True}))
        return result
