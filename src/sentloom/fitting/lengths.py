"""The lengths of runs: what the rows of a route are good for, and the rounds of a race (successive halving).

After every round the better half of the routes continues. With the schedule warmup-stable-decay a longer run continues
the shorter one where its decay began, so that only the decay is paid for twice. Every score is that of a finished
training, whatever its length.

A budget in steps gives the same lengths on every machine: each round is three times as long as the one before. With a
budget in time (`clock`) there are two rounds, and these lengths are the most that make sense.
"""

import math
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sentloom.data.shapes import Shape
from sentloom.engine.stages import Train
from sentloom.fitting.routes import Route, TrainsOn

GROWTH = 3  # the runs of a round are this many times longer than those of the round before
LEAST_STEPS = 10  # per stage, of a budget in steps: with fewer, nothing is learned that a score could show
EPOCHS = {Shape.TEXTS: 1, Shape.PARALLEL: 10}  # at most
# Few rows are seen more often, until a run has `FEW_STEPS` steps; those with labels even more, in other company.
OTHER_EPOCHS, FEW_ROWS_EPOCHS, FEW_LABELLED_EPOCHS, FEW_STEPS = 3, 10, 40, 60
# What a teacher finds near a text has no noise to learn by heart (docs/results-raw-text.md).
TAUGHT_EPOCHS, TAUGHT_STEPS = 10, 300


def weight_of(trains_on: TrainsOn) -> int:
    """How a route's time is shared among its training stages."""
    return 1 if trains_on.shape is Shape.TEXTS else 2


def most_steps(stage: Train, shape: Shape, rows: int) -> int:
    """The most steps that make sense for this number of rows."""
    batch = stage.settings.batch * stage.settings.accumulate
    if stage.method == "teacher":
        return max(1, min(TAUGHT_STEPS, TAUGHT_EPOCHS * rows // batch))
    if shape in EPOCHS:
        return max(1, EPOCHS[shape] * rows // batch)
    few = FEW_LABELLED_EPOCHS if shape is Shape.CLASSIFICATION else FEW_ROWS_EPOCHS
    return max(1, OTHER_EPOCHS * rows // batch, min(FEW_STEPS, few * rows // batch))


@dataclass(frozen=True)
class Extent:
    """How long a route may train, by training stage."""

    most: tuple[int, ...]  # steps that make sense
    weights: tuple[int, ...]  # of the stages in the route's time
    decays: tuple[float, ...] = ()  # as far as longer runs continue shorter ones: the share that is repeated

    @classmethod
    def of(cls, route: Route, learned: Sequence[TrainsOn]) -> "Extent":
        """Only the first training stage starts from the same encoder in every round."""
        both = list(zip(route.training, learned, strict=True))
        first, *_ = route.training
        continues = first.continues and route.select is None
        return cls(
            tuple(most_steps(stage, trains_on.shape, trains_on.rows) for stage, trains_on in both),
            tuple(map(weight_of, learned)),
            (first.settings.decay,) if continues else (),
        )

    @property
    def least(self) -> tuple[int, ...]:
        """The fewest steps of each stage."""
        return tuple(min(LEAST_STEPS, most) for most in self.most)

    def cost(self, steps: Sequence[int], before: Sequence[int]) -> float:
        """The steps that a run takes after one of length `before` (empty: none), which it continues."""
        if tuple(before) == tuple(steps):
            return 0.0  # the same run
        earlier = [*before, *[0] * (len(steps) - len(before))]
        repeated = [*self.decays, *[1.0] * (len(steps) - len(self.decays))]
        return sum(now - (1 - share) * then for now, then, share in zip(steps, earlier, repeated, strict=True))


@dataclass(frozen=True)
class Round:
    """The length of each route, by stage, and how many of the routes continue after it.

    With a time budget, lengths are the most that make sense, and the clock ends the runs.
    """

    steps: Mapping[str, tuple[int, ...]]
    runs: int  # only the best routes run
    keep: int  # 0 in the last round


def rounds_of_time(extents: Mapping[str, Extent]) -> tuple[Round, ...]:
    """All routes, then the best one; a single route runs once."""
    steps = {name: extent.most for name, extent in extents.items()}
    last = Round(steps, 1, 0)
    return (Round(steps, len(steps), 1), last) if len(steps) > 1 else (last,)


def field_sizes(routes: int) -> list[int]:
    """How many routes run in each round: all, half, ... one. A single route has a short and a long run.

    The short one wins if more training does harm.
    """
    sizes = [routes]
    while sizes[-1] > 1 or len(sizes) < 2:
        sizes.append(math.ceil(sizes[-1] / 2))
    return sizes


def rounds_of_steps(extents: Mapping[str, Extent], steps: int) -> tuple[Round, ...]:
    """The rounds with the longest runs that fit into a number of steps; none after the longest possible one."""
    sizes = range(steps * _grid(extents) + 1)
    units = bisect_right(sizes, float(steps), key=lambda units: cost(_rounds(extents, units), extents))
    rounds = _rounds(extents, max(0, units - 1))
    return tuple(now for at, now in enumerate(rounds) if not at or now.steps != rounds[at - 1].steps)


def fits_in_steps(extents: Mapping[str, Extent], steps: int) -> bool:
    """Whether there are a few steps for each stage of each route in the first round."""
    both = [(extent, pair) for extent in extents.values() for pair in zip(extent.least, extent.weights, strict=True)]
    units = max(_grid(extents) * least * sum(extent.weights) // weight for extent, (least, weight) in both)
    return cost(_rounds(extents, units), extents) <= steps


def cost(rounds: Sequence[Round], extents: Mapping[str, Extent]) -> float:
    """The steps that all rounds take if the longest runs continue."""
    total, before = 0.0, dict[str, tuple[int, ...]]()
    for number in rounds:
        costs = [extents[name].cost(steps, before.get(name, ())) for name, steps in number.steps.items()]
        total, before = total + sum(sorted(costs, reverse=True)[: number.runs]), dict(number.steps)
    return total


def _grid(extents: Mapping[str, Extent]) -> int:
    """The units of a step: so many that every stage of every round becomes a step longer after whole units."""
    weights = (weight for extent in extents.values() for weight in extent.weights)
    return math.lcm(*weights) * GROWTH ** (len(field_sizes(len(extents))) - 1)


def _rounds(extents: Mapping[str, Extent], units: int) -> tuple[Round, ...]:
    """The rounds if a run of the first one has this many units of a step."""
    sizes, grid = field_sizes(len(extents)), _grid(extents)
    return tuple(
        Round({name: _steps(extent, units * GROWTH**at, grid) for name, extent in extents.items()}, runs, keep)
        for at, (runs, keep) in enumerate(zip(sizes, [*sizes[1:], 0], strict=True))
    )


def _steps(extent: Extent, units: int, grid: int) -> tuple[int, ...]:
    """The steps of each stage: at least a few, at most what the data is good for."""
    whole = grid * sum(extent.weights)
    bounded = zip(extent.weights, extent.least, extent.most, strict=True)
    return tuple(max(min(units * weight // whole, most), least) for weight, least, most in bounded)
