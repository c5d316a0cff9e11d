"""From bytes to records: one pass that hashes, decodes and splits a text file, and knows the line of every fault.

The work is done by blocks of whole lines; only a block in which something is wrong is gone through line by line.
"""

import bisect
import codecs
import gzip
import hashlib
import io
import json
import re
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from typing import IO, Any, NamedTuple, NoReturn

from sentloom.data.inputs import File
from sentloom.errors import SHOWN_PROBLEMS, DataError, Problem

BLOCK = 1 << 18  # small enough that the strings of a block stay in the processor's cache
LONGEST = 10_000_000  # bytes of one line, or characters of one CSV record
BLANK_LINES = "blank lines"
HALF_BLANK = "lines that are blank on one side"
MEND = "mend the places named above and read the data again"
BYTE_ORDER_MARKS = {  # the longer ones first: that of UTF-16 begins that of UTF-32
    codecs.BOM_UTF32_LE: "UTF-32",
    codecs.BOM_UTF32_BE: "UTF-32",
    codecs.BOM_UTF16_LE: "UTF-16",
    codecs.BOM_UTF16_BE: "UTF-16",
}
# One cell and what ends it. Quantifiers that never give back keep the search linear.
CSV_CELL = re.compile(r'(?:"((?:[^"]++|"")*+)"|([^",]*+))(,|\Z)')
CSV_OPEN_CELL = re.compile(r'"(?:[^"]++|"")*+\Z')

Block = tuple[int, str]  # the number of the first line, and whole lines of text
Records = tuple[Sequence[int], list[Any]]  # the line at which each record starts, and the records


class Rows(NamedTuple):
    """Rows of cells laid end to end: one list for all of them, since a list for each takes twice the time."""

    places: Sequence[int]  # the line at which each row starts
    widths: Sequence[int]  # the number of its cells
    cells: Sequence[str]


class Findings:
    """What a reading came upon: all problems counted, the first ten in file order kept, and what was skipped."""

    def __init__(self) -> None:
        self.total = 0
        self.skipped: Counter[str] = Counter()
        self._first: list[tuple[int, int, int, Problem]] = []
        self._files: list[str] = []
        self._place_name = "line"

    def begin(self, file: str, place_name: str) -> None:
        """The problems from here on are in this file."""
        self._files.append(file)
        self._place_name = place_name

    @contextmanager
    def within(self, file: str) -> Iterator[None]:
        """Of several files that are read side by side, the one that is meant for now."""
        together, self._files[-1] = self._files[-1], file
        try:
            yield
        finally:
            self._files[-1] = together

    def problem(self, place: int, found: str, wanted: str) -> None:
        """Note a problem at a line or row from 1; 0 stands for the file as a whole."""
        self.total += 1
        problem = Problem(self._files[-1], f"{self._place_name} {place}" if place else "", found, wanted)
        bisect.insort(self._first, (len(self._files), place, self.total, problem))
        del self._first[SHOWN_PROBLEMS:]

    def stop(self, place: int, found: str, wanted: str, next_step: str = MEND) -> NoReturn:
        """Note a problem behind which nothing can be read."""
        self.problem(place, found, wanted)
        raise self.error(next_step)

    def error(self, next_step: str = MEND) -> DataError:
        """All of it as one error."""
        return DataError([problem for *_, problem in self._first], self.total, next_step)


class Digest:
    """The hash of what has been read so far, and its size in bytes."""

    def __init__(self) -> None:
        self.size, self._hash = 0, hashlib.sha256()

    def update(self, block: bytes) -> None:
        """More was read."""
        self.size += len(block)
        self._hash.update(block)

    def hexdigest(self) -> str:
        """The hash in hex."""
        return self._hash.hexdigest()


class _Hashed(io.RawIOBase):
    """A file that adds to a hash whatever is read from it."""

    def __init__(self, file: IO[bytes], digest: Digest) -> None:
        self._file, self._digest = file, digest

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        block = self._file.read(len(buffer))
        buffer[: len(block)] = block
        self._digest.update(block)
        return len(block)


def text_blocks(path: File, digest: Digest, findings: Findings) -> Iterator[Block]:
    """The file as text, in blocks of whole lines. What cannot be decoded is noted and stands as U+FFFD."""
    for first, raw in _whole_lines(_bytes(path, digest, findings), findings):
        block = _without_mark(raw, path, findings) if first == 1 else raw
        try:
            text = block.decode()
            sound = "\0" not in text
        except UnicodeDecodeError:
            sound = False
        if not sound:
            lines = enumerate(block.split(b"\n"), first)
            text = "\n".join([_decode_line(number, line, findings) for number, line in lines])
        yield first, text


