"""Read csv and tsv files: recognise the separator and whether cells are quoted, then split the text into rows."""

import io
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import partial
from itertools import chain
from typing import NamedTuple, NoReturn

from sentloom.data.dataset import BLANK_LINES
from sentloom.data.findings import Findings
from sentloom.data.inputs import Input
from sentloom.data.layout import ShapeRequest
from sentloom.data.scan import Block, Digest, first_lines, raw_blocks, text_lines
from sentloom.errors import DataError

COMMA, SEMICOLON, TAB, BAR = ",", ";", "\t", "|"
SEPARATORS = {  # that the extensions imply
    "csv": COMMA,
    "tsv": TAB,
}
IN_WORDS = {COMMA: "commas", SEMICOLON: "semicolons", TAB: "tabs", BAR: "vertical bars"}
STATED = re.compile(rf'"?sep=([{"".join(IN_WORDS)}])"?', re.IGNORECASE)  # the first line, as Excel reads it
# One cell and its terminator. Possessive quantifiers keep the search linear.
CSV_CELLS = {
    mark: re.compile(rf'(?:"((?:[^"]++|"")*+)"|([^"{mark}]*+))([{mark}]|\Z)') for mark in (COMMA, SEMICOLON, TAB, BAR)
}
CSV_OPEN_CELL = re.compile(r'"(?:[^"]++|"")*+\Z')
NUMBER = re.compile(r"[+-]?[\d.,]+([eE][+-]?\d+)?")
FAR_FEWER = 10  # times fewer rows of the wrong width with quotes than without
UNQUOTED = "quotes in the text that were not doubled when the file was written"


class DelimitedRows(NamedTuple):
    """Rows of cells concatenated in one list; a list per row takes twice the time."""

    places: Sequence[int]  # the line at which each row starts
    widths: Sequence[int]  # the number of cells of each row
    cells: Sequence[str]


@dataclass(frozen=True)
class Dialect:
    """What separates cells, and whether they may be in quotes."""

    separator: str
    quoted: bool
    stated: bool = False  # by the first line, which is then not a row

    @property
    def decimal_comma(self) -> bool:
        """Whether scores use a decimal comma, as in files separated by semicolons."""
        return self.separator == SEMICOLON

    def rows(self, blocks: Iterator[Block], findings: Findings) -> Iterator[DelimitedRows]:
        """Split a file in this dialect into rows."""
        split = partial(csv_rows, separator=self.separator) if self.quoted else tsv_rows
        return split(_without_first_line(blocks) if self.stated else blocks, findings)


def dialect_of(entry: Input, request: ShapeRequest, findings: Findings) -> Dialect:
    """Return the dialect of a file; adds a note if the extension does not imply it."""
    own = SEPARATORS[entry.kind]
    if request.quoted is False:
        return Dialect(own, quoted=False)
    line = _first_line(entry)
    if stated := STATED.fullmatch(line):
        findings.notes.append(f"{entry.name}: cells are separated by {IN_WORDS[stated[1]]}, as its first line states")
        return Dialect(stated[1], quoted=True, stated=True)
    separator = _separator(line, own, request)
    if separator != own:
        findings.notes.append(f"{entry.name}: cells are separated by {IN_WORDS[separator]}")
        return Dialect(separator, quoted=True)
    if request.quoted:
        return Dialect(own, quoted=True)
    quoting = (
        quoting_of(first_lines(entry.paths[0], entry.how.encoding))
        if entry.kind == "tsv" and _has_quotes(entry)
        else Quoting.NONE
    )
    if quoting is Quoting.SURE or (quoting is Quoting.LIKELY and findings.allowance.repair):
        removed = "cells are quoted as in a csv file; the quotes are removed"
        findings.notes.append(f"{entry.name}: {removed} (`sentloom check --unquoted` keeps them)")
        return Dialect(TAB, quoted=True)
    if quoting is Quoting.LIKELY:
        kept = "some cells are quoted; the quotes are kept as text (`sentloom check --quoted` removes them)"
        findings.notes.append(f"{entry.name}: {kept}")
    return Dialect(own, quoted=entry.kind == "csv")


def _first_line(entry: Input) -> str:
    """Return the first line that is not blank."""
    for _, text in first_lines(entry.paths[0], entry.how.encoding):
        if line := next(filter(str.strip, text.split("\n")), ""):
            return line.removesuffix("\r")
    return ""


