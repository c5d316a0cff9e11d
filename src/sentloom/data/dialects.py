"""Detect the dialect of a csv or tsv file: other separators than the extension implies, and quotes in tsv files."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from functools import partial

from sentloom.data.delimited import (
    BAR,
    COMMA,
    CSV_CELLS,
    SEMICOLON,
    TAB,
    CsvRecord,
    DelimitedRows,
    csv_rows,
    split_csv,
    tsv_rows,
)
from sentloom.data.findings import Findings
from sentloom.data.inputs import Input
from sentloom.data.scan import Block, Digest, first_lines, raw_blocks
from sentloom.data.shapes import ShapeRequest
from sentloom.errors import DataError

OWN = {"csv": COMMA, "tsv": TAB}
NAMES = {COMMA: "commas", SEMICOLON: "semicolons", TAB: "tabs", BAR: "vertical bars"}
STATED = re.compile(rf'"?sep=([{"".join(NAMES)}])"?', re.IGNORECASE)  # the first line, as Excel reads it
NUMBER = re.compile(r"[+-]?[\d.,]+([eE][+-]?\d+)?")
FAR_FEWER = 10  # times fewer rows of the wrong width with quotes than without


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
    own = OWN[entry.kind]
    if request.quoted is False:
        return Dialect(own, quoted=False)
    line = _first_line(entry)
    if stated := STATED.fullmatch(line):
        findings.notes.append(f"{entry.name}: cells are separated by {NAMES[stated[1]]}, as its first line states")
        return Dialect(stated[1], quoted=True, stated=True)
    separator = _separator(line, OWN[entry.kind], request)
    if separator != own:
        findings.notes.append(f"{entry.name}: cells are separated by {NAMES[separator]}")
        return Dialect(separator, quoted=True)
    if request.quoted:
        return Dialect(own, quoted=True)
    quoting = quoting_of(first_lines(entry.paths[0])) if entry.kind == "tsv" and _has_quotes(entry) else Quoting.NONE
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
    for _, text in first_lines(entry.paths[0]):
        if line := next((one for one in text.split("\n") if one.strip()), ""):
            return line.removesuffix("\r")
    return ""


def _without_first_line(blocks: Iterator[Block]) -> Iterator[Block]:
    """Drop the first line that is not blank."""
    for first, text in blocks:
        lines = text.split("\n")
        at = next((number for number, line in enumerate(lines) if line.strip()), None)
        if at is not None:
            yield first + at + 1, "\n".join(lines[at + 1 :])
            break
    yield from blocks


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
