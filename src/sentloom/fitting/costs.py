"""What a route costs: a small sample of every stage is timed, and data stages get a share of the budget at most."""

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from accelerate import Accelerator

from sentloom.data.shapes import Shape
from sentloom.errors import MissingPart, ModelError
from sentloom.fitting.budget import Pace
from sentloom.fitting.request import Budget
from sentloom.fitting.routes import BATCH, Route, SkippedRoute, TrainsOn
from sentloom.pipeline.forecast import Forecast, forecast
from sentloom.pipeline.plan import Plan, stage_values
from sentloom.pipeline.stages import DataStage, Stage, Train

# How a route's time is shared among its training stages: raw text prepares, labels matter more.
WEIGHTS = {Shape.TEXTS: 1.0}
OTHER_WEIGHT = 2.0
EPOCHS = {Shape.TEXTS: 1, Shape.PARALLEL: 10}  # at most
OTHER_EPOCHS, FEW_ROWS_EPOCHS = 3, 10  # few rows are seen more often,
FEW_STEPS = 60  # until a run has so many steps
MADE_SHARE = 0.2  # of a time budget may go to making the data of a route,
MADE_PART = 0.5  # and so much of the route's own share
FEWEST_MADE = 256  # rows: with fewer, a route is not worth it
FEWEST_WRITTEN = 64  # the same of texts that a writer writes for, which is slow
MADE = {"views": "views", "mine": "hard negatives", "synthesize": "texts to write for"}


@dataclass(frozen=True)
class TimedRoute:
    """A route with the forecast of each of its stages, and what its training stages learn from."""

    route: Route
    forecasts: tuple[Forecast, ...]
    trains_on: tuple[TrainsOn, ...]
    each: float = 0.0  # seconds of every run besides its steps

    @property
    def training(self) -> list[tuple[Train, Forecast, TrainsOn]]:
        """The training stages."""
        forecasts = [ahead for ahead in self.forecasts if ahead.steps]
        return list(zip(self.route.training, forecasts, self.trains_on, strict=True))

    @property
    def both(self) -> list[tuple[Stage, Forecast]]:
        """The stages with their forecasts."""
        return list(zip(self.route.stages, self.forecasts, strict=True))

    @property
    def pace(self) -> Pace:
        """What it costs per step, per run and once; stages share its time by what they learn from."""
        once = sum(ahead.before + (0.0 if ahead.steps else ahead.seconds) for ahead in self.forecasts)
        made = sum(ahead.before + ahead.seconds for one, ahead in self.both if one in self.route.makers)
        weights = [WEIGHTS.get(learned.shape, OTHER_WEIGHT) for _, _, learned in self.training]
        most = tuple(most_steps(one, learned.shape, learned.rows) for one, _, learned in self.training)
        seconds = tuple(ahead.seconds / ahead.steps for _, ahead, _ in self.training)
        shares = tuple(weight / sum(weights) for weight in weights)
        return Pace(seconds, most, shares, once, self.each, self._decays, made)

    @property
    def _decays(self) -> tuple[float, ...]:
        """Only the first training stage starts from the same encoder in every round."""
        first, *_ = (one for one, _, _ in self.training)
        return (first.settings.decay,) if first.continues and self.route.select is None else ()