def _bytes(path: File, digest: Digest, findings: Findings) -> Iterator[bytes]:
    try:
        with path.open("rb") as raw:
            hashed = _Hashed(raw, digest)
            file = gzip.GzipFile(fileobj=hashed) if path.suffix.lower() == ".gz" else hashed
            while block := file.read(BLOCK):
                yield block
    except (EOFError, gzip.BadGzipFile, zipfile.BadZipFile, zlib.error) as error:
        kind = "gzip" if path.suffix.lower() == ".gz" else "zip"
        findings.stop(
            0, f"{kind} data that are cut short or damaged ({error})", f"a whole {kind} file", "fetch it anew"
        )
    except OSError as error:
        next_step = "check its permissions and the disk"
        findings.stop(0, f"a file that cannot be read ({error.strerror})", "a readable file", next_step)


def _whole_lines(blocks: Iterable[bytes], findings: Findings) -> Iterator[tuple[int, bytes]]:
    """Blocks that end where a line ends. An overlong line is noted and dropped while it is read; its end stays."""
    number, rest, overlong = 1, b"", False
    for block in blocks:
        start, newline, others = block.partition(b"\n")
        overlong = overlong or len(rest) + len(start) > LONGEST
        rest = b"" if overlong else rest + start
        if not newline:
            continue
        if overlong:
            _note_overlong(number, findings)
        whole, newline, tail = others.rpartition(b"\n")
        yield number, rest + b"\n" + whole + newline
        number += 1 + whole.count(b"\n") + len(newline)
        rest, overlong = tail, False
    if overlong:
        _note_overlong(number, findings)
    if rest:
        yield number, rest


def _note_overlong(line: int, findings: Findings) -> None:
    findings.problem(line, f"a line of more than {LONGEST:,} bytes", "shorter lines")


def _without_mark(block: bytes, path: File, findings: Findings) -> bytes:
    for mark, name in BYTE_ORDER_MARKS.items():
        if block.startswith(mark):
            next_step = f"convert it: iconv -f {name} -t UTF-8 {path} > NEW_FILE"
            findings.stop(1, f"the byte order mark of {name}", "UTF-8", next_step)
    return block.removeprefix(codecs.BOM_UTF8)


def _decode_line(number: int, line: bytes, findings: Findings) -> str:
    try:
        text = line.decode()
    except UnicodeDecodeError as error:
        found = f"the byte 0x{line[error.start]:02X} at byte {error.start + 1} of the line"
        findings.problem(number, found, "UTF-8")
        text = line.decode(errors="replace")
    if "\0" in text:
        findings.problem(number, f"a NUL character at character {text.index(chr(0)) + 1} of the line", "text")
    return text.replace("\0", "\N{REPLACEMENT CHARACTER}")


def text_lines(blocks: Iterable[Block], findings: Findings, spaces: str | None = None) -> Iterator[Records]:
    """Lines that are not blank; `spaces` says which characters make a blank line, by default any white space."""
    for first, text in blocks:
        lines = _lines(text)
        numbers: Sequence[int] = range(first, first + len(lines))
        if not all(map(str.strip, lines)):
            numbers = [number for number, line in zip(numbers, lines, strict=True) if line.strip(spaces)]
            findings.skipped[BLANK_LINES] += len(lines) - len(numbers)
            lines = [line for line in lines if line.strip(spaces)]
        yield numbers, lines


def _lines(text: str) -> list[str]:
    """Without their ends; a file may end in a bare carriage return."""
    if "\r" in text:
        text = text.replace("\r\n", "\n") if text.endswith("\n") else text.replace("\r\n", "\n").removesuffix("\r")
    return text.removesuffix("\n").split("\n")


def twin_lines(paths: Sequence[File], digests: Sequence[Digest], findings: Findings) -> Iterator[Records]:
    """The lines of two files, side by side by number; what is blank on one side or both is skipped and counted."""
    sides = [_side(path, digest, findings) for path, digest in zip(paths, digests, strict=True)]
    waiting: list[list[str]] = [[], []]
    number = 1
    while all(side or _more(side, lines) for side, lines in zip(waiting, sides, strict=True)):
        paired = min(map(len, waiting))
        rows = list(zip(*(side[:paired] for side in waiting), strict=True))
        waiting = [side[paired:] for side in waiting]
        yield _without_blank(range(number, number + paired), rows, findings)
        number += paired
    counts = [number - 1 + len(side) + sum(map(len, lines)) for side, lines in zip(waiting, sides, strict=True)]
    if counts[0] != counts[1]:
        found = " and ".join(f"{count:,} lines in {path}" for count, path in zip(counts, paths, strict=True))
        findings.stop(0, found, "the same number of lines in both", "take both files from one download")


