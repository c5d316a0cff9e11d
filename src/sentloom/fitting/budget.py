"""The budget: how many runs there are, how long each is, and which routes continue (successive halving).

After every round the better half of the routes continues, three times as long. With the schedule warmup-stable-decay a
longer run continues the shorter one where its decay began, so that only the decay is paid for twice. Every score is
that of a finished training, whatever its length. Lengths are planned in steps before the first run. A clock may only
shorten or drop what has not run yet (`race`), and that is written down first, so that a resumed fit does the same.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sentloom.fitting.request import Budget

GROWTH = 3  # the runs of a round are this many times longer than those of the round before
LEAST_STEPS = 10  # per stage: with fewer, nothing is learned that a score could show
ENOUGH_STEPS = 60  # per stage of the longest run: up to here, longer training gains more than another route
HALVINGS = 60  # of the interval in which the length of a run is searched for
ROUNDING = 1e-6  # steps


@dataclass(frozen=True)
class Rung:
    """One round: the steps of each stage of each route, and how many routes continue."""

    steps: Mapping[str, tuple[int, ...]]  # by route; only the best routes run, and none that is missing here
    runs: int
    keep: int  # 0 in the last round


@dataclass(frozen=True)
class Pace:
    """What a route costs: per stage the seconds per step and the most steps that make sense; and what is beside."""

    seconds: tuple[float, ...]
    most: tuple[int, ...]
    shares: tuple[float, ...]  # of the route's time, by stage; they sum to 1
    once: float = 0.0  # seconds before the first step of the first run, for example for back-translations
    each: float = 0.0  # seconds of every run besides its steps: loading, saving, scoring
    decays: tuple[float, ...] = ()  # by stage, as far as longer runs continue shorter ones: the share that is repeated
    made: float = 0.0  # seconds of `once` for what is mined or written before the race

    def fresh(self, steps: Sequence[int], before: Sequence[int]) -> list[float]:
        """The steps of a run that the run before, which it continues, did not take."""
        repeated = [*self.decays, *[1.0] * (len(steps) - len(self.decays))]
        earlier = [*before, *[0] * (len(steps) - len(before))]
        return [now - (1 - share) * then for now, then, share in zip(steps, earlier, repeated, strict=True)]

    def training(self, steps: Sequence[int], before: Sequence[int] = ()) -> list[float]:
        """Seconds of training, by stage."""
        return [each * count for each, count in zip(self.seconds, self.fresh(steps, before), strict=True)]


def field_sizes(routes: int) -> list[int]:
    """How many routes run in each round: all, half, ... one. A single route has a short and a long run.

    The short one wins if more training does harm.
    """
    sizes = [routes]
    while sizes[-1] > 1 or len(sizes) < 2:
        sizes.append(math.ceil(sizes[-1] / 2))
    return sizes


def rungs(paces: Mapping[str, Pace], budget: Budget) -> list[Rung]:
    """The rounds that fit into a budget, with the longest runs that do.

    A single route runs once if it would otherwise be short: then every step counts more than a second opinion.
    """
    found = _longest(paces, field_sizes(len(paces)), budget)
    if len(paces) > 1 or budget.seconds is None:
        return found
    (pace,), (steps,) = paces.values(), found[-1].steps.values()
    short = any(count < least for count, least in zip(steps, _sensible(pace, ENOUGH_STEPS), strict=True))
    return _longest(paces, [1], budget) if short else found


def _longest(paces: Mapping[str, Pace], sizes: Sequence[int], budget: Budget) -> list[Rung]:
    """Rounds of these sizes with the longest runs that fit into a budget."""
    low, high = 0.0, max(0.0, float(_amount(budget)))
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        within = _cost(_rungs(paces, middle, sizes, budget), paces, budget) <= _amount(budget)
        low, high = (middle, high) if within else (low, middle)
    return _rungs(paces, low, sizes, budget)


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


def run_cost(pace: Pace, steps: Sequence[int], before: Sequence[int] | None, budget: Budget) -> float:
    """What a run takes after one of length `before` (None: the first), in steps or seconds."""
    if before is not None and tuple(before) == tuple(steps):
        return 0.0  # the same run
    if budget.seconds is None:
        return sum(pace.fresh(steps, before or ()))
    return (pace.once if before is None else 0.0) + pace.each + sum(pace.training(steps, before or ()))


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
    costs = (most_expensive(round_costs(lengths, at, paces, budget), one.runs) for at, one in enumerate(lengths))
    return sum(costs)


def _amount(budget: Budget) -> float:
    return (budget.steps or 0) if budget.seconds is None else budget.seconds


def _rungs(paces: Mapping[str, Pace], amount: float, sizes: Sequence[int], budget: Budget) -> list[Rung]:
    """Rounds of these sizes if a run of the first one trains for this many steps or seconds."""
    return [
        Rung({name: _bounded(_wanted(pace, amount * GROWTH**at, budget), pace) for name, pace in paces.items()}, *both)
        for at, both in enumerate(zip(sizes, [*sizes[1:], 0], strict=True))
    ]


def _run_amount(pace: Pace, steps: int, budget: Budget) -> float:
    """The training of a run with so many steps per stage: seconds, or steps, which do not depend on any clock."""
    whole = [least / share for least, share in zip(_sensible(pace, steps), pace.shares, strict=True)]
    seconds = [each * one for each, one in zip(pace.seconds, whole, strict=True)]
    return max(whole) if budget.seconds is None else max(seconds)


def _sensible(pace: Pace, steps: int) -> list[int]:
    """So many steps of each stage, or fewer where more make no sense."""
    return [min(steps, most) for most in pace.most]


def _wanted(pace: Pace, amount: float, budget: Budget) -> list[float]:
    """The steps of each stage within an amount of seconds or steps."""
    if budget.seconds is None:
        return [amount * share for share in pace.shares]
    return [amount * share / seconds for share, seconds in zip(pace.shares, pace.seconds, strict=True)]


def _bounded(wanted: Sequence[float], pace: Pace) -> tuple[int, ...]:
    """At least a few steps, at most what the data is good for."""
    bounded = zip(wanted, _sensible(pace, LEAST_STEPS), pace.most, strict=True)
    return tuple(max(min(int(steps + ROUNDING), most), least) for steps, least, most in bounded)
