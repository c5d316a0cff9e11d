"""The clock of a fit: a time budget is the wall time of the whole command, whatever it is spent on."""

import math
import time
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass, field

STARTED: ContextVar[float | None] = ContextVar("STARTED", default=None)  # when the command began: imports count too
# Planning may take a tenth of the budget, or half a minute if that is at most a fifth.
PLANNING, LEAST_PLANNING, MOST_OF_SHORT = 0.1, 30.0, 0.2


def _started() -> float:
    began = STARTED.get()
    return time.monotonic() if began is None else began


@dataclass
class Clock:
    """What is left of a time budget, and what took how long. With a budget in steps, time is only reported."""

    seconds: float | None  # None: there is no time budget
    started: float = field(default_factory=_started)
    laps: dict[str, float] = field(default_factory=dict)
    now: Callable[[], float] = time.monotonic

    def __post_init__(self) -> None:
        self.last = self.started

    @property
    def left(self) -> float:
        """Seconds until the budget is used up; negative once it is."""
        if self.seconds is None:
            return math.inf
        return self.seconds - (self.now() - self.started)

    @property
    def planning(self) -> float:
        """Seconds that planning may take."""
        if self.seconds is None:
            return math.inf
        return max(PLANNING * self.seconds, min(LEAST_PLANNING, MOST_OF_SHORT * self.seconds))

    def lap(self, name: str) -> float:
        """Give a name to the time since the last lap, and return it; laps with the same name add up."""
        now = self.now()
        self.last, took = now, now - self.last
        self.laps[name] = self.laps.get(name, 0.0) + took
        return took