def most_steps(one: Train, shape: Shape, rows: int) -> int:
    """More steps than this make no sense for so few rows."""
    batch = one.settings.batch * one.settings.accumulate
    if shape in EPOCHS:
        return max(1, EPOCHS[shape] * rows // batch)
    return max(1, OTHER_EPOCHS * rows // batch, min(FEW_STEPS, FEW_ROWS_EPOCHS * rows // batch))


@dataclass
class Timer:
    """Times a sample of every stage of a route; stages that several routes share are timed once."""

    base: str
    seed: int
    accelerator: Accelerator
    scoring: float = 0.0  # seconds to score one model
    known: dict[str, list[Forecast]] = field(default_factory=dict)
    loading: float = 0.0  # seconds to load, build and save a model, as the slowest route did

    def time(self, route: Route) -> TimedRoute | SkippedRoute:
        """The route with its forecasts; a route that needs a part which is not installed is skipped."""
        try:
            forecasts = [one for part in _parts(route) for one in self._forecasts(part, route)]
        except (MissingPart, ModelError) as error:
            return SkippedRoute(route.name, f"{error.problem}; {error.fix}" if error.fix else error.problem)
        trained = [TrainsOn(one.shape or Shape.TEXTS, one.rows) for one in forecasts if one.steps]
        each = self.scoring + len(trained) * self.loading
        return TimedRoute(route, tuple(forecasts), route.trains_on or tuple(trained), each)

    def _forecasts(self, part: tuple[Stage, ...], route: Route) -> list[Forecast]:
        base = route.base or self.base
        key = json.dumps([base, *map(stage_values, part)], sort_keys=True)
        if key not in self.known:
            start = time.perf_counter()
            self.known[key] = found = forecast(Plan(route.name, base, part, seeds=(self.seed,)), self.accelerator)
            if len(part) == 1:  # nothing is made before the training
                self.loading = max(self.loading, time.perf_counter() - start - found[0].timing)
        return self.known[key]


def _parts(route: Route) -> Iterator[tuple[Stage, ...]]:
    """The stages in groups: each training stage with the stages that make its data."""
    part: list[Stage] = []
    for one in route.stages:
        part.append(one)
        if one in route.training:
            yield tuple(part)
            part = []


def limited(timed: TimedRoute, budget: Budget, routes: int = 1) -> TimedRoute | SkippedRoute:
    """The route with as much data made first as there is time for; skipped if that is too little.

    `routes` is how many share the budget so far.
    """
    for one, ahead in timed.both:
        if isinstance(one, DataStage) and one.PRODUCES == "dataset" and not one.references():
            rows = _affordable_rows(timed, one, budget, routes)
            fewest = FEWEST_WRITTEN if one.method == "synthesize" else FEWEST_MADE
            if rows < min(fewest, ahead.rows):
                why = f"the budget has time for {rows:,} {MADE.get(one.method, 'rows')}, and it needs {fewest}"
                return SkippedRoute(timed.route.name, why, for_time=True)
            timed = with_rows(timed, one, rows)
    return timed


def _affordable_rows(timed: TimedRoute, maker: DataStage, budget: Budget, routes: int) -> int:
    """How many rows there is time to make, and to prepare for what learns from them."""
    behind = [(one, ahead) for one, ahead in timed.both if one.name in _behind(timed, maker)]
    rows = behind[0][1].rows
    if budget.seconds is None:
        return min(rows, (budget.steps or 0) * BATCH)
    fixed = sum(ahead.before for _, ahead in behind if not ahead.steps)
    each = sum(_for_rows(ahead) for _, ahead in behind) / rows
    seconds = made_share(routes) * budget.seconds - fixed
    return min(rows, max(0, int(seconds / max(each, 1e-9))))


def made_share(routes: int) -> float:
    """The share of a time budget that making the data of one of so many routes may take."""
    return min(MADE_SHARE, MADE_PART / routes)


def _for_rows(ahead: Forecast) -> float:
    """Seconds before the first step that grow with the rows: to make them, or to prepare them (a teacher's scores)."""
    return ahead.before if ahead.steps else ahead.seconds


def _behind(timed: TimedRoute, maker: Stage) -> set[str]:
    """The names of a stage and of all that take what it makes, or what is made of that."""
    found = {maker.name}
    for one in timed.route.stages:
        found |= {one.name} if found & {*one.references()} else set()
    return found


def with_rows(timed: TimedRoute, maker: DataStage, rows: int) -> TimedRoute:
    """The route if `maker` makes this many rows."""
    behind, (of,) = _behind(timed, maker), [ahead.rows for one, ahead in timed.both if one is maker]
    stages = tuple(_making(one, rows, of) if one is maker else one for one in timed.route.stages)
    forecasts = tuple(_part(ahead, rows / of) if one.name in behind else ahead for one, ahead in timed.both)
    trains_on = tuple(
        replace(learned, rows=min(rows, learned.rows)) if one.name in behind else learned
        for one, _, learned in timed.training
    )
    return replace(timed, route=replace(timed.route, stages=stages), forecasts=forecasts, trains_on=trains_on)


def _part(ahead: Forecast, share: float) -> Forecast:
    """The forecast of a stage for a share of its rows; the time of training depends on steps instead."""
    rows, seconds = round(share * ahead.rows), share * _for_rows(ahead)
    if ahead.steps:
        return replace(ahead, rows=rows, before=seconds)
    return replace(ahead, rows=rows, seconds=seconds)


def _making(one: DataStage, rows: int, of: int) -> Stage:
    """A stage that makes data from this many rows: the first of them, or a share."""
    if "rows" in type(one.options).model_fields:
        return one.model_copy(update={"options": one.options.model_copy(update={"rows": rows})})
    return one.model_copy(update={"data_share": round(rows / of, 4)})
