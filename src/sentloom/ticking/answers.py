"""The answers of one person: a file of JSON lines to which every answer is appended and synced as soon as it is given.

The first line says which models and questions the answers are about. Every line ends with a checksum of what comes
before it, so that a changed line is never read as another one. At the end of a file, a line without a line feed is an
answer like any other; one that was not written completely was never confirmed, and is cut off when the file is
continued. A later answer to a query replaces an earlier one.
"""

import errno
import json
import os
import re
import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from hashlib import blake2b
from io import FileIO
from pathlib import Path
from statistics import fmean
from typing import Literal, TypeVar

from pydantic import TypeAdapter, ValidationError

from sentloom.errors import DamagedFile, InputError, disk_errors
from sentloom.files import new_file
from sentloom.locks import alone_on
from sentloom.ticking.questions import Question, Questions

VERSION = 2
Side = Literal["base", "fitted"]
Said = Literal["base", "fitted", "both", "neither", "skip"]
Choice = Literal["left", "right", "both", "neither", "skip"]
AGAIN = "`sentloom tick MODEL.fit` writes such a file"
OURS = b'{"ticks": '  # how a file begins
# A quote inside a text has a backslash before it: only the end of a line looks like one, also if one bit of it changed.
SEALED = re.compile(rb'(\{.*), "checksum": "([0-9a-f]{16})"\}')
WHOLE = re.compile(rb', "checksum": ".{18}|[^\\]"\}$')
Line = TypeVar("Line", "Header", "Answer")


@dataclass(frozen=True)
class Header:
    """What the answers of a file are about."""

    ticks: int  # the version of the format
    base: str  # the fingerprints of both models
    fitted: str
    questions: str  # SHA-256
    queries: int
    sizes: tuple[int, ...]  # of the strata
    documents: int
    of_documents: int
    salt: str  # decides which result is on the left

    @property
    def subject(self) -> "Header":
        """Without what differs between the files of two people."""
        return replace(self, salt="")


@dataclass(frozen=True)
class Answer:
    """Which of two results is right, in one person's view."""

    query: str
    base: str
    fitted: str
    stratum: int
    left: Side  # which of them was shown on the left
    answer: Said
    at: str  # ISO time


@dataclass(frozen=True)
class Answers:
    """The content of a file."""

    name: str
    header: Header
    given: tuple[Answer, ...]  # all of them, in order

    @property
    def latest(self) -> dict[str, Answer]:
        """The last answer to each query, in the order in which queries were first answered."""
        return {one.query: one for one in self.given}

    @property
    def answered(self) -> list[str]:
        """The queries that were not skipped, in the same order."""
        return [query for query, one in self.latest.items() if one.answer != "skip"]


def header_for(questions: Questions, base: str, fitted: str) -> Header:
    """The first line of a new file; base and fitted are fingerprints."""
    sizes = questions.total, questions.sizes, questions.documents, questions.of_documents
    return Header(VERSION, base, fitted, questions.sha256, *sizes, secrets.token_hex(8))


def left_of(question: Question, salt: str) -> Side:
    """Which result is shown on the left: by chance, but always the same in one file."""
    return "base" if blake2b(f"{salt} {question.query}".encode()).digest()[0] % 2 else "fitted"


def meaning(choice: Choice, left: Side) -> Said:
    """A choice between left and right in terms of the models."""
    other: Side = "fitted" if left == "base" else "base"
    match choice:
        case "left":
            return left
        case "right":
            return other
        case _:
            return choice


class AnswerFile:
    """An open file that answers are appended to; `size` is the length of what was confirmed."""

    def __init__(self, path: Path, file: FileIO, answers: Answers, size: int) -> None:
        self.path, self._file, self.answers, self._size = path, file, answers, size

    @property
    def header(self) -> Header:
        """What the answers are about."""
        return self.answers.header

    def append(self, question: Question, choice: Choice) -> None:
        """Save an answer; when this returns, it survives a crash of the machine."""
        left = left_of(question, self.header.salt)
        now = datetime.now(UTC).isoformat(timespec="seconds")
        parts = question.query, question.base, question.fitted, question.stratum
        answer = Answer(*parts, left, meaning(choice, left), now)
        with disk_errors(self.path):
            self._size += _append(self._file, sealed(answer), self._size)
        self.answers = replace(self.answers, given=(*self.answers.given, answer))


