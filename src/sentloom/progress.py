"""Progress: a bar in a terminal, a line that updates itself in a notebook, a line every half minute in logs.

In logs, work that takes longer than a few seconds prints a first line soon, with its speed, then one per half minute,
and a last one at its end. Whatever reports its progress can also be given a deadline.
"""

import math
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Protocol

LOGGED_EVERY = 30.0  # seconds between two lines in a pipe or a log
FIRST_LOGGED = 3.0  # seconds of a piece of work before its first line: shorter ones print nothing
FIRST_DRAWN = 1.0  # seconds of a piece of work before its line in a notebook
DRAWN_EVERY = 0.5  # seconds between two updates in a notebook
_SHOWN: ContextVar[bool] = ContextVar("_SHOWN", default=True)
_DEADLINE: ContextVar[float] = ContextVar("_DEADLINE", default=math.inf)  # by the monotonic clock


class OutOfTime(Exception):
    """Work has used the time that it was given. A training says at which step, and leaves what it learned."""

    def __init__(self, step: int = 0, stage: str = "") -> None:
        super().__init__(f"{stage}: out of time at step {step}")
        self.step, self.stage = step, stage


@contextmanager
def deadline(seconds: float) -> Iterator[None]:
    """Whatever advances later than that raises `OutOfTime`; an inner deadline replaces an outer one."""
    outer = _DEADLINE.set(time.monotonic() + seconds)
    try:
        yield
    finally:
        _DEADLINE.reset(outer)


@contextmanager
def showing(shown: bool) -> Iterator[None]:
    """Whether work inside shows its progress at all."""
    outer = _SHOWN.set(shown)
    try:
        yield
    finally:
        _SHOWN.reset(outer)


def is_watched() -> bool:
    """Whether somebody is likely to watch: in a terminal or a notebook."""
    return sys.stderr.isatty() or in_notebook()


def note(text: str) -> None:
    """Print something that a user should know, where no caller takes messages. A notebook shows errors in red."""
    from sentloom.terminal import printable

    (sys.stdout if in_notebook() else sys.stderr).write(f"{printable(text)}\n")


def duration(seconds: float) -> str:
    """A time for people to read: 4.2 s, 48 s, 5.3 min, 12 min, 3.4 h."""
    value, unit = (seconds, "s") if seconds < 90 else (seconds / 60, "min") if seconds < 5400 else (seconds / 3600, "h")
    return f"{value:.1f} {unit}" if value < 10 else f"{value:.0f} {unit}"


class Advance(Protocol):
    """Moves the progress on by n; `note` is shown beside the title."""

    def __call__(self, n: int, note: str = "") -> None:
        """Move on."""


@contextmanager
def progress(
    title: str,
    total: int,
    unit: str,
    show: bool = True,
    *,
    done: int = 0,
    log_first: float = FIRST_LOGGED,
    log_every: float = LOGGED_EVERY,
) -> Iterator[Advance]:
    """Yield a function that reports progress, in the way that fits where standard error goes.

    What was `done` before does not count for the speed.
    """
    if not (show and total and _SHOWN.get()):
        yield _in_time(lambda n, note="": None)
    elif sys.stderr.isatty():
        with _bar(title, total, unit, done) as advance:
            yield _in_time(advance)
    elif in_notebook():
        with _notebook_line(_Count(title, total, unit, done)) as advance:
            yield _in_time(advance)
    else:
        with _logged(_Count(title, total, unit, done), log_first, log_every) as advance:
            yield _in_time(advance)


def _in_time(shown: Advance) -> Advance:
    def advance(n: int, note: str = "") -> None:
        shown(n, note)
        stop_if_late()

    return advance


def stop_if_late() -> None:
    """Raise `OutOfTime` if the deadline has passed."""
    if time.monotonic() > _DEADLINE.get():
        raise OutOfTime


def in_notebook() -> bool:
    """Whether this is a Jupyter kernel: one that has imported IPython, and sends its output to a page."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return shell is not None and hasattr(shell, "kernel")


@contextmanager
def _bar(title: str, total: int, unit: str, done: int) -> Iterator[Advance]:
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        ProgressColumn,
        Task,
        TextColumn,
        TimeRemainingColumn,
    )
    from rich.table import Column
    from rich.text import Text

    from sentloom.terminal import Terminal

    class Rate(ProgressColumn):
        def render(self, task: Task) -> Text:
            return Text(f"{task.speed:,.0f} {unit}/s" if task.speed else "", style="dim")

    # In a narrow terminal the title is cut; nothing wraps.
    column = Column(no_wrap=True, overflow="ellipsis", ratio=1)
    title_column = TextColumn("{task.description}", markup=False, table_column=column)
    columns = (
        title_column,
        BarColumn(bar_width=12),
        MofNCompleteColumn(table_column=Column(no_wrap=True)),
        Rate(table_column=Column(no_wrap=True)),
        TimeRemainingColumn(table_column=Column(no_wrap=True)),
    )
    with Progress(*columns, console=Terminal(stderr=True), transient=True, expand=True) as bar:
        task = bar.add_task(title, total=total, completed=done)
        yield lambda n, note="": bar.update(task, advance=n, description=f"{title} {note}".rstrip())


@dataclass
class _Count:
    """How far a piece of work is, as one line of text."""

    title: str
    total: int
    unit: str
    done: int = 0
    note: str = ""

    def __post_init__(self) -> None:
        self.started, self.before = time.monotonic(), self.done

    def __str__(self) -> str:
        seconds = time.monotonic() - self.started
        head = f"{self.title} {self.note}".rstrip()
        line = f"{head}: {self.done:,} of {self.total:,} {self.unit}"
        new = self.done - self.before
        if not new or seconds < 1:
            return line
        left = int(seconds / new * (self.total - self.done))
        return f"{line}, {new / seconds:,.0f} per second, {left // 3600}:{left // 60 % 60:02}:{left % 60:02} left"

    def ended(self) -> str:
        """The last line."""
        return f"{self.title}: {self.done:,} {self.unit} in {duration(time.monotonic() - self.started)}"


def _advance(count: _Count, draw: Callable[[], None]) -> Advance:
    def advance(n: int, note: str = "") -> None:
        count.done, count.note = count.done + n, note
        draw()

    return advance


@contextmanager
def _notebook_line(count: _Count) -> Iterator[Advance]:
    """A line of output that is replaced as the work advances. Needs no widgets. Short work shows none: no line can be
    removed, and empty ones would remain.
    """
    from IPython.display import display

    due = count.started + FIRST_DRAWN
    line: Any = None

    def draw() -> None:
        nonlocal due, line
        if time.monotonic() < due:
            return
        due, shown = time.monotonic() + DRAWN_EVERY, {"text/plain": str(count)}
        if line is None:
            line = display(shown, raw=True, display_id=True)
        else:
            line.update(shown, raw=True)

    try:
        yield _advance(count, draw)
    finally:
        if line is not None:
            line.update({"text/plain": count.ended()}, raw=True)


@contextmanager
def _logged(count: _Count, first: float, every: float) -> Iterator[Advance]:
    """Lines in a log; none for work that ends before its first line is due."""
    due, printed = count.started + first, False

    def draw() -> None:
        nonlocal due, printed
        if time.monotonic() >= due:
            due, printed = time.monotonic() + every, True
            note(str(count))

    yield _advance(count, draw)
    if printed and count.done >= count.total:
        note(count.ended())
