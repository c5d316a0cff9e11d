"""What routes learn from: the rows that are there, and the data that is made before the race.

Views, mined negatives and what a writer writes are made once. How much there is bounds how long a route trains, and a
route with too little is skipped. With a time budget, making is over when its box closes (`Clock.box`): a writer's route
learns from what was written until then, and a route whose views or negatives are not ready is skipped, unless there is
no other.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from sentloom.data.dataset import Dataset
from sentloom.data.shapes import Shape
from sentloom.engine.plan import Plan
from sentloom.engine.runner import Runner
from sentloom.engine.stages import DataStage, Stage, Train
from sentloom.engine.stages.synthesize import WritingStopped
from sentloom.errors import InputError, MissingPart, ModelError, RecipeError
from sentloom.fitting.clock import size_of
from sentloom.fitting.lengths import Extent, most_steps
from sentloom.fitting.plan import Job
from sentloom.fitting.routes import BATCH, FEWEST_NEGATIVES, Route, SkippedRoute, TrainsOn, batch_size
from sentloom.progress import OutOfTime

FEWEST_KEPT = 25  # rows that a writer's filters kept: with fewer, a route is not worth it
FEWEST_MINED = 256  # pairs that negatives are mined for, however little time there is
ENCODED, SAMPLED = 2, 1_000  # times that the texts of a pair are encoded, about; pairs whose length is measured
LATE = "the time ran out before its data was made"
TOKEN_LIMIT = "The token limit was reached"
NO_TOKENS = "the token limit was reached before anything was written for it"


@dataclass(frozen=True)
class Supply:
    """A route, and what each of its training stages learns from."""

    route: Route
    learned: tuple[TrainsOn, ...]

    @property
    def extent(self) -> Extent:
        """How long it may train."""
        return Extent.of(self.route, self.learned)


def supply_of(route: Route, job: Job, steps: int | None) -> Supply | SkippedRoute:
    """The route with what it learns from; one that needs a part which is not installed is skipped.

    Of a budget in steps, no more data is made than that many steps can use.
    """
    try:
        runner = job.runner(_plan(route, job), {}, job.log)
    except (MissingPart, ModelError, RecipeError) as error:
        return SkippedRoute(route.name, f"{error.problem}; {error.fix}" if error.fix else error.problem)
    supply = Supply(route, route.trains_on or tuple(_learned(train, route, runner) for train in route.training))
    for stage in route.stages:
        if isinstance(stage, DataStage) and stage.PRODUCES == "dataset" and not stage.references():
            there = most = _rows(stage, runner)
            if steps is not None:
                most = steps * BATCH
            elif job.clock.timed and stage.method == "mine":
                most = _minable(runner.rows(stage)[0], job)
            supply = _from_fewer(supply, stage, min(there, most), there)
    return supply


def _plan(route: Route, job: Job) -> Plan:
    return route.plan((), job.plan.reference or job.request.base_paths[0], job.request.seed)


def _rows(stage: Stage, runner: Runner) -> int:
    """How many rows a stage reads."""
    data, _ = runner.rows(stage)
    asked = getattr(stage.options, "rows", None)
    return min(asked or len(data or ()), len(data or ()))


def _learned(train: Train, route: Route, runner: Runner) -> TrainsOn:
    """What a training stage learns from, where its route does not say."""
    sources = [stage for stage in route.stages if stage.name in train.references() and stage.PRODUCES == "dataset"]
    if sources:  # each row that they read counts as a pair
        return TrainsOn(Shape.PAIRS, sum(_rows(source, runner) for source in sources if not source.references()))
    data, _ = runner.rows(train)
    assert data is not None, "a training stage reads rows"
    return TrainsOn(data.shape, len(data))


def _minable(pairs: Dataset | None, job: Job) -> int:
    """The pairs that there is time to mine negatives for, at the speed at which the base was scored."""
    assert pairs is not None, "negatives are mined for pairs"
    sample = pairs.select(np.arange(len(pairs)) < SAMPLED)
    size = ENCODED * size_of(text for _, _, text in sample.sentences()) / len(sample)
    seconds = job.clock.box(max(1, len(job.plan.routes)), job.plan.trainings)
    return max(FEWEST_MINED, int(seconds / (size * max(job.clock.speed, 1e-9))))


def _from_fewer(supply: Supply, maker: DataStage, rows: int, of: int) -> Supply:
    """The route if a stage makes data from this many rows: the first of them, or a share."""
    if "rows" in type(maker.options).model_fields:
        made: Stage = maker.model_copy(update={"options": maker.options.model_copy(update={"rows": rows})})
    else:
        made = maker.model_copy(update={"data_share": round(rows / of, 4)})
    behind = _behind(supply.route, maker)
    stages = tuple(made if stage is maker else stage for stage in supply.route.stages)
    learned = tuple(
        replace(trains_on, rows=min(rows, trains_on.rows)) if train.name in behind else trains_on
        for train, trains_on in zip(supply.route.training, supply.learned, strict=True)
    )
    return Supply(replace(supply.route, stages=stages), learned)


def _behind(route: Route, maker: Stage) -> set[str]:
    """The names of a stage and of all that take what it makes, or what is made of that."""
    names = {maker.name}
    for stage in route.stages:
        names |= {stage.name} if names & {*stage.references()} else set()
    return names


# --- making it ---


def make_data(job: Job, routes: int, steps: int | None) -> None:
    """Make the data of the routes of the plan, of which at most `routes` race: how much there is bounds their length.

    A route with too little is skipped, and the next one takes its place.
    """
    while waiting := [route for route in job.plan.routes if route.name not in job.plan.made]:
        route, *_ = waiting
        skipped = _supplied(route, job, steps) or _made(route, job, routes)
        if skipped:
            job.log(f"{route.name} is skipped: {skipped.why}")
            job.change(job.plan.without(skipped))


def _supplied(route: Route, job: Job, steps: int | None) -> SkippedRoute | None:
    """Look at what a route learns from, unless that was done; or why it is skipped."""
    if route.name in job.plan.extents:
        return None
    supply = supply_of(route, job, steps)
    if isinstance(supply, SkippedRoute):
        return supply
    extents = {**job.plan.extents, route.name: supply.extent}
    job.change(replace(job.plan.with_route(supply.route), extents=extents))
    return None


def _made(route: Route, job: Job, routes: int) -> SkippedRoute | None:
    """Make the data of a route; or why it is skipped."""
    route = job.plan.route(route.name)
    if route.makers:
        rows = _rows_or_reason(route, job, routes)
        if isinstance(rows, str):
            return SkippedRoute(route.name, rows, for_time=rows == LATE)
        route = job.plan.route(route.name)  # which may write less now
        extent = _bounded(job.plan.extents[route.name], route, rows)
        job.plan = replace(job.plan, extents={**job.plan.extents, route.name: extent})
        route = route.with_training(_with_smaller_batch(train, rows) for train in _learning(route))
    job.change(replace(job.plan.with_route(route), made=(*job.plan.made, route.name)))
    return None


def _rows_or_reason(route: Route, job: Job, routes: int) -> int | str:
    """How many rows a route can learn from, or why it is skipped."""
    job.log(f"{_doing(route)} for {route.name} ...")
    limit = job.clock.box(routes, job.plan.trainings)
    while True:
        try:
            return _rows_made(route, job, limit)
        except WritingStopped as early:
            if not early.rows:
                return NO_TOKENS
            route = _stopped(route, early, job)
        except OutOfTime:
            if len(job.plan.routes) > 1 or job.plan.spare:
                return LATE
            limit = math.inf


def _rows_made(route: Route, job: Job, limit: float) -> int | str:
    """Run the stages that make its data; their artifacts are reused when the route runs."""
    *_, last = route.makers
    plan = replace(_plan(route, job), name="making", stages=route.makers)
    several = job.accelerator.num_processes > 1  # of which one makes the data, and the others wait for it
    limits = {} if several else {stage.name: limit for stage in route.makers}
    try:
        runner = job.runner(plan, limits, job.log)
        runner.run()
        made = runner.artifacts[last.name].rows("")
    except (InputError, MissingPart, ModelError) as error:  # none at all
        return error.problem
    if any(map(writes, route.makers)):
        few = f"the filters kept {len(made):,} rows of what was written, and it needs {FEWEST_KEPT}"
        return len(made) if len(made) >= FEWEST_KEPT else few
    if last.method == "mine":
        mined = sum(map(bool, made.column("negatives").to_pylist()))
        few = f"hard negatives were found for {mined:,} pairs, and it needs {FEWEST_NEGATIVES}"
        return len(made) if mined >= FEWEST_NEGATIVES else few
    return len(made)


def _stopped(route: Route, early: WritingStopped, job: Job) -> Route:
    """The route that writes no more than there is; in the plan, with a line for the report, before it is used."""
    route = replace(route, stages=tuple(at_most(stage, {early.stage: early.rows}) for stage in route.stages))
    job.plan = job.plan.with_route(route)
    line = writing_line(route.name, early)
    if not early.late:
        job.warn(f"{TOKEN_LIMIT}: {line}.")
    elif early.rows < early.wanted:  # otherwise only the filters were late
        job.give_up(line)
    else:
        job.change(job.plan)
    return route


def writing_line(route: str, early: WritingStopped) -> str:
    """How far writing came."""
    return f"{route} writes for {early.rows:,} texts instead of {early.wanted:,}"


def _doing(route: Route) -> str:
    if any(map(writes, route.makers)):
        return "Writing"
    return "Mining" if route.makers[-1].method == "mine" else "Making views"


def _bounded(extent: Extent, route: Route, rows: int) -> Extent:
    """No more steps than the rows that were made are good for."""
    most = [
        most_steps(_with_smaller_batch(train, rows), Shape.TRIPLETS, rows) if train in _learning(route) else known
        for train, known in zip(route.training, extent.most, strict=True)
    ]
    return replace(extent, most=tuple(most))


def _learning(route: Route) -> list[Train]:
    """The stages that learn from what a model made; views do not count, as they are as many as their texts."""
    made = {maker.name for maker in route.makers if maker.MODEL_KIND}
    return [train for train in route.training if {*train.references()} & made]


def _with_smaller_batch(stage: Train, rows: int) -> Train:
    batch = min(stage.settings.batch, batch_size(rows))
    return stage.model_copy(update={"settings": stage.settings.model_copy(update={"batch": batch})})


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
