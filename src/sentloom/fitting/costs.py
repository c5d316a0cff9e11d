"""What a route costs: a small sample of every stage is timed, and data stages get a share of the budget at most."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from accelerate import Accelerator

from sentloom.data.shapes import Shape
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
OTHER_EPOCHS = 3
MADE_SHARE = 0.2  # of a time budget may go to a stage that makes data
FEWEST_MADE = 256  # rows: with fewer, a route is not worth it
MADE = {"views": "views", "mine": "hard negatives", "synthesize": "sentences to write for"}


@dataclass(frozen=True)
class TimedRoute:
    """A route with the forecast of each of its stages, and what its training stages learn from."""

    route: Route
    forecasts: tuple[Forecast, ...]
    trains_on: tuple[TrainsOn, ...]

    @property
    def training(self) -> list[tuple[Train, Forecast, TrainsOn]]:
        """The training stages."""
        both = [(one, ahead) for one, ahead in self.both if isinstance(one, Train)]
        return [(*pair, learnt) for pair, learnt in zip(both, self.trains_on, strict=True)]

    @property
    def both(self) -> list[tuple[Stage, Forecast]]:
        """The stages with their forecasts."""
        return list(zip(self.route.stages, self.forecasts, strict=True))

    @property
    def pace(self) -> Pace:
        """What it costs per step and once; its time is shared among its training stages by what they learn from."""
        once = sum(ahead.seconds for one, ahead in self.both if not isinstance(one, Train))
        weights = [WEIGHTS.get(learnt.shape, OTHER_WEIGHT) for _, _, learnt in self.training]
        most = tuple(_most_steps(one, learnt) for one, _, learnt in self.training)
        seconds = tuple(ahead.seconds / ahead.steps for _, ahead, _ in self.training)
        return Pace(seconds, most, tuple(weight / sum(weights) for weight in weights), once)


def _most_steps(one: Train, learnt: TrainsOn) -> int:
    """More steps than this make no sense for so few rows."""
    batch = one.settings.batch * one.settings.accumulate
    return max(1, EPOCHS.get(learnt.shape, OTHER_EPOCHS) * learnt.rows // batch)


def time_routes(routes: Sequence[Route], base: str, seed: int, accelerator: Accelerator) -> list[TimedRoute]:
    """Time a sample of every stage; stages that several routes share are timed once."""
    known: dict[str, list[Forecast]] = {}
    found = []
    for route in routes:
        forecasts: list[Forecast] = []
        for part in _parts(route):
            key = json.dumps([stage_values(one) for one in part], sort_keys=True)
            if key not in known:
                known[key] = forecast(Plan(route.name, base, part, seeds=(seed,)), accelerator)
            forecasts += known[key]
        trained = [TrainsOn(one.shape or Shape.TEXTS, one.rows) for one in forecasts if one.steps]
        found.append(TimedRoute(route, tuple(forecasts), route.trains_on or tuple(trained)))
    return found


def _parts(route: Route) -> Iterator[tuple[Stage, ...]]:
    """The stages in groups: each training stage with the stages that make its data."""
    part: list[Stage] = []
    for one in route.stages:
        part.append(one)
        if isinstance(one, Train):
            yield tuple(part)
            part = []


def affordable_routes(timed: Sequence[TimedRoute], budget: Budget) -> tuple[list[TimedRoute], list[SkippedRoute]]:
    """The routes with as much data made first as the budget has time for, and those for which that is too little."""
    found = [_limited(one, budget) for one in timed]
    kept = [one for one in found if isinstance(one, TimedRoute)]
    return kept, [one for one in found if isinstance(one, SkippedRoute)]


def _limited(timed: TimedRoute, budget: Budget) -> TimedRoute | SkippedRoute:
    for one, ahead in timed.both:
        if isinstance(one, DataStage) and one.PRODUCES == "dataset":
            rows = _affordable_rows(ahead, budget)
            if rows < min(FEWEST_MADE, ahead.rows):
                what = MADE.get(one.method, "rows")
                why = f"the budget has time for {rows:,} {what}, and it needs {FEWEST_MADE}"
                return SkippedRoute(timed.route.name, why, for_time=True)
            timed = with_rows(timed, one, rows)
    return timed


def _affordable_rows(ahead: Forecast, budget: Budget) -> int:
    if budget.seconds is None:
        return min(ahead.rows, (budget.steps or 0) * BATCH)
    return min(ahead.rows, int(MADE_SHARE * budget.seconds * ahead.rows / max(ahead.seconds, 1e-9)))


def with_rows(timed: TimedRoute, maker: DataStage, rows: int) -> TimedRoute:
    """The route if `maker` makes this many rows."""
    stages = tuple(_making(one, rows, ahead.rows) if one is maker else one for one, ahead in timed.both)
    forecasts = tuple(
        replace(ahead, rows=rows, seconds=ahead.seconds * rows / ahead.rows) if one is maker else ahead
        for one, ahead in timed.both
    )
    trains_on = tuple(
        replace(learnt, rows=min(rows, learnt.rows)) if maker.name in one.references() else learnt
        for one, _, learnt in timed.training
    )
    return TimedRoute(replace(timed.route, stages=stages), forecasts, trains_on)


def _making(one: DataStage, rows: int, of: int) -> Stage:
    """A stage that makes data from this many rows: the first of them, or a share."""
    if "rows" in type(one.options).model_fields:
        return one.model_copy(update={"options": one.options.model_copy(update={"rows": rows})})
    return one.model_copy(update={"data_share": round(rows / of, 4)})
