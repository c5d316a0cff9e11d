"""Tables for the terminal: a plain one, and one that continues below where the terminal is too narrow; text files."""

import csv
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console, ConsoleOptions
from rich.table import Table
from rich.text import Text

from sentloom.data.writers import no_formula
from sentloom.files import new_file
from sentloom.terminal import printable

Row = tuple[str, Sequence[str | Text]]  # a label and cells, of which the last may be missing
LABEL = 30  # characters that a row's label gets at least
BETWEEN = 3  # characters between two cells


def plain_table(title: str, *columns: str, numbers: int = 0) -> Table:
    """A table without lines between rows; its last `numbers` columns hold numbers."""
    table = Table(title=Text(title), title_justify="left", title_style="bold", box=SIMPLE_HEAD)
    for place, column in enumerate(columns):
        right = place >= len(columns) - numbers
        table.add_column(column, justify="right" if right else "left", no_wrap=right, overflow="fold")
    return table


@dataclass(frozen=True)
class Wide:
    """A table that is split into several where the terminal is too narrow for all columns: no number is ever cut."""

    title: str
    columns: Sequence[str]
    sections: Sequence[Sequence[Row]]
    first: str = "model"  # what the rows are

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Table]:
        rows = [row for section in self.sections for row in section]
        room = options.max_width - min(LABEL, max(len(label) for label, _ in rows)) - 2 * BETWEEN
        block: list[int] = []
        for place in range(len(self.columns)):
            if block and sum(map(self._width, [*block, place])) > room:
                yield self._table(block)
                block = []
            block.append(place)
        yield self._table(block)

    def _width(self, place: int) -> int:
        cells = [cells[place] for section in self.sections for _, cells in section if place < len(cells)]
        return max(map(len, [*self.columns[place].splitlines(), *cells])) + BETWEEN

    def _table(self, block: Sequence[int]) -> Table:
        heads = [self.columns[place] for place in block]
        table = plain_table(self.title, self.first, *heads, numbers=len(block))
        for section in self.sections:
            for label, cells in section:
                table.add_row(Text(label), *(cells[place] if place < len(cells) else "" for place in block))
            table.add_section()
        return table


def write_text(path: Path, text: str) -> None:
    """Write a text in which no name or data can control a terminal that shows it."""
    with new_file(path) as part:
        part.write_text(printable(text), "utf-8")


def csv_text(head: Sequence[str], rows: Iterable[Iterable[Any]]) -> str:
    """Rows as CSV in which no cell is run as a formula."""
    return "".join(map(_csv_line, [head, *(map(no_formula, row) for row in rows)]))


def _csv_line(cells: Iterable[Any]) -> str:
    """One line. Python 3.11 quotes a cell with a carriage return only if lines end with one."""
    text = StringIO()
    csv.writer(text, lineterminator="\r\n").writerow(cells)
    return text.getvalue().removesuffix("\r\n") + "\n"
