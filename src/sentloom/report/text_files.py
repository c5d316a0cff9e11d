"""Text files of a report, each written completely or not at all: JSON with every digit, and CSV for spreadsheets."""

import csv
import json
from collections.abc import Iterable, Sequence
from io import StringIO
from pathlib import Path
from typing import Any

from sentloom.data.writers import no_formula
from sentloom.files import new_file


def write_text(path: Path, text: str) -> None:
    """Write a text; lone surrogates, as in odd file names, become question marks."""
    with new_file(path) as part:
        part.write_text(text, "utf-8", "replace")


def json_text(values: Any) -> str:
    """Values as JSON."""
    return json.dumps(values, indent=1, ensure_ascii=False) + "\n"


def csv_text(head: Sequence[str], rows: Iterable[Iterable[Any]]) -> str:
    """Rows as CSV in which no cell is run as a formula."""
    text = StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(head)
    writer.writerows(map(no_formula, row) for row in rows)
    return text.getvalue()
