"""Lines to rows of cells: tab-separated without quoting, and records as RFC 4180 has them, whatever separates cells."""

import io
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import NamedTuple, NoReturn

from sentloom.data.findings import Findings
from sentloom.data.limits import LONGEST
from sentloom.data.scan import BLANK_LINES, Block, text_lines

COMMA, SEMICOLON, TAB, BAR = ",", ";", "\t", "|"
# One cell and what ends it. Quantifiers that never give back keep the search linear.
CSV_CELLS = {
    mark: re.compile(rf'(?:"((?:[^"]++|"")*+)"|([^"{mark}]*+))([{mark}]|\Z)') for mark in (COMMA, SEMICOLON, TAB, BAR)
}
CSV_OPEN_CELL = re.compile(r'"(?:[^"]++|"")*+\Z')
UNQUOTED = "quotes in the text that were not doubled when the file was written"


class DelimitedRows(NamedTuple):
    """Rows of cells laid end to end: one list for all of them, since a list for each takes twice the time."""

    places: Sequence[int]  # the line at which each row starts
    widths: Sequence[int]  # the number of its cells
    cells: Sequence[str]


def tsv_rows(blocks: Iterable[Block], findings: Findings) -> Iterator[DelimitedRows]:
    """Lines split on tabs; a line of nothing but tabs is a row of empty cells, not a blank line."""
    for numbers, lines in text_lines(blocks, findings, spaces=" \r"):
        yield split_plain(TAB, numbers, lines)


def split_plain(mark: str, numbers: Sequence[int], lines: list[str]) -> DelimitedRows:
    """Lines split on a mark, whatever else is in them."""
    widths = [line.count(mark) + 1 for line in lines]
    return DelimitedRows(numbers, widths, mark.join(lines).split(mark) if lines else [])


def csv_rows(blocks: Iterable[Block], findings: Findings, separator: str = COMMA) -> Iterator[DelimitedRows]:
    """Records as RFC 4180 has them: a cell in quotes may hold separators, doubled quotes and line ends."""
    record = CsvRecord(findings, separator)
    for first, text in blocks:
        if '"' not in text and not record.is_open:
            for numbers, lines in text_lines([(first, text)], findings):
                yield split_plain(separator, numbers, lines)
            continue
        starts, rows = [], []
        for number, line in enumerate(text.removesuffix("\n").split("\n"), first):
            if cells := record.add(number, line):
                starts.append(record.start)
                rows.append(cells)
        yield DelimitedRows(starts, [*map(len, rows)], [*chain.from_iterable(rows)])
    record.end()


class CsvRecord:
    """The record at hand: one line, or several while a quote is open."""

    def __init__(self, findings: Findings, separator: str) -> None:
        self.start, self.is_open, self._separator = 0, False, separator
        self._text, self._findings = io.StringIO(), findings  # the text of an open record: no string for each line

    def add(self, number: int, line: str) -> list[str] | None:
        """The cells, if the record ends with this line."""
        if not self.is_open:
            if not line.strip():
                self._findings.skipped[BLANK_LINES] += 1
                return None
            self.start = number
            return self._split(line)
        self._text.write("\n")
        self._text.write(line)
        if line.count('"') % 2:  # the quote that was open is closed
            return self._split(self._text.getvalue())
        if self._text.tell() > LONGEST:
            self._stop_unclosed(f"within {LONGEST:,} characters")
        return None

    def _split(self, text: str) -> list[str] | None:
        cells, at = split_csv(text.removesuffix("\r"), self._separator)
        self.is_open = at is not None and CSV_OPEN_CELL.match(text, at) is not None
        if at is None:
            return cells
        if self.is_open:
            self._text = io.StringIO()
            self._text.write(text)
            return None
        fault = "text after a cell's closing quote" if text[at] == '"' else "a quote inside a cell without quotes"
        wanted = "cells with quotes written in quotes, each quote inside doubled"
        self._findings.problem(self.start + text.count("\n", 0, at), fault, wanted, "misplaced quotes", UNQUOTED)
        return None

    def end(self) -> None:
        """The file is at its end: an open quote is never closed."""
        if self.is_open:
            self._stop_unclosed("before the end of the file")

    def _stop_unclosed(self, limit: str) -> NoReturn:
        text = self._text.getvalue()
        _, at = split_csv(text, self._separator)
        line = self.start + text.count("\n", 0, at)
        self._findings.stop(line, f"a quote that is not closed {limit}", "a closing quote", "close or double the quote")


def split_csv(text: str, separator: str = COMMA) -> tuple[list[str], int | None]:
    """The cells of one record, and where the first cell starts that is not well formed (None: all are)."""
    if '"' not in text:
        return text.split(separator), None
    cells, at, pattern = [], 0, CSV_CELLS[separator]
    while cell := pattern.match(text, at):
        quoted, plain, end = cell.groups()
        cells.append(plain if quoted is None else quoted.replace('""', '"'))
        if not end:
            return cells, None
        at = cell.end()
    return cells, at
