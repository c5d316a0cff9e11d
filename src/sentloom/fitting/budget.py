"""The budget: what routes cost, how many runs there are, how long each is, and which continue (successive halving).

After every round the better half of the routes continues, three times as long. With the schedule warmup-stable-decay a
longer run continues the shorter one where its decay began, so that only the decay is paid for twice. Every score is
that of a finished training, whatever its length. Lengths are planned in steps before the first run, from a forecast of
every stage. A clock may only shorten or drop what has not run yet (`race`), and that is written down first, so that a
resumed fit does the same.
"""

import json
import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from accelerate import Accelerator

from sentloom.data.shapes import Shape
from sentloom.encoder import Encoder
from sentloom.engine.forecast import Forecast, forecast
from sentloom.engine.plan import Plan, stage_values
from sentloom.engine.stages import DataStage, Stage, Train
from sentloom.errors import MissingPart, ModelError
from sentloom.evaluation.task import Task
from sentloom.fitting.request import Budget
from sentloom.fitting.routes import BATCH, Route, SkippedRoute, TrainsOn

GROWTH = 3  # the runs of a round are this many times longer than those of the round before
LEAST_STEPS = 10  # per stage: with fewer, nothing is learned that a score could show
ENOUGH_STEPS = 60  # per stage of the longest run: up to here, longer training gains more than another route
HALVINGS = 60  # of the interval in which the length of a run is searched for
ROUNDING = 1e-6  # steps

# How a route's time is shared among its training stages: raw text prepares, labels matter more.
WEIGHTS = {Shape.TEXTS: 1.0}
OTHER_WEIGHT = 2.0
EPOCHS = {Shape.TEXTS: 1, Shape.PARALLEL: 10}  # at most
# Few rows are seen more often, until a run has `FEW_STEPS` steps.
OTHER_EPOCHS, FEW_ROWS_EPOCHS, FEW_STEPS = 3, 10, 60

# Of a time budget, and of the route's own share of it, for making the data of a route.
MADE_SHARE, MADE_PART = 0.2, 0.5
FEWEST_MADE = 256  # rows: with fewer, a route is not worth it
FEWEST_WRITTEN = 64  # texts that a writer writes for, which is slow: with fewer, a route is not worth it
MADE = {"views": "views", "mine": "hard negatives", "synthesize": "texts to write for"}

TIMED_TEXTS = 64
PER_TOKEN = 5  # characters, roughly: what a token of the greatest length of an encoder stands for
BESIDES = 10  # characters that a text costs besides its own: special tokens and bookkeeping


@dataclass(frozen=True)
class Rung:
    """One round: the steps of each stage of each route, and how many routes continue."""

    steps: Mapping[str, tuple[int, ...]]  # by route; only the best routes run, and none that is missing here
    runs: int
    keep: int  # 0 in the last round


@dataclass(frozen=True)
class Pace:
    """What a route costs: by stage, the seconds per step and the most steps that make sense; and what comes besides."""

    seconds: tuple[float, ...]
    most: tuple[int, ...]
    shares: tuple[float, ...]  # of the route's time, by stage; they sum to 1
    once: float = 0.0  # seconds before the first step of the first run, for example for back-translations
    per_run: float = 0.0  # seconds of every run besides its steps: loading, saving, scoring
    decays: tuple[float, ...] = ()  # by stage, as far as longer runs continue shorter ones: the share that is repeated
    made: float = 0.0  # seconds of `once` for what is mined or written before the race

    def fresh(self, steps: Sequence[int], before: Sequence[int]) -> list[float]:
        """The steps of a run that the run before, which it continues, did not take."""
        repeated = [*self.decays, *[1.0] * (len(steps) - len(self.decays))]
        earlier = [*before, *[0] * (len(steps) - len(before))]
        return [now - (1 - share) * then for now, then, share in zip(steps, earlier, repeated, strict=True)]

    def training(self, steps: Sequence[int], before: Sequence[int] = ()) -> list[float]:
        """Seconds of training, by stage."""
        return [per_step * count for per_step, count in zip(self.seconds, self.fresh(steps, before), strict=True)]


