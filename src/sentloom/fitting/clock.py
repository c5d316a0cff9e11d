"""The clock of a fit: a time budget is the wall time of the whole command, whatever it is spent on."""

import math
import time
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field

import numpy as np

from sentloom.encoder import Encoder
from sentloom.evaluation.task import Task

STARTED: ContextVar[float | None] = ContextVar("STARTED", default=None)  # when the command began: imports count too
PLANNING = 0.1  # of the budget may go to planning,
LEAST_PLANNING, MOST_OF_SHORT = 30.0, 0.2  # or half a minute, if that is at most a fifth


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


TIMED_TEXTS = 64
PER_TOKEN = 5  # characters, roughly: an encoder reads so many times its greatest length of a text
BESIDES = 10  # characters that a text costs besides its own: special tokens and bookkeeping


@dataclass(frozen=True)
class Speed:
    """What encoding costs, measured on a sample of texts."""

    each: float  # seconds per text of the sample
    size: float  # of such a text, in characters
    longest: int  # characters that are read of a text

    def seconds(self, tasks: Sequence[Task]) -> float:
        """How long the texts of some tasks take."""
        texts = (text for task in tasks for some in task.texts.values() for text in some)
        return self.each / self.size * sum(_size(text, self.longest) for text in texts)


def measure_speed(encoder: Encoder, texts: Sequence[str]) -> Speed:
    """Encode a sample of texts by the clock."""
    sample = [texts[at] for at in np.linspace(0, len(texts) - 1, min(TIMED_TEXTS, len(texts))).astype(int)]
    start = time.perf_counter()
    encoder.encode(sample)
    each = (time.perf_counter() - start) / len(sample)
    longest = PER_TOKEN * encoder.tokens.max_length
    return Speed(each, sum(_size(text, longest) for text in sample) / len(sample), longest)


def _size(text: str, longest: int) -> int:
    return BESIDES + min(len(text), longest)
