"""The plan of a fit: its routes, what they cost, how long they train, and how much of the budget the end needs.

It is made once, before anything is trained, and names the reference: the base that the winner has to beat, which is the
best one on the validation rows. The winner need not have started from it: being better than a weak base is no reason to
use a model.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from accelerate import Accelerator
from pydantic import TypeAdapter, ValidationError

from sentloom.errors import DamagedFile, InputError, option
from sentloom.evaluation.bench import Memory, main_scores, score_tasks
from sentloom.evaluation.task import Score, Task
from sentloom.files import read_record, write_record
from sentloom.fitting.adapt import routes_from
from sentloom.fitting.bases import Base, find_teacher
from sentloom.fitting.budget import (
    Pace,
    Rung,
    Speed,
    TimedRoute,
    Timer,
    affordable,
    limited,
    measure_speed,
    round_costs,
    rungs,
)
from sentloom.fitting.clock import Clock
from sentloom.fitting.gate import expected_power, refuse_no_room
from sentloom.fitting.options import plan_values
from sentloom.fitting.panel import PANEL_TEXTS
from sentloom.fitting.prepare import Prepared, fold_scores, per_training
from sentloom.fitting.request import Budget, Log, Request
from sentloom.fitting.result import Power
from sentloom.fitting.routes import Route, SkippedRoute
from sentloom.fitting.tasks import Candidates, affordable_candidates
from sentloom.fitting.verify import probing_time
from sentloom.progress import note

REVISION = 17  # raised when the same inputs would lead to another plan
MOST_MERGES = 5  # merged models that are scored
MERGE_SHARE = 0.1  # of a time budget may go to scoring them
WATCHED_MODELS = 3  # scored on what decides nothing: the base, the best trained model and the best merged one
WATCH_SHARE = 0.05  # of a time budget is set aside for that; what does not fit is left out
REPORTING = 4.0  # seconds for figures and files


@dataclass(frozen=True)
class FitPlan:
    """What will be done. `inputs` is everything that the plan depends on: for other inputs there is a new plan.

    With a time budget, whatever the clock changes on the way is changed here first, with a line in `changes`.
    """

    inputs: Mapping[str, Any]
    routes: tuple[Route, ...]
    skipped: tuple[SkippedRoute, ...]
    paces: Mapping[str, Pace]
    scoring: float  # seconds to load and score one model
    rungs: tuple[Rung, ...]
    candidates: Candidates = field(default_factory=Candidates)  # that held-out queries search at most
    power: Power | None = None  # what the test rows can show
    reference: str = ""  # the path of the base that the winner has to beat
    merges: int = 0  # merged models that are scored after the last round
    ending: float = 0.0  # seconds for everything after the last round
    testing: float = 0.0  # the part of `ending` for the winner on the test rows
    seconds_per_text: float = 0.0  # as measured before; the slowest base counts
    trainings: int = 1  # of every run: one on all rows, and one without each fold
    kept: tuple[tuple[str, int], ...] = ()  # runs (route, round) that the clock did not drop; a resumed fit runs them
    merged: int = 0  # merged models that the clock did not drop
    measured: Mapping[str, bool] = field(default_factory=dict)  # what the end may measure: whether there is time for it
    changes: tuple[str, ...] = ()  # what the clock shortened or dropped
    made: tuple[str, ...] = ()  # routes whose data has been made
    fold_lengths: Mapping[str, Mapping[str, int]] = field(default_factory=dict)  # by training and stage: steps or rows
    warnings: tuple[str, ...] = ()  # what else is less than planned, for the report

    def route(self, name: str) -> Route:
        """A route by its name."""
        return next(route for route in self.routes if route.name == name)

    @property
    def rounds(self) -> int:
        """How many rounds run: none after one in which no run would be longer than before."""
        new = (at for at, rung in enumerate(self.rungs) if not at or rung.steps != self.rungs[at - 1].steps)
        return 1 + max(new, default=-1)

    def changed(self, lost: str) -> "FitPlan":
        """The plan with a line about what there is no time for."""
        return replace(self, changes=(*self.changes, lost))

    def warned(self, line: str, log: Log) -> "FitPlan":
        """The plan with a warning for the report, which is also logged."""
        log(line)
        return replace(self, warnings=(*self.warnings, line))

    def without(self, name: str, why: str, *, for_time: bool = False) -> "FitPlan":
        """The plan without a route, and why it is skipped."""
        routes = tuple(route for route in self.routes if route.name != name)
        paces = {route: pace for route, pace in self.paces.items() if route != name}
        skipped = (*self.skipped, SkippedRoute(name, why, for_time))
        return replace(self, routes=routes, paces=paces, skipped=skipped)

    def with_route(self, route: Route) -> "FitPlan":
        """The plan with a route in place of the one of its name."""
        return replace(self, routes=tuple(route if known.name == route.name else known for known in self.routes))

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


def plan_inputs(request: Request, prepared: Prepared, bases: Sequence[Base]) -> dict[str, Any]:
    """Everything that a plan depends on."""
    content = {
        "base": [base.encoder.fingerprint() for base in bases],
        "against": [task.sha256 for task in prepared.against],
        "general": prepared.general.sha256,
        "corpus": hashlib.sha256("\0".join(prepared.more).encode()).hexdigest() if prepared.more else None,
        "force": request.force and prepared.label_free,  # only then there is a second training to plan
    }
    return {
        "revision": REVISION,
        "folder": str(request.folder.resolve()),  # the stages of a plan name it
        "data": [fit_input.data.sha256 for fit_input in prepared.inputs],
        "recipe": prepared.recipe and prepared.recipe.sha256,
        **plan_values(request, content),
    }


def new_plan(
    inputs: Mapping[str, Any],
    request: Request,
    prepared: Prepared,
    bases: Sequence[Base],
    memory: Memory,
    accelerator: Accelerator,
    clock: Clock,
    log: Log,
) -> FitPlan:
    """Find the routes, and measure what training and scoring cost. A recipe has its own routes and lengths."""
    log("\nScoring the base ...")
    if prepared.recipe:
        own, power = prepared.recipe.routes, _power(bases[0], request, prepared, memory)
        clock.lap("scoring the base")
        only = (Rung({route.name: () for route in own}, len(own), 0),)
        return FitPlan(inputs, own, (), {}, 0.0, only, power=power, reference=bases[0].path)
    budget = training_budget(request, prepared)
    speeds = [measure_speed(base.encoder, prepared.texts) for base in bases] if budget.seconds is not None else []
    per_text = max((speed.per_text for speed in speeds), default=0.0)
    candidates = affordable_candidates(per_text, budget)
    prepared = prepared.searching(candidates)
    reference = strongest(bases, prepared, memory)
    clock.lap("scoring the base")
    score_tasks(reference.encoder, prepared.choosing, memory, show_progress=True)
    scoring = max(clock.lap("scoring the base"), per_text * text_count(prepared.choosing))
    power = _power(reference, request, prepared, memory)
    testing = max(clock.lap("scoring the base"), per_text * untested_texts(prepared))
    ending = testing + watching_time(speeds, prepared, budget, reference.encoder.dimension) + REPORTING
    teacher = None
    if request.teacher_path:
        asking = prepared.validation or [part for fold in prepared.folds for part in fold.parts]
        asked = [task for part in asking if part.labelled for task in part.tasks]
        teacher = find_teacher(request.teacher_path, asked, reference.encoder, memory, budget, log)
        clock.lap("testing the teacher")
    routes, skipped = routes_from(bases, prepared, request, teacher)
    timer = Timer(reference.path, request.seed, accelerator, scoring)
    timed, not_timed = choose_routes(routes, timer, budget, ending, clock, log, 1 + len(prepared.folds))
    skipped = [*skipped, *not_timed]
    chosen = tuple(timed_route.route for timed_route in timed)
    refuse_no_route(chosen, skipped)
    scoring += timer.loading
    merges = affordable_merges(scoring, budget)
    parts = (inputs, chosen, tuple(skipped), _paces(timed), scoring, (), candidates, power)
    plan = FitPlan(*parts, reference.path, merges, ending=ending + merges * scoring, trainings=1 + len(prepared.folds))
    return replace(plan, testing=testing, seconds_per_text=per_text)


def strongest(bases: Sequence[Base], prepared: Prepared, memory: Memory) -> Base:
    """The base with the best mean score on the validation rows or folds; among equals the first."""
    return bases[0] if len(bases) == 1 else max(bases, key=lambda base: mean_score(base, prepared, memory))


def mean_score(base: Base, prepared: Prepared, memory: Memory) -> float:
    """The mean of the main scores of a base on what chooses among the runs."""
    scores = choosing_scores(base, prepared, memory)
    return sum(score.value for score in scores) / len(scores)


def choosing_scores(base: Base, prepared: Prepared, memory: Memory) -> list[Score]:
    """The main scores of a base on the validation rows, or on the folds."""
    if prepared.folds:
        return fold_scores([base.encoder] * len(prepared.folds), prepared.folds, memory)
    return main_scores(base.encoder, prepared.choosing, memory)


def _power(base: Base, request: Request, prepared: Prepared, memory: Memory) -> Power:
    """What the test rows can show. If they can show no gain, nothing is trained unless the user insists."""
    power = expected_power(base.encoder, prepared.proving, memory, label_free=prepared.label_free)
    if not request.force:
        refuse_no_room(power, ", ".join(fit_input.name for fit_input in prepared.inputs))
    return power


def training_budget(request: Request, prepared: Prepared) -> Budget:
    """The budget of a single training, of which there are more if rows are cross-validated."""
    return per_training(request.parsed_budget, prepared.folds) if prepared.folds else request.parsed_budget


def watching_time(speeds: Sequence[Speed], prepared: Prepared, budget: Budget, dimension: int) -> float:
    """Seconds to set aside for what decides nothing: general ability, probes, and whether two seeds agree."""
    if budget.seconds is None:
        return 0.0
    general = WATCHED_MODELS * max(speed.seconds([prepared.general]) for speed in speeds)
    agreement = max(speed.per_text for speed in speeds) * PANEL_TEXTS if prepared.label_free else 0.0
    return min(general + agreement + probing_time(prepared.test, dimension), WATCH_SHARE * budget.seconds)


def text_count(tasks: Sequence[Task]) -> int:
    """How many texts a model encodes for some tasks."""
    return sum(len(texts) for task in tasks for texts in task.texts.values())


def untested_texts(prepared: Prepared) -> int:
    """How many texts a winner encodes for the verdict: not again those that it was chosen on, unless on folds."""
    proving = prepared.proving
    encoded = set() if prepared.folds else _texts(proving) & _texts(prepared.choosing)
    return text_count(proving) - len(encoded)


def _texts(tasks: Sequence[Task]) -> set[str]:
    return {text for task in tasks for texts in task.texts.values() for text in texts}


def affordable_merges(seconds: float, budget: Budget) -> int:
    """How many merged models there is time to score, at `seconds` seconds each."""
    if budget.seconds is None:
        return MOST_MERGES
    return min(MOST_MERGES, int(MERGE_SHARE * budget.seconds / max(seconds, 1e-9)))


def choose_routes(
    routes: Sequence[Route], timer: Timer, budget: Budget, ending: float, clock: Clock, log: Log, trainings: int = 1
) -> tuple[list[TimedRoute], list[SkippedRoute]]:
    """Time the routes, the most promising first, and keep those that there is time for.

    A route is not even timed if planning has used its share of the budget, or if there is no time for one more that is
    as cheap as the cheapest so far.
    """
    chosen, skipped = list[TimedRoute](), list[SkippedRoute]()
    end = clock.left - clock.planning
    for route in routes:
        left = time_left(ending, budget, clock, trainings)
        if why := _why_not_timed(chosen, left, clock.left < end):
            skipped.append(SkippedRoute(route.name, why, for_time=True))
            continue
        log(f"Timing {route.name} ...")
        timed = timer.time(route)
        timed = limited(timed, budget, 1 + len(chosen)) if isinstance(timed, TimedRoute) else timed
        if isinstance(timed, TimedRoute) and chosen and not affordable(_paces([*chosen, timed]), left):
            why = "the budget has no time for it besides those that are tried"
            timed = SkippedRoute(route.name, why, for_time=True)
        if isinstance(timed, TimedRoute):
            chosen.append(timed)
        else:
            skipped.append(timed)
    return chosen, skipped


def _why_not_timed(chosen: Sequence[TimedRoute], budget: Budget, late: bool) -> str:
    """Why another route is not timed; empty if it is."""
    if not chosen:
        return ""
    if late:
        return "the time for planning was used up before it could be measured"
    paces = _paces(chosen)
    cheapest = min(paces.values(), key=lambda pace: pace.once + pace.per_run + sum(pace.seconds))
    return "" if affordable({**paces, "": cheapest}, budget) else "the budget has no time for another route"


def _paces(timed: Sequence[TimedRoute]) -> dict[str, Pace]:
    return {timed_route.route.name: timed_route.pace for timed_route in timed}


def with_lengths(plan: FitPlan, budget: Budget, clock: Clock, *, again: bool = False) -> FitPlan:
    """The plan with the longest runs that there is time for; if the winner is trained `again`, besides that."""
    plan = replace(plan, rungs=tuple(rungs(plan.paces, time_left(plan.ending, budget, clock, plan.trainings))))
    if not again or budget.seconds is None:
        return plan
    second = max(round_costs(plan.rungs, 0, plan.paces, budget).values())
    plan = replace(plan, ending=plan.ending + second)
    return replace(plan, rungs=tuple(rungs(plan.paces, time_left(plan.ending, budget, clock, plan.trainings))))


def time_left(ending: float, budget: Budget, clock: Clock, trainings: int) -> Budget:
    """What is left of a time budget for each training if the end takes `ending` seconds; a budget in steps as it is."""
    return budget if budget.seconds is None else Budget(max(0.0, clock.left - ending) / trainings, None)


def refuse_no_route(routes: Sequence[Route], skipped: Sequence[SkippedRoute]) -> None:
    """There must be at least one route."""
    if not routes:
        why = "; ".join(f"{route.name}: {route.why}" for route in skipped)
        dimensions = option("dimensions")
        fix = f"leave out {dimensions}" if dimensions in why else "add data of another shape"
        raise InputError("data", f"no method can learn from it ({why})", "", fix)
