"""The budget: how many runs there are, how long each is, and which routes continue (successive halving).

After every round the better half of the routes continues, three times as long. Every run starts from the base again,
with a learning-rate schedule of its own: its score is that of a finished training, whatever its length. Lengths are
fixed in steps before the first run, so that a resumed fit does the same.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sentloom.fitting.request import Budget

GROWTH = 3  # the runs of a round are this many times longer than those of the round before
LEAST_STEPS = 10  # per stage: with fewer, nothing is learnt that a score could show
LEAST_SHARE = 0.3  # of a time budget is left for training, however expensive the scoring is


@dataclass(frozen=True)
class Rung:
    """One round: the steps of each stage of each route, and how many routes continue."""

    steps: Mapping[str, tuple[int, ...]]  # by route; only the best routes run
    runs: int
    keep: int  # 0 in the last round


@dataclass(frozen=True)
class Pace:
    """What a route costs: per stage the seconds per step and the most steps that make sense; and once, at the start."""

    seconds: tuple[float, ...]
    most: tuple[int, ...]
    shares: tuple[float, ...]  # of the route's time, by stage; they sum to 1
    once: float = 0.0  # seconds before the first step, for example for back-translations


def field_sizes(routes: int) -> list[int]:
    """How many routes run in each round: all, half, ... one."""
    sizes = [routes]
    while sizes[-1] > 1:
        sizes.append(math.ceil(sizes[-1] / 2))
    return sizes


def rungs(paces: Mapping[str, Pace], budget: Budget, scoring: float) -> list[Rung]:
    """The rounds that fit into a budget; `scoring` is the time to score one model, in seconds."""
    sizes = field_sizes(len(paces))
    unit = _unit(paces, budget, scoring)
    return [
        Rung(
            {name: _bounded(_wanted(pace, unit * GROWTH**number, budget), pace) for name, pace in paces.items()}, *both
        )
        for number, both in enumerate(zip(sizes, [*sizes[1:], 0], strict=True))
    ]


def affordable(paces: Mapping[str, Pace], budget: Budget, scoring: float) -> list[str]:
    """The cheapest routes: as many as the first round has time for, with a few steps of each stage; at least one."""
    names = sorted(paces, key=lambda name: cost(paces[name], budget))
    while len(names) > 1:
        field = {name: paces[name] for name in names}
        unit = _unit(field, budget, scoring)
        if all(_is_enough(_wanted(pace, unit, budget), pace) for pace in field.values()):
            break
        names.pop()
    return names


def cost(pace: Pace, budget: Budget) -> float:
    """What the shortest sensible run takes: seconds, or steps, which do not depend on any clock."""
    steps = [least / share for least, share in zip(_least(pace), pace.shares, strict=True)]
    seconds = [each * one for each, one in zip(pace.seconds, steps, strict=True)]
    return max(steps) if budget.seconds is None else pace.once + max(seconds)


def _least(pace: Pace) -> list[int]:
    """The steps that each stage must have."""
    return [min(LEAST_STEPS, most) for most in pace.most]


def _is_enough(wanted: Sequence[float], pace: Pace) -> bool:
    return all(steps >= least for steps, least in zip(wanted, _least(pace), strict=True))


def _unit(paces: Mapping[str, Pace], budget: Budget, scoring: float) -> float:
    """What one run of the first round may take, in seconds or steps."""
    sizes = field_sizes(len(paces))
    units = sum(size * GROWTH**number for number, size in enumerate(sizes))
    if budget.seconds is None:
        return (budget.steps or 0) / units
    beside = scoring * (sum(sizes) + 2) + sum(pace.once for pace in paces.values())
    return max(budget.seconds - beside, LEAST_SHARE * budget.seconds) / units


def _wanted(pace: Pace, amount: float, budget: Budget) -> list[float]:
    """The steps of each stage within an amount of seconds or steps."""
    if budget.seconds is None:
        return [amount * share for share in pace.shares]
    return [amount * share / seconds for share, seconds in zip(pace.shares, pace.seconds, strict=True)]


def _bounded(wanted: Sequence[float], pace: Pace) -> tuple[int, ...]:
    """At least a few steps, at most what the data is good for."""
    bounded = zip(wanted, _least(pace), pace.most, strict=True)
    return tuple(max(min(int(steps), most), least) for steps, least, most in bounded)