def rungs(paces: Mapping[str, Pace], budget: Budget) -> list[Rung]:
    """The rounds that fit into a budget, with the longest runs that do.

    A single route runs once if it would otherwise be short: then every step counts more than a second opinion.
    """
    rounds = _longest(paces, field_sizes(len(paces)), budget)
    if len(paces) > 1 or budget.seconds is None:
        return rounds
    (pace,), (steps,) = paces.values(), rounds[-1].steps.values()
    short = any(count < least for count, least in zip(steps, _sensible(pace, ENOUGH_STEPS), strict=True))
    return _longest(paces, [1], budget) if short else rounds


def field_sizes(routes: int) -> list[int]:
    """How many routes run in each round: all, half, ... one. A single route has a short and a long run.

    The short one wins if more training does harm.
    """
    sizes = [routes]
    while sizes[-1] > 1 or len(sizes) < 2:
        sizes.append(math.ceil(sizes[-1] / 2))
    return sizes


def _longest(paces: Mapping[str, Pace], sizes: Sequence[int], budget: Budget) -> list[Rung]:
    """Rounds of these sizes with the longest runs that fit into a budget."""
    low, high = 0.0, max(0.0, float(_amount(budget)))
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        within = _cost(_rungs(paces, middle, sizes, budget), paces, budget) <= _amount(budget)
        low, high = (middle, high) if within else (low, middle)
    return _rungs(paces, low, sizes, budget)


def _rungs(paces: Mapping[str, Pace], amount: float, sizes: Sequence[int], budget: Budget) -> list[Rung]:
    """Rounds of these sizes if a run of the first one trains for this many steps or seconds."""
    rounds = []
    for at, (runs, keep) in enumerate(zip(sizes, [*sizes[1:], 0], strict=True)):
        longer = amount * GROWTH**at
        steps = {name: _bounded(_steps(pace, longer, budget), pace) for name, pace in paces.items()}
        rounds.append(Rung(steps, runs, keep))
    return rounds


def _bounded(steps_in_time: Sequence[float], pace: Pace) -> tuple[int, ...]:
    """At least a few steps, at most what the data is good for."""
    bounded = zip(steps_in_time, _sensible(pace, LEAST_STEPS), pace.most, strict=True)
    return tuple(max(min(int(steps + ROUNDING), most), least) for steps, least, most in bounded)


def _steps(pace: Pace, amount: float, budget: Budget) -> list[float]:
    """The steps of each stage within an amount of seconds or steps."""
    if budget.seconds is None:
        return [amount * share for share in pace.shares]
    return [amount * share / seconds for share, seconds in zip(pace.shares, pace.seconds, strict=True)]


def _sensible(pace: Pace, steps: int) -> list[int]:
    """`steps` steps of each stage, or fewer where more make no sense."""
    return [min(steps, most) for most in pace.most]


def affordable(paces: Mapping[str, Pace], budget: Budget) -> bool:
    """Whether there is time for these routes: for a few steps of each stage of each in the first round.

    Of a time budget, the longest run must still get enough. Whoever gives a number of steps wants to see a race.
    """
    if budget.seconds is None:
        return least_cost(paces, budget) <= _amount(budget)
    sizes = field_sizes(len(paces))
    enough = max(_run_amount(pace, ENOUGH_STEPS, budget) for pace in paces.values()) / GROWTH ** (len(sizes) - 1)
    return max(least_cost(paces, budget), _cost(_rungs(paces, enough, sizes, budget), paces, budget)) <= budget.seconds


def least_cost(paces: Mapping[str, Pace], budget: Budget) -> float:
    """What the shortest sensible race of these routes takes, in steps or seconds."""
    least = max(_run_amount(pace, LEAST_STEPS, budget) for pace in paces.values())
    return _cost(_rungs(paces, least, field_sizes(len(paces)), budget), paces, budget)


def _run_amount(pace: Pace, steps: int, budget: Budget) -> float:
    """The training of a run with `steps` steps per stage: seconds, or steps, which do not depend on any clock."""
    whole = [least / share for least, share in zip(_sensible(pace, steps), pace.shares, strict=True)]
    seconds = [per_step * count for per_step, count in zip(pace.seconds, whole, strict=True)]
    return max(whole) if budget.seconds is None else max(seconds)


def run_cost(pace: Pace, steps: Sequence[int], before: Sequence[int] | None, budget: Budget) -> float:
    """What a run takes after one of length `before` (None: the first), in steps or seconds."""
    if before is not None and tuple(before) == tuple(steps):
        return 0.0  # the same run
    if budget.seconds is None:
        return sum(pace.fresh(steps, before or ()))
    return (pace.once if before is None else 0.0) + pace.per_run + sum(pace.training(steps, before or ()))


