"""Progress bars and notes on standard error; bars only on a terminal."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol


def note(text: str) -> None:
    """Print a message for the user, for code without a log function."""
    from sentloom.terminal import printable

    sys.stderr.write(f"{printable(text)}\n")


def duration(seconds: float) -> str:
    """A time for people to read: 4.2 s, 48 s, 5.3 min, 12 min, 3.4 h."""
    value, unit = (seconds, "s") if seconds < 90 else (seconds / 60, "min") if seconds < 5400 else (seconds / 3600, "h")
    return f"{value:.1f} {unit}" if value < 10 else f"{value:.0f} {unit}"


class Advance(Protocol):
    """Advances a bar by n, with an optional note beside the title."""

    def __call__(self, n: int, note: str = "") -> None:
        """Advance."""


@contextmanager
def progress(title: str, total: int, unit: str, show: bool = True) -> Iterator[Advance]:
    """Yield a function that advances the bar. Bars are only shown on a terminal, to keep logs and pipes clean."""
    if not (show and total and sys.stderr.isatty()):
        yield lambda n, note="": None
        return
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

    # On a narrow terminal the title is shortened; nothing wraps.
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
        task = bar.add_task(title, total=total)
        yield lambda n, note="": bar.update(task, advance=n, description=f"{title} {note}".rstrip())
