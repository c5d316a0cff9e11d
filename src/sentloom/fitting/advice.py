"""What may help where the gate refused. `report.advice` makes sentences of it."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from sentloom.fitting.measures import Measure

FEW_STEPS = 10  # of training: they teach little
LITTLE_LEFT = 95.0  # a base with this score has little left to gain
MOST_CLUSTERS = 100_000  # in test rows
POWER = ((1.96 + 0.84) / 1.96) ** 2  # times as many clusters show a gain in 80% of cases instead of every second one


class AdviceKind(StrEnum):
    """What may help where the gate refused."""

    LABEL = "label"  # text without labels, which is no prose
    ADD_CLUSTERS = "add clusters"
    KEEP_BASE = "keep the base"  # training made it worse
    KEEP_BETTER_BASE = "keep the better base"
    SETTLE = "settle"  # validation and test rows disagree
    ADD_ROWS = "add rows"  # about `number` clusters would show the gain
    LITTLE_LEFT = "little left"
    IMPROVE_DATA = "improve the data"
    ADD_PAIRS = "add pairs"  # to raw text
    MORE_TIME = "more time"  # for the routes in `names`
    MORE_STEPS = "more steps"  # than `number`
    TICK = "tick"  # the fit in the folder `names`
    TRY_TO_TICK = "try to tick"  # there was no time to see whether there is enough to tick
    NOTHING_TO_TICK = "nothing to tick"  # the models differ for `number` `of` queries
    TICK_MORE = "tick more"  # up to `number` queries
    ALL_TICKED = "all ticked"
    PEOPLE_KEEP_BASE = "people keep the base"


@dataclass(frozen=True)
class Advice:
    """What may help; `report.advice` makes a sentence of it."""

    kind: AdviceKind
    number: int = 0
    of: int = 0
    names: tuple[str, ...] = ()


@dataclass(frozen=True)
class Refusal:
    """What the advice after a refusal depends on."""

    decided: Measure
    validation_gain: float
    folder: Path
    label_free: bool = False
    not_prose: bool = False
    late: tuple[str, ...] = ()  # routes that a larger budget would have time for
    steps: int = 0  # of the training; 0: nothing was trained for it

    @property
    def advice(self) -> tuple[Advice, ...]:
        """What the numbers mean, and what to try next."""
        if self.not_prose:
            return (Advice(AdviceKind.LABEL),)
        short = 0 < self.steps <= FEW_STEPS and not self.decided.worse
        return (*self._advice(), *([Advice(AdviceKind.MORE_STEPS, self.steps)] if short else []))

    def _advice(self) -> Iterator[Advice]:
        if not self.label_free or self.decided.worse or not self.decided.has_enough_clusters:
            yield self._meaning
        if self.decided.before >= LITTLE_LEFT:
            yield Advice(AdviceKind.LITTLE_LEFT)
        if self.label_free:
            yield Advice(AdviceKind.TICK, names=(str(self.folder),))
            yield Advice(AdviceKind.ADD_PAIRS)
        else:
            yield Advice(AdviceKind.IMPROVE_DATA)
        if self.late:
            yield Advice(AdviceKind.MORE_TIME, names=self.late)

    @property
    def _meaning(self) -> Advice:
        if not self.decided.has_enough_clusters:
            return Advice(AdviceKind.ADD_CLUSTERS)
        if self.decided.worse:
            return Advice(AdviceKind.KEEP_BASE)
        if self.decided.better and self.validation_gain <= 0:
            return Advice(AdviceKind.SETTLE)
        needed = _clusters_needed(self.decided)
        return Advice(AdviceKind.KEEP_BETTER_BASE) if needed is None else Advice(AdviceKind.ADD_ROWS, needed)


def _clusters_needed(decided: Measure) -> int | None:
    """How many clusters show this gain in 80% of cases (an interval's width falls with their root); None without one.

    A gain that needs more than `MOST_CLUSTERS` is as good as none.
    """
    if decided.difference <= 0:
        return None
    half = decided.difference - decided.low
    needed = math.ceil(POWER * decided.clusters * (half / decided.difference) ** 2)
    return max(needed, decided.clusters + 1) if needed <= MOST_CLUSTERS else None
