"""Split lines into rows of cells: tab-separated without quotes, or records as in RFC 4180 with any separator."""

import io
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import NamedTuple, NoReturn

from sentloom.data.dataset import BLANK_LINES
from sentloom.data.findings import Findings
from sentloom.data.scan import Block, text_lines

COMMA, SEMICOLON, TAB, BAR = ",", ";", "\t", "|"
# One cell and its terminator. Possessive quantifiers keep the search linear.
CSV_CELLS = {
    mark: re.compile(rf'(?:"((?:[^"]++|"")*+)"|([^"{mark}]*+))([{mark}]|\Z)') for mark in (COMMA, SEMICOLON, TAB, BAR)
}
CSV_OPEN_CELL = re.compile(r'"(?:[^"]++|"")*+\Z')
UNQUOTED = "quotes in the text that were not doubled when the file was written"


class DelimitedRows(NamedTuple):
    """Rows of cells concatenated in one list; a list per row takes twice the time."""

    places: Sequence[int]  # the line at which each row starts
    widths: Sequence[int]  # the number of cells of each row
    cells: Sequence[str]


def tsv_rows(blocks: Iterable[Block], findings: Findings) -> Iterator[DelimitedRows]:
    """Split lines on tabs; a line of only tabs is a row of empty cells, not a blank line."""
    for numbers, lines in text_lines(blocks, findings, spaces=" \r"):
        yield split_plain(TAB, numbers, lines)


def split_plain(mark: str, numbers: Sequence[int], lines: list[str]) -> DelimitedRows:
    """Split lines on a separator; quotes have no meaning."""
    widths = [line.count(mark) + 1 for line in lines]
    return DelimitedRows(numbers, widths, mark.join(lines).split(mark) if lines else [])


def csv_rows(blocks: Iterable[Block], findings: Findings, separator: str = COMMA) -> Iterator[DelimitedRows]:
    """Parse records as in RFC 4180: a quoted cell may contain separators, doubled quotes and line breaks."""
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
    """The current record: one line, or several while a quote is open."""

    def __init__(self, findings: Findings, separator: str) -> None:
        self.start, self.is_open, self._separator = 0, False, separator
        self._text, self._findings = io.StringIO(), findings  # a buffer for an open record, not one string per line

    def add(self, number: int, line: str) -> list[str] | None:
        """Add a line; return the cells if it completes the record."""
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
        if self._text.tell() > (longest := self._findings.allowance.longest):
            self._stop_unclosed(f"within {longest:,} characters")
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
        problem = "text after a cell's closing quote" if text[at] == '"' else "quote inside an unquoted cell"
        expected = "cells that contain quotes to be quoted, with each inner quote doubled"
        self._findings.problem(self.start + text.count("\n", 0, at), problem, expected, "misplaced quotes", UNQUOTED)
        return None

    def end(self) -> None:
        """Finish the file; an open quote is an error."""
        if self.is_open:
            self._stop_unclosed("before the end of the file")

    def _stop_unclosed(self, limit: str) -> NoReturn:
        text = self._text.getvalue()
        _, at = split_csv(text, self._separator)
        line = self.start + text.count("\n", 0, at)
        self._findings.stop(line, f"quote that is not closed {limit}", "a closing quote", "close or double the quote")


def split_csv(text: str, separator: str = COMMA) -> tuple[list[str], int | None]:
    """Return the cells of one record, and where its first malformed cell starts (None if there is none)."""
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