@contextmanager
def open_answers(path: Path, header: Header) -> Iterator[AnswerFile]:
    """Create a file of answers, or continue one about the same questions; no other process may write it meanwhile.

    An empty file is used. A file with other content, or with a damaged line, is refused and left as it is.
    """
    with alone_on(path), disk_errors(path):
        if _is_new(path):
            with new_file(path.resolve()) as part:  # a killed process leaves no half of a first line
                part.write_bytes(sealed(header))
        content = path.read_bytes()
        answers = _parsed_file(content, path)
        _refuse_other_questions(answers, header)
        with path.open("ab", buffering=0) as file:
            yield AnswerFile(path, file, answers, _repair(file, content))


def read_answers(path: Path) -> Answers:
    """All answers of a file; a last line that was not written completely is ignored."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise InputError(str(path), f"it cannot be read: {error.strerror}", "a file of ticks", AGAIN) from None
    return _parsed_file(content, path)


def sealed(line: Header | Answer) -> bytes:
    """A line with its checksum."""
    body = json.dumps(asdict(line), ensure_ascii=False).encode().removesuffix(b"}")
    return body + f', "checksum": "{_checksum(body)}"}}\n'.encode()


def _checksum(body: bytes) -> str:
    return blake2b(body, digest_size=8).hexdigest()


def _is_new(path: Path) -> bool:
    """Whether there is nothing at a path yet, or an empty file; other things, such as /dev/null, are refused."""
    if path.exists() and not path.is_file():
        raise InputError(
            str(path), "this is not a regular file", "a file of ticks, or a new name", "choose another name"
        )
    return not path.exists() or path.stat().st_size == 0


def _parsed_file(content: bytes, path: Path) -> Answers:
    first, *others = _lines(content) or [b""]
    if not first.startswith(OURS):
        raise InputError(str(path), "this is not a file of ticks", "answers of `sentloom tick`", AGAIN)
    header = _parsed(Header, first, path, 1)
    if header.ticks > VERSION:
        problem = f"it has version {header.ticks} of the format, from a newer sentloom"
        raise InputError(str(path), problem, f"version {VERSION}", "update sentloom")
    given = tuple(_parsed(Answer, line, path, number) for number, line in enumerate(others, 2))
    return Answers(path.name, header, given)


def _lines(content: bytes) -> list[bytes]:
    """All lines, also damaged ones, but not a last one that was cut off before its end."""
    *lines, last = content.split(b"\n")
    return [*lines, last] if not lines or WHOLE.search(last) else lines


def _parsed(kind: type[Line], line: bytes, path: Path, number: int) -> Line:
    seal = SEALED.fullmatch(line)
    try:
        if seal and _checksum(seal[1]) == seal[2].decode():
            return TypeAdapter(kind).validate_json(seal[1] + b"}")
    except ValidationError:
        pass
    fix = "restore the file from a copy"
    if number > 1:
        fix += ", or remove this line, whose query is then asked again; the other lines stay valid"
    raise DamagedFile(f"{path}, line {number}", "the line is damaged: it is not what was written", "", fix)


def _refuse_other_questions(found: Answers, header: Header) -> None:
    if found.header.subject != header.subject:
        problem = "its answers are about other models or other questions"
        fix = "choose another file with --output; the fit has changed since these answers were given"
        raise InputError(found.name, problem, "answers about this fit", fix)


def _repair(file: FileIO, content: bytes) -> int:
    """Cut off a line that was never completed, or end the last one; return the length of the file."""
    size = sum(len(line) + 1 for line in _lines(content))
    if size > len(content):
        return len(content) + _append(file, b"\n", len(content))
    file.truncate(size)
    return size


def _append(file: FileIO, line: bytes, size: int) -> int:
    """Write a line to the disk after the first `size` bytes, completely or not at all; return its length.

    What a failed write left is cut off at once, or else before the next line is written.
    """
    try:
        file.truncate(size)
        if file.write(line) != len(line):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        os.fsync(file.fileno())
    except BaseException:
        with suppress(OSError):
            file.truncate(size)
        raise
    return len(line)


@dataclass(frozen=True)
class Tick:
    """What people said about a query: how many of them prefer each result, as shares; the others prefer neither."""

    stratum: int
    base: float
    fitted: float

    @property
    def value(self) -> float:
        """From -1, if all prefer the base, to 1."""
        return self.fitted - self.base


def merged(people: Sequence[Answers]) -> dict[str, Tick]:
    """The queries that somebody answered, in the order in which they were; skipped ones are left out."""
    said: dict[str, list[Answer]] = {}
    for one in people:
        for query, answer in one.latest.items():
            if answer.answer != "skip":
                said.setdefault(query, []).append(answer)
    return {
        query: Tick(some[0].stratum, *(fmean(one.answer == side for one in some) for side in ("base", "fitted")))
        for query, some in said.items()
    }
