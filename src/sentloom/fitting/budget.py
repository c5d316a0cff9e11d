"""One budget for all routes: how many runs there are, how long each is, and who goes on (successive halving).

At every rung the better half of the routes goes on, and what goes on is three times as long. A run starts from the base
anew, with a schedule of its own: its score is that of a finished training, whatever its length. Lengths are fixed in
steps before the first run, so that a run that is taken up again does the same.
"""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sentloom.errors import InputError

GROWTH = 3  # a rung's runs are as many times longer than those before
LEAST_STEPS = 10  # of a stage: with fewer, nothing is learnt that a score could show
LEAST_SHARE = 0.3  # of a time budget that is left for training, however dear the scoring is
UNITS = {"s": 1, "m": 60, "h": 3600}
FORM = re.compile(r"(?P<number>\d+(\.\d+)?)\s*(?P<unit>s|m|h|steps?)", re.IGNORECASE)


@dataclass(frozen=True)
class Budget:
    """Seconds in all, or steps of the optimiser over all runs: one of the two is given."""

    seconds: float | None
    steps: int | None

    @classmethod
    def parse(cls, text: str) -> "Budget":
        """From "10m", "90s", "1.5h" or "400 steps"."""
        found = FORM.fullmatch(text.strip())
        unit = found["unit"].lower() if found else ""
        number = float(found["number"]) if found else 0.0
        if number == 0 or (unit not in UNITS and not number.is_integer()):
            raise InputError("budget", repr(text), "a time or a number of steps", "say 10m, 90s, 1.5h or 400steps")
        return cls(number * UNITS[unit], None) if unit in UNITS else cls(None, int(number))

    def __str__(self) -> str:
        return f"{self.steps:,} steps" if self.steps is not None else in_time(self.seconds or 0)


@dataclass(frozen=True)
class Rung:
    """One round: the steps of each stage of each route, and how many routes go on to the next."""

    steps: Mapping[str, tuple[int, ...]]  # by route; only the best of them are run
    runs: int
    keep: int  # 0: it is the last


@dataclass(frozen=True)
class Pace:
    """What a route costs: seconds a step and the greatest sensible number of steps, of each stage; seconds at first."""

    seconds: tuple[float, ...]
    most: tuple[int, ...]
    shares: tuple[float, ...]  # of the route's time, by stage; they sum to 1
    once: float = 0.0  # before the first step, such as for back-translations


def field_sizes(routes: int) -> list[int]:
    """How many routes run at each rung: all, half, ... one."""
    sizes = [routes]
    while sizes[-1] > 1:
        sizes.append(math.ceil(sizes[-1] / 2))
    return sizes


def rungs(paces: Mapping[str, Pace], budget: Budget, scoring: float) -> list[Rung]:
    """The rounds that fit into a budget; `scoring` is the seconds that one model takes to be scored."""
    sizes = field_sizes(len(paces))
    unit = _unit(paces, budget, scoring)
    return [
        Rung(
            {name: _bounded(_wanted(pace, unit * GROWTH**number, budget), pace) for name, pace in paces.items()}, *both
        )
        for number, both in enumerate(zip(sizes, [*sizes[1:], 0], strict=True))
    ]


def affordable(paces: Mapping[str, Pace], budget: Budget, scoring: float) -> list[str]:
    """The cheapest routes, as many as have time for some steps of each stage in the first round; at least one."""
    names = sorted(paces, key=lambda name: cost(paces[name], budget))
    while len(names) > 1:
        field = {name: paces[name] for name in names}
        unit = _unit(field, budget, scoring)
        if all(_is_enough(_wanted(pace, unit, budget), pace) for pace in field.values()):
            break
        names.pop()
    return names


def cost(pace: Pace, budget: Budget) -> float:
    """What the shortest run with some steps of every stage takes: seconds, or steps, which no clock has a say in."""
    steps = [least / share for least, share in zip(_least(pace), pace.shares, strict=True)]
    seconds = [each * one for each, one in zip(pace.seconds, steps, strict=True)]
    return max(steps) if budget.seconds is None else pace.once + max(seconds)


def _least(pace: Pace) -> list[int]:
    """The steps of each stage that a run must have."""
    return [min(LEAST_STEPS, most) for most in pace.most]


def _is_enough(wanted: Sequence[float], pace: Pace) -> bool:
    return all(steps >= least for steps, least in zip(wanted, _least(pace), strict=True))


def _unit(paces: Mapping[str, Pace], budget: Budget, scoring: float) -> float:
    """What one run of the first round may take: seconds, or steps."""
    sizes = field_sizes(len(paces))
    units = sum(size * GROWTH**number for number, size in enumerate(sizes))
    if budget.seconds is None:
        return (budget.steps or 0) / units
    beside = scoring * (sum(sizes) + 2) + sum(pace.once for pace in paces.values())
    return max(budget.seconds - beside, LEAST_SHARE * budget.seconds) / units


def _wanted(pace: Pace, amount: float, budget: Budget) -> list[float]:
    """The steps of each stage in so many seconds, or of so many steps."""
    if budget.seconds is None:
        return [amount * share for share in pace.shares]
    return [amount * share / seconds for share, seconds in zip(pace.shares, pace.seconds, strict=True)]


def _bounded(wanted: Sequence[float], pace: Pace) -> tuple[int, ...]:
    """At least a few steps, at most what the data bear."""
    bounded = zip(wanted, _least(pace), pace.most, strict=True)
    return tuple(max(min(int(steps), most), least) for steps, least, most in bounded)


def in_time(seconds: float) -> str:
    """A time as people say it: 45 s, 2 min 30 s, 1 h 5 min."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min" + (f" {whole % 60} s" if whole % 60 else "")
    return f"{whole // 3600} h" + (f" {whole % 3600 // 60} min" if whole % 3600 >= 60 else "")
