"""Files that are one JSON array of objects, on one line or on many: read object by object, in little memory."""

import json
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from enum import Enum
from typing import NoReturn

from sentloom.data.findings import Findings
from sentloom.data.inputs import Input
from sentloom.data.limits import CLEANING, LONGEST
from sentloom.data.scan import Digest, Records, text_pieces
from sentloom.errors import DataError

KIND = "json"
NOTE = "one JSON array; each object in it is a row"
DECODER = json.JSONDecoder()
SPACE = re.compile(r"[ \t\r\n]*+")


class _Place(Enum):
    """What comes next in the file."""

    BRACKET = "the opening bracket"
    VALUE = "an object"
    COMMA = "a comma or the closing bracket"
    END = "the end of the file"


AFTER = {
    (_Place.BRACKET, "["): _Place.VALUE,
    (_Place.VALUE, "]"): _Place.END,  # an empty array, or a comma behind the last object
    (_Place.COMMA, ","): _Place.VALUE,
    (_Place.COMMA, "]"): _Place.END,
}


def recognised(entry: Input) -> Input:
    """An input of JSON lines as one of an array, if its first character is a bracket."""
    unnoted, start = Findings(CLEANING), ""
    unnoted.begin(entry.name, "row")
    if entry.kind == "jsonl":
        with suppress(DataError):
            start = next(filter(str.strip, text_pieces(entry.paths[0], Digest(), unnoted)), "")
    return entry._replace(kind=KIND) if start.lstrip().startswith("[") else entry


def array_records(pieces: Iterable[str], findings: Findings) -> Iterator[Records]:
    """The objects with their numbers from 1."""
    array = _Array(findings)
    for piece in pieces:
        yield array.add(piece)
    yield array.end()


class _Array:
    """The part of the file that has been read and not yet taken apart."""

    def __init__(self, findings: Findings) -> None:
        self._findings, self._text, self._place = findings, "", _Place.BRACKET
        self._at = self._row = 0
        self._enough = 0  # characters below which it is not worth trying again: the object there is not complete
        self._error = "the end of the file"

    def add(self, piece: str) -> Records:
        """The objects that are complete with this piece of the file."""
        self._text += piece
        return self._objects() if len(self._text) >= self._enough else ([], [])

    def end(self) -> Records:
        """The last objects of the file."""
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
                found = f"the JSON value {str(value)[:40]!r}"
                self._findings.problem(self._row, found, "a JSON object", "values in the array that are not objects")
        self._text, self._at = self._text[self._at :], 0
        self._enough = min(2 * len(self._text), LONGEST)
        if len(self._text) > LONGEST:
            self._stop(f"{self._error}, or more than {LONGEST:,} characters")
        return numbers, objects

    def _values(self) -> Iterator[object]:
        """Each complete value; `_at` is behind all that has been taken apart."""
        while (start := _after_space(self._text, self._at)) < len(self._text):
            if after := AFTER.get((self._place, self._text[start])):
                self._place, self._at = after, start + 1
            elif self._place is not _Place.VALUE:
                self._stop(repr(self._text[start : start + 20]))
            else:
                try:
                    value, self._at = DECODER.raw_decode(self._text, start)
                except (ValueError, RecursionError) as error:  # perhaps because it is not complete
                    self._error = f"JSON that cannot be read ({getattr(error, 'msg', error)})"
                    return
                self._place = _Place.COMMA
                yield value

    def _stop(self, found: str) -> NoReturn:
        self._findings.stop(self._row + 1, found, self._place.value)


def _after_space(text: str, at: int) -> int:
    found = SPACE.match(text, at)
    return found.end() if found else at
