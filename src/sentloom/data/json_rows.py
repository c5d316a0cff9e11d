"""Read JSON: one object per line, or one array of objects, which is parsed in parts as it is read."""

import json
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from enum import Enum
from typing import NoReturn

from sentloom.data.findings import Findings
from sentloom.data.inputs import Input
from sentloom.data.limits import CLEANING, LONGEST
from sentloom.data.scan import Block, Digest, Records, text_chunks, text_lines
from sentloom.errors import DataError

EXPECTED = "one JSON object"
COMMAS = "lines that end in commas; each line should hold one object and nothing else"
PRETTY = "one JSON object spread over many lines: write one object per line, or an array of objects"
ARRAY = "json"
ARRAY_NOTE = "read as one JSON array, with one row per object"
DECODER = json.JSONDecoder()
SPACE = re.compile(r"[ \t\r\n]*+")


def recognised(entry: Input) -> Input:
    """Change the kind of a JSON Lines input to an array if its first character is a bracket."""
    unreported, start = Findings(CLEANING), ""
    unreported.begin(entry.name, "row")
    if entry.kind == "jsonl":
        with suppress(DataError):
            start = next(filter(str.strip, text_chunks(entry.paths[0], Digest(), unreported)), "")
    return entry._replace(kind=ARRAY) if start.lstrip().startswith("[") else entry


def jsonl_records(blocks: Iterable[Block], findings: Findings) -> Iterator[Records]:
    """Yield the JSON objects with their line numbers."""
    for numbers, lines in text_lines(blocks, findings):
        try:
            rows = [json.loads(line) for line in lines]
        except (ValueError, RecursionError):
            rows = [None]
        if not all(isinstance(row, dict) for row in rows):
            rows = [_json_object(number, line, findings) for number, line in zip(numbers, lines, strict=True)]
            numbers = [number for number, row in zip(numbers, rows, strict=True) if row is not None]
        yield numbers, [row for row in rows if row is not None]


def _json_object(number: int, line: str, findings: Findings) -> dict[str, object] | None:
    if findings.allowance.repair and (repaired := _without_comma(line)) is not None:
        findings.repaired(number, "lines with a comma after the object")
        line = repaired
    try:
        value = json.loads(line)
        problem = f"found the JSON value {str(value)[:40]!r}"
    except json.JSONDecodeError as error:
        problem = f"the line is not JSON ({error.msg}, character {error.pos + 1})"
        findings.problem(number, problem, EXPECTED, "lines that are not JSON", _cause(line))
        return None
    except (ValueError, RecursionError) as error:  # a number of thousands of digits, or very deeply nested brackets
        findings.problem(number, f"the JSON cannot be read ({error})", EXPECTED, "lines of JSON that cannot be read")
        return None
    if isinstance(value, dict):
        return value
    findings.problem(number, problem, EXPECTED, "lines with JSON that is not an object", _cause(line))
    return None


def _without_comma(line: str) -> str | None:
    """Return the object of a line that ends in a comma; None for any other line."""
    whole = line.strip()
    return whole.removesuffix(",") if whole.startswith("{") and whole.endswith(",") else None


def _cause(line: str) -> str:
    if line.strip() == "{":
        return PRETTY
    return "" if _without_comma(line) is None else COMMAS


def array_records(chunks: Iterable[str], findings: Findings) -> Iterator[Records]:
    """Yield the objects with their numbers from 1."""
    array = _Array(findings)
    for chunk in chunks:
        yield array.add(chunk)
    yield array.end()


class _Place(Enum):
    """What comes next in the file."""

    BRACKET = "the opening bracket"
    VALUE = "an object"
    COMMA = "a comma or the closing bracket"
    END = "the end of the file"


AFTER = {
    (_Place.BRACKET, "["): _Place.VALUE,
    (_Place.VALUE, "]"): _Place.END,  # an empty array, or a comma after the last object
    (_Place.COMMA, ","): _Place.VALUE,
    (_Place.COMMA, "]"): _Place.END,
}


class _Array:
    """The part of the file that has been read but not parsed yet."""

    def __init__(self, findings: Findings) -> None:
        self._findings, self._text, self._place = findings, "", _Place.BRACKET
        self._at = self._row = 0
        self._enough = 0  # characters needed before parsing again, because the current object is incomplete
        self._error = "unexpected end of the file"

    def add(self, chunk: str) -> Records:
        """Add a chunk of the file and return the objects that it completes."""
        self._text += chunk
        return self._objects() if len(self._text) >= self._enough else ([], [])

    def end(self) -> Records:
        """Finish the file and return its last objects."""
        last = self._objects()
        if self._place is not _Place.END:
            self._stop(self._error)
        return last

    def _objects(self) -> Records:
        numbers, objects = list[int](), list[object]()
        for value in self._values():
            self._row += 1
            if isinstance(value, dict):
                numbers.append(self._row)
                objects.append(value)
            else:
                problem = f"found the JSON value {str(value)[:40]!r}"
                self._findings.problem(self._row, problem, "a JSON object", "values in the array that are not objects")
        self._text, self._at = self._text[self._at :], 0
        self._enough = min(2 * len(self._text), LONGEST)
        if len(self._text) > LONGEST:
            self._stop(f"{self._error}, or more than {LONGEST:,} characters")
        return numbers, objects

    def _values(self) -> Iterator[object]:
        """Yield each complete value; `_at` is the end of what has been parsed."""
        while (start := _after_space(self._text, self._at)) < len(self._text):
            if after := AFTER.get((self._place, self._text[start])):
                self._place, self._at = after, start + 1
            elif self._place is not _Place.VALUE:
                self._stop(f"found {self._text[start : start + 20]!r}")
            else:
                try:
                    value, self._at = DECODER.raw_decode(self._text, start)
                except (ValueError, RecursionError) as error:  # possibly because it is incomplete
                    self._error = f"invalid JSON ({getattr(error, 'msg', error)})"
                    return
                self._place = _Place.COMMA
                yield value

    def _stop(self, problem: str) -> NoReturn:
        self._findings.stop(self._row + 1, problem, self._place.value)


def _after_space(text: str, at: int) -> int:
    space = SPACE.match(text, at)
    return space.end() if space else at