def _separator(line: str, own: str, request: ShapeRequest) -> str:
    """Return the separator of the first line: the extension's own unless that gives a single column."""
    widths = {mark: len(split_csv(line, mark)[0]) for mark in (own, TAB, SEMICOLON, COMMA, BAR)}
    numbers = [column for column in (request.columns or {}).values() if isinstance(column, int)]
    if widths[own] > 1 or (numbers and max(numbers) == 1):
        return own
    return max(widths, key=lambda mark: widths[mark])


def _has_quotes(entry: Input) -> bool:
    unreported = Findings()
    unreported.begin(entry.name, "line")
    try:
        return any(b'"' in block for block in raw_blocks(entry.paths[0], Digest(), unreported))
    except DataError:
        return False


class Quoting(Enum):
    """Whether a tsv file has cells quoted as in RFC 4180."""

    NONE = "there are no quotes, or some break the rules"
    LIKELY = "every quote follows the rules, and the file splits well without them too"
    SURE = "the file splits only with quotes, or all text cells are quoted"


def quoting_of(blocks: Iterator[Block]) -> Quoting:
    """Detect the quoting of a tsv file."""
    evidence = _Evidence()
    try:
        for text, width in _records(blocks):
            evidence.add(text, width)
    except DataError:
        return Quoting.NONE
    return evidence.quoting()


def _records(blocks: Iterator[Block]) -> Iterator[tuple[str, int]]:
    """Yield each record, parsed with quotes, and its number of cells; raise a DataError at the first problem."""
    unreported, lines = Findings(), list[str]()
    unreported.begin("", "line")
    record = CsvRecord(unreported, TAB)
    for first, text in blocks:
        for number, line in enumerate(text.removesuffix("\n").split("\n"), first):
            cells = record.add(number, line)
            if unreported.total:
                raise unreported.error()
            if cells or record.is_open:
                lines.append(line)
            if cells:
                yield "\n".join(lines).removesuffix("\r"), len(cells)
                lines.clear()
    record.end()


@dataclass
class _Evidence:
    """Statistics of how a file splits with and without quotes, and which of its cells are quoted."""

    # Of the first line split without quotes, and of the first record split with them.
    widths: tuple[int, int] | None = None
    ragged: int = 0  # records of another width, split with quotes
    ragged_plain: int = 0  # lines of another width, split without
    spanning: int = 0  # records of several lines
    in_quotes: int = 0
    needless: int = 0  # quoted cells that do not need quotes
    bare: int = 0  # unquoted text cells

    def add(self, text: str, width: int) -> None:
        """Count one record."""
        plain = [line.count(TAB) + 1 for line in text.split("\n") if line.strip(" \r")]
        self.widths = self.widths or (plain[0], width)
        self.ragged += width != self.widths[1]
        self.spanning += "\n" in text
        self.ragged_plain += len(plain) - plain.count(self.widths[0])
        if '"' in text or not self.bare:
            self._add_cells(text)

    def _add_cells(self, text: str) -> None:
        for cell in CSV_CELLS[TAB].finditer(text):
            inner, plain, _ = cell.groups()
            if inner is None:
                self.bare += bool(plain.strip() and not NUMBER.fullmatch(plain.strip()))
            else:
                self.in_quotes += 1
                self.needless += not any(mark in inner for mark in '"\t\n\r')

    def quoting(self) -> Quoting:
        """Decide; if the file splits well both ways, quotes must be where writers put them: around all cells or few."""
        if not self.in_quotes or (self.ragged_plain and FAR_FEWER * self.ragged > self.ragged_plain):
            return Quoting.NONE
        if self.ragged_plain or not self.bare or (self.spanning and not self.ragged):
            return Quoting.SURE
        return Quoting.NONE if self.needless else Quoting.LIKELY


def _without_first_line(blocks: Iterator[Block]) -> Iterator[Block]:
    """Drop the first line that is not blank."""
    for first, text in blocks:
        lines = text.split("\n")
        at = next((number for number, line in enumerate(lines) if line.strip()), None)
        if at is not None:
            yield first + at + 1, "\n".join(lines[at + 1 :])
            break
    yield from blocks


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