def round_costs(lengths: Sequence[Rung], number: int, paces: Mapping[str, Pace], budget: Budget) -> dict[str, float]:
    """What the run of each route in one round takes; rounds are counted from 0."""
    before = lengths[number - 1].steps if number else {}
    return {
        name: run_cost(paces[name], steps, before.get(name), budget)
        for name, steps in lengths[number].steps.items()
        if name in paces
    }


def most_expensive(costs: Mapping[str, float], runs: int) -> float:
    """What a round takes if its most expensive routes run."""
    return sum(sorted(costs.values(), reverse=True)[:runs])


def _cost(lengths: Sequence[Rung], paces: Mapping[str, Pace], budget: Budget) -> float:
    costs = (most_expensive(round_costs(lengths, at, paces, budget), rung.runs) for at, rung in enumerate(lengths))
    return sum(costs)


def _amount(budget: Budget) -> float:
    return (budget.steps or 0) if budget.seconds is None else budget.seconds


@dataclass(frozen=True)
class TimedRoute:
    """A route with the forecast of each of its stages, and what its training stages learn from."""

    route: Route
    forecasts: tuple[Forecast, ...]
    trains_on: tuple[TrainsOn, ...]
    per_run: float = 0.0  # seconds of every run besides its steps

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
        made = sum(ahead.before + ahead.seconds for stage, ahead in self.both if stage in self.route.makers)
        weights = [WEIGHTS.get(learned.shape, OTHER_WEIGHT) for _, _, learned in self.training]
        most = tuple(most_steps(stage, learned.shape, learned.rows) for stage, _, learned in self.training)
        seconds = tuple(ahead.seconds / ahead.steps for _, ahead, _ in self.training)
        shares = tuple(weight / sum(weights) for weight in weights)
        return Pace(seconds, most, shares, once, self.per_run, self._decays, made)

    @property
    def _decays(self) -> tuple[float, ...]:
        """Only the first training stage starts from the same encoder in every round."""
        first, *_ = (stage for stage, _, _ in self.training)
        return (first.settings.decay,) if first.continues and self.route.select is None else ()


def most_steps(stage: Train, shape: Shape, rows: int) -> int:
    """The most steps that make sense for this number of rows."""
    batch = stage.settings.batch * stage.settings.accumulate
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
            forecasts = [ahead for part in _parts(route) for ahead in self._forecasts(part, route)]
        except (MissingPart, ModelError) as error:
            return SkippedRoute(route.name, f"{error.problem}; {error.fix}" if error.fix else error.problem)
        trained = [TrainsOn(ahead.shape or Shape.TEXTS, ahead.rows) for ahead in forecasts if ahead.steps]
        besides = self.scoring + len(trained) * self.loading
        return TimedRoute(route, tuple(forecasts), route.trains_on or tuple(trained), besides)

    def _forecasts(self, part: tuple[Stage, ...], route: Route) -> list[Forecast]:
        base = route.base or self.base
        key = json.dumps([base, *map(stage_values, part)], sort_keys=True)
        if key not in self.known:
            start = time.perf_counter()
            self.known[key] = forecasts = forecast(Plan(route.name, base, part, seeds=(self.seed,)), self.accelerator)
            if len(part) == 1:  # nothing is made before the training
                self.loading = max(self.loading, time.perf_counter() - start - forecasts[0].timing)
        return self.known[key]


def _parts(route: Route) -> Iterator[tuple[Stage, ...]]:
    """The stages in groups: each training stage with the stages that make its data."""
    part: list[Stage] = []
    for stage in route.stages:
        part.append(stage)
        if stage in route.training:
            yield tuple(part)
            part = []


def limited(timed: TimedRoute, budget: Budget, routes: int = 1) -> TimedRoute | SkippedRoute:
    """The route with as much data made first as there is time for; skipped if that is too little.

    `routes` is how many share the budget so far.
    """
    for stage, ahead in timed.both:
        if isinstance(stage, DataStage) and stage.PRODUCES == "dataset" and not stage.references():
            rows = _affordable_rows(timed, stage, budget, routes)
            fewest = FEWEST_WRITTEN if stage.method == "synthesize" else FEWEST_MADE
            if rows < min(fewest, ahead.rows):
                why = f"the budget has time for {rows:,} {MADE.get(stage.method, 'rows')}, and it needs {fewest}"
                return SkippedRoute(timed.route.name, why, for_time=True)
            timed = with_rows(timed, stage, rows)
    return timed


