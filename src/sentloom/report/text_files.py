"""Text files of a report, each written completely or not at all: JSON with every digit, and CSV for spreadsheets."""

import csv
from collections.abc import Iterable, Sequence
from io import StringIO
from pathlib import Path
from typing import Any

from sentloom.data.writers import no_formula
from sentloom.files import new_file
from sentloom.terminal import json_text, printable

__all__ = ["csv_text", "json_text", "write_text"]


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