def _side(path: File, digest: Digest, findings: Findings) -> Iterator[list[str]]:
    blocks = text_blocks(path, digest, findings)
    while True:
        with findings.within(str(path)):
            block = next(blocks, None)
        if block is None:
            return
        yield _lines(block[1])


def _more(side: list[str], lines: Iterator[list[str]]) -> bool:
    side += next(lines, [])
    return bool(side)


def _without_blank(numbers: Sequence[int], rows: list[tuple[str, ...]], findings: Findings) -> Records:
    full = [all(map(str.strip, row)) for row in rows]
    if all(full):
        return numbers, rows
    empty = sum(not any(map(str.strip, row)) for row in rows)
    findings.skipped[BLANK_LINES] += empty
    findings.skipped[HALF_BLANK] += len(full) - sum(full) - empty
    kept = [at for at, whole in enumerate(full) if whole]
    return [numbers[at] for at in kept], [rows[at] for at in kept]


def tsv_rows(blocks: Iterable[Block], findings: Findings) -> Iterator[Rows]:
    """Lines split on tabs; a line of nothing but tabs is a row of empty cells, not a blank line."""
    for numbers, lines in text_lines(blocks, findings, spaces=" \r"):
        yield _split("\t", numbers, lines)


def _split(mark: str, numbers: Sequence[int], lines: list[str]) -> Rows:
    widths = [line.count(mark) + 1 for line in lines]
    return Rows(numbers, widths, mark.join(lines).split(mark) if lines else [])


def jsonl_records(blocks: Iterable[Block], findings: Findings) -> Iterator[Records]:
    """One JSON object a line."""
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
    wanted = "one JSON object"
    try:
        value = json.loads(line)
    except json.JSONDecodeError as error:
        findings.problem(number, f"a line that is not JSON ({error.msg}, character {error.pos + 1})", wanted)
    except (ValueError, RecursionError) as error:  # a number of thousands of digits, brackets thousands deep
        findings.problem(number, f"JSON that cannot be read ({error})", wanted)
    else:
        if isinstance(value, dict):
            return value
        findings.problem(number, f"the JSON value {str(value)[:40]!r}", wanted)
    return None


def csv_rows(blocks: Iterable[Block], findings: Findings) -> Iterator[Rows]:
    """Records as RFC 4180 has them: a cell in quotes may hold commas, doubled quotes and line ends."""
    record = _CsvRecord(findings)
    for first, text in blocks:
        if '"' not in text and not record.is_open:
            for numbers, lines in text_lines([(first, text)], findings):
                yield _split(",", numbers, lines)
            continue
        starts, rows = [], []
        for number, line in enumerate(text.removesuffix("\n").split("\n"), first):
            if cells := record.add(number, line):
                starts.append(record.start)
                rows.append(cells)
        yield Rows(starts, [*map(len, rows)], [*chain.from_iterable(rows)])
    record.end()


class _CsvRecord:
    """The record at hand: one line, or several while a quote is open."""

    def __init__(self, findings: Findings) -> None:
        self.start, self.is_open = 0, False
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
        cells, at = split_csv(text.removesuffix("\r"))
        self.is_open = at is not None and CSV_OPEN_CELL.match(text, at) is not None
        if at is None:
            return cells
        if self.is_open:
            self._text = io.StringIO()
            self._text.write(text)
            return None
        fault = "text after a cell's closing quote" if text[at] == '"' else "a quote inside a cell without quotes"
        wanted = "cells with quotes written in quotes, each quote inside doubled"
        self._findings.problem(self.start + text.count("\n", 0, at), fault, wanted)
        return None

    def end(self) -> None:
        """The file is at its end: an open quote is never closed."""
        if self.is_open:
            self._stop_unclosed("before the end of the file")

    def _stop_unclosed(self, limit: str) -> NoReturn:
        text = self._text.getvalue()
        _, at = split_csv(text)
        line = self.start + text.count("\n", 0, at)
        self._findings.stop(line, f"a quote that is not closed {limit}", "a closing quote", "close or double the quote")


def split_csv(text: str) -> tuple[list[str], int | None]:
    """The cells of one record, and where the first cell starts that is not well formed (None: all are)."""
    if '"' not in text:
        return text.split(","), None
    cells, at = [], 0
    while cell := CSV_CELL.match(text, at):
        quoted, plain, comma = cell.groups()
        cells.append(plain if quoted is None else quoted.replace('""', '"'))
        if not comma:
            return cells, None
        at = cell.end()
    return cells, at