def _affordable_rows(timed: TimedRoute, maker: DataStage, budget: Budget, routes: int) -> int:
    """How many rows there is time to make, and to prepare for what learns from them."""
    behind = [(stage, ahead) for stage, ahead in timed.both if stage.name in _behind(timed, maker)]
    rows = behind[0][1].rows
    if budget.seconds is None:
        return min(rows, (budget.steps or 0) * BATCH)
    fixed = sum(ahead.before for _, ahead in behind if not ahead.steps)
    per_row = sum(_for_rows(ahead) for _, ahead in behind) / rows
    seconds = made_share(routes) * budget.seconds - fixed
    return min(rows, max(0, int(seconds / max(per_row, 1e-9))))


def made_share(routes: int) -> float:
    """The share of a time budget that making the data of one of `routes` routes may take."""
    return min(MADE_SHARE, MADE_PART / routes)


def _for_rows(ahead: Forecast) -> float:
    """Seconds before the first step that grow with the rows: to make them, or to prepare them (a teacher's scores)."""
    return ahead.before if ahead.steps else ahead.seconds


def with_rows(timed: TimedRoute, maker: DataStage, rows: int) -> TimedRoute:
    """The route if `maker` makes this many rows."""
    behind, (of,) = _behind(timed, maker), [ahead.rows for stage, ahead in timed.both if stage is maker]
    stages = tuple(_making(stage, rows, of) if stage is maker else stage for stage in timed.route.stages)
    forecasts = tuple(_part(ahead, rows / of) if stage.name in behind else ahead for stage, ahead in timed.both)
    trains_on = tuple(
        replace(learned, rows=min(rows, learned.rows)) if stage.name in behind else learned
        for stage, _, learned in timed.training
    )
    return replace(timed, route=replace(timed.route, stages=stages), forecasts=forecasts, trains_on=trains_on)


def _behind(timed: TimedRoute, maker: Stage) -> set[str]:
    """The names of a stage and of all that take what it makes, or what is made of that."""
    names = {maker.name}
    for stage in timed.route.stages:
        names |= {stage.name} if names & {*stage.references()} else set()
    return names


def _part(ahead: Forecast, share: float) -> Forecast:
    """The forecast of a stage for a share of its rows; the time of training depends on steps instead."""
    rows, seconds = round(share * ahead.rows), share * _for_rows(ahead)
    if ahead.steps:
        return replace(ahead, rows=rows, before=seconds)
    return replace(ahead, rows=rows, seconds=seconds)


def _making(stage: DataStage, rows: int, of: int) -> Stage:
    """A stage that makes data from this many rows: the first of them, or a share."""
    if "rows" in type(stage.options).model_fields:
        return stage.model_copy(update={"options": stage.options.model_copy(update={"rows": rows})})
    return stage.model_copy(update={"data_share": round(rows / of, 4)})


@dataclass(frozen=True)
class Speed:
    """What encoding costs, measured on a sample of texts."""

    per_text: float  # seconds per text of the sample
    size: float  # of such a text, in characters
    longest: int  # characters that are read of a text

    def seconds(self, tasks: Sequence[Task]) -> float:
        """How long the texts of some tasks take."""
        texts = (text for task in tasks for role_texts in task.texts.values() for text in role_texts)
        return self.per_text / self.size * sum(_size(text, self.longest) for text in texts)


def measure_speed(encoder: Encoder, texts: Sequence[str]) -> Speed:
    """Encode a sample of texts by the clock."""
    sample = [texts[at] for at in np.linspace(0, len(texts) - 1, min(TIMED_TEXTS, len(texts))).astype(int)]
    start = time.perf_counter()
    encoder.encode(sample)
    per_text = (time.perf_counter() - start) / len(sample)
    longest = PER_TOKEN * encoder.tokens.max_length
    return Speed(per_text, sum(_size(text, longest) for text in sample) / len(sample), longest)


def _size(text: str, longest: int) -> int:
    return BESIDES + min(len(text), longest)
