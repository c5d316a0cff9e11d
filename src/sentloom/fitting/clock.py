"""The clock of a fit: how long everything takes. Read it from top to bottom.

A budget in time is the wall time of the whole command. Nothing is forecast: what comes next gets a share of the time
that is left, and ends when that is over.

    which routes race   one for every four minutes of the budget, the most promising ones (`routes_in`)
    making data         a route may spend half of an equal share on it (`Clock.box`); what exists then is used
    training            all routes share the first half of the time equally, and the best of them continues with the
                        second half (`Clock.share`); a single route gets everything, in one run. A run trains at full
                        rate, and decays when only the time for that is left of its share (`training.loop.Trunk`).
    the end             time for scoring the winner and for the report is kept from the start (`Clock.ending`)
    what only informs   is measured while time is left, and given up when the budget ends (`Job.if_time`)

Two things are estimated, each from a speed that was measured in this run and a known count: the steps of a decay, and
the texts that are still to be scored. The time for the report is a constant, times how busy the machine is. Where a
decay began, and where making data stopped, is written to the plan before anything follows from it, so that a resumed
fit takes the same steps.

A budget in steps knows no clock (`lengths`).
"""

import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # these import PyTorch, and the command starts the clock before it does
    from sentloom.encoder import Encoder
    from sentloom.evaluation.task import Task
    from sentloom.fitting.routes import Route

STARTED: ContextVar[float | None] = ContextVar("STARTED", default=None)  # when the command began: imports count too

MINUTES_PER_ROUTE = 4
RULE = f"one route races for every {MINUTES_PER_ROUTE} minutes of the budget"
MAKING = 0.5  # of an equal share of a route, for making its data
MARGIN = 1.5  # times the measured speed of scoring: other work may slow the machine down
MOST_MERGES = 5  # merged models that are scored
MERGING = 0.1  # of a time budget, at most
REPORTING = 5.0  # seconds for figures and files, on a core of its own
MOST_REPORTING = 0.15  # of a time budget, where other work shares the core
TIMED_TEXTS = 64
BESIDES, LONGEST = 10, 1_000  # characters: what a text costs besides its own, and how many are read of it, about


def routes_in(seconds: float) -> int:
    """How many routes race."""
    return max(1, int(seconds / (60 * MINUTES_PER_ROUTE)))


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
    speed: float = 0.0  # seconds for scoring a model, by the size of what it encodes: the slowest so far
    crowding: float = 1.0  # how many times as long work takes as on a core of its own
    size_of_run: int = 0  # of what every run is scored on
    size_of_winner: int = 0  # of what is scored at the end

    def __post_init__(self) -> None:
        self.last = self.started

    @property
    def timed(self) -> bool:
        """Whether there is a time budget."""
        return self.seconds is not None

    @property
    def left(self) -> float:
        """Seconds until the budget is used up; negative once it is."""
        return math.inf if self.seconds is None else self.seconds - (self.now() - self.started)

    def lap(self, name: str) -> float:
        """Give a name to the time since the last lap, and return it; laps with the same name add up."""
        now = self.now()
        self.last, took = now, now - self.last
        self.laps[name] = self.laps.get(name, 0.0) + took
        return took

    @contextmanager
    def watching_others(self) -> Iterator[None]:
        """Measure how much of a core other work leaves to this one."""
        began, computed = self.now(), time.thread_time()
        yield
        self.crowding = max(1.0, (self.now() - began) / max(1e-3, time.thread_time() - computed))

    @contextmanager
    def scoring_of_run(self) -> Iterator[None]:
        """Measure how long it takes to score a model. Scores that are known already say nothing about that."""
        began = self.now()
        yield
        self.speed = max(self.speed, (self.now() - began) / max(1, self.size_of_run))

    def scoring(self, size: int) -> float:
        """Seconds to keep for scoring a model on texts of this size."""
        return MARGIN * self.speed * size

    @property
    def merging(self) -> float:
        """Seconds to keep for scoring merged models."""
        return min(MOST_MERGES * self.scoring(self.size_of_run), MERGING * (self.seconds or 0.0))

    @property
    def reporting(self) -> float:
        """Seconds to keep for the report."""
        return max(REPORTING, min(REPORTING * self.crowding, MOST_REPORTING * (self.seconds or 0.0)))

    @property
    def ending(self) -> float:
        """Seconds to keep for scoring the winner, and for the report."""
        return self.scoring(self.size_of_winner) + self.reporting

    @property
    def training(self) -> float:
        """Seconds that are left for making data and for all runs."""
        return self.left - self.ending - self.merging

    def box(self, routes: int, trainings: int) -> float:
        """Seconds that making the data of one of the routes may take, if it is made again for every training."""
        return max(0.0, MAKING * self.training / (routes * trainings))

    def share(self, waiting: int, later: int) -> float:
        """Seconds of the next run, if `waiting` runs of its round are to come, and later ones get `later` such shares.

        They include the time in which it is scored.
        """
        return max(0.0, self.training / (waiting + later))

    @property
    def has_time_to_merge(self) -> bool:
        """Whether one more merged model can be scored before the end."""
        return self.left >= self.ending + self.scoring(self.size_of_run)


def stage_seconds(route: "Route", weights: Sequence[int], seconds: float) -> dict[str, float]:
    """The seconds of each stage that trains, of those of a training."""
    shares = zip(route.training, weights, strict=True)
    return {train.name: seconds * weight / sum(weights) for train, weight in shares}


def seconds_per_text(encoder: "Encoder", texts: Sequence[str]) -> float:
    """What encoding costs, measured on a sample."""
    sample = texts[:: max(1, len(texts) // TIMED_TEXTS)]
    start = time.perf_counter()
    encoder.encode(sample)
    return (time.perf_counter() - start) / len(sample)


def size_of(texts: Iterable[str]) -> int:
    """How much a model encodes: characters, as far as they are read."""
    return sum(BESIDES + min(len(text), LONGEST) for text in texts)


def size_of_tasks(tasks: Sequence["Task"]) -> int:
    """How much a model encodes for some tasks."""
    return size_of(text for task in tasks for texts in task.texts.values() for text in texts)
