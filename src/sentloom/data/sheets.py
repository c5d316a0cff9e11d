"""Spreadsheets: the rows of one sheet, with the values of its formulas. The file is read in a child process."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NoReturn

from sentloom.data import sheet_child
from sentloom.data.documents.workers import Limits, Worker
from sentloom.data.findings import Findings
from sentloom.errors import InputError, option
from sentloom.files import sha256

SECONDS = 300  # for a sheet of a million rows
MEMORY = 6 << 30
LOOKED_AT = 20  # rows among which the header is found


class Sheet:
    """One sheet of a file: its header, and the rows below it."""

    def __init__(self, path: Path, sheet: str | None, findings: Findings) -> None:
        self._path, self._findings = path, findings
        limits = Limits(SECONDS, MEMORY)
        self._worker = Worker(sheet_child.__file__, {"sheet": sheet}, limits)
        self._worker.ask(str(path))
        facts = self._worker.answer()
        if facts.get("why"):
            self._stop(facts["why"])
        if facts["sheet"] is None:
            self._worker.stop()
            names = ", ".join(facts["sheets"])
            raise InputError(str(path), f"there is no sheet {sheet!r}", f"one of {names}", f"correct {option('sheet')}")
        others = [name for name in facts["sheets"] if name != facts["sheet"]]
        self.others = tuple(others) if sheet is None else ()
        if self.others:
            also = ", ".join(self.others)
            findings.notes.append(
                f"{path}: the sheet {facts['sheet']} is read ({option('sheet')} names another: {also})"
            )
        self._rows = self._read()
        self._head = self._first_rows()
        self.header = header_row([cells for _, cells in self._head])
        if self.header:
            findings.notes.append(
                f"{path}: the header is in row {self._head[self.header][0]}; rows above it are left out"
            )
        self.names = [str(cell).strip() or f"column {at}" for at, cell in enumerate(self._head[self.header][1], 1)]

    def _read(self) -> Iterator[tuple[int, list[Any]]]:
        """The rows that are not empty, with their numbers."""
        while True:
            part = self._worker.more()
            if part.get("why"):
                self._stop(part["why"])
            yield from part["rows"]
            if not part["rows"]:
                self._worker.stop()
                return

    def _first_rows(self) -> list[tuple[int, list[Any]]]:
        rows = [row for _, row in zip(range(LOOKED_AT), self._rows, strict=False)]
        if not rows:
            self._findings.stop(0, "the sheet is empty", "at least one row")
        return rows

    def rows(self, *, with_header: bool = False) -> Iterator[tuple[int, list[Any]]]:
        """The rows below the header, or all of them."""
        yield from self._head if with_header else self._head[self.header + 1 :]
        yield from self._rows

    def peek(self, at: int) -> Any:
        """The first cell of a column."""
        first = next(iter(self._head[self.header + 1 :]), (0, []))[1]
        return first[at] if at < len(first) else None

    def sha256(self) -> str:
        """The hash of the file."""
        return sha256(self._path)

    def _stop(self, why: str) -> NoReturn:
        self._worker.stop()
        self._findings.stop(0, f"the spreadsheet cannot be read: {why}", "a complete file", "save it again")


def header_row(rows: Sequence[Sequence[Any]]) -> int:
    """Which row has the names of the columns: the first in which as many cells are filled, with texts, as in most.

    >>> header_row([["Export of May", "", ""], ["Question", "Answer", "Team"], ["Who?", "We.", "A"]])
    1
    """
    widths = [sum(cell not in ("", None) for cell in row) for row in rows]
    usual = sorted(widths)[len(widths) // 2]
    named = [
        at
        for at, row in enumerate(rows)
        if widths[at] >= usual and all(isinstance(cell, str) for cell in row if cell not in ("", None))
    ]
    return named[0] if named else 0
