"""The answers of one person: a file of JSON lines to which every answer is appended and synced as soon as it is given.

The first line says which models and questions the answers are about. A line that a killed process left incomplete was
never confirmed, and is removed when the file is continued. A later answer to a query replaces an earlier one.
"""

import json
import os
import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from hashlib import blake2b
from pathlib import Path
from statistics import fmean
from typing import Literal, TypeVar

from pydantic import TypeAdapter, ValidationError

from sentloom.errors import DamagedFile, InputError, disk_errors
from sentloom.locks import alone_on
from sentloom.ticking.questions import Question, Questions

VERSION = 1
Side = Literal["base", "fitted"]
Said = Literal["base", "fitted", "both", "neither", "skip"]
Choice = Literal["left", "right", "both", "neither", "skip"]
AGAIN = "`sentloom tick MODEL.fit` writes such a file"
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
    """An open file that answers are appended to."""

    def __init__(self, path: Path, handle: int, answers: Answers) -> None:
        self.path, self._handle, self.answers = path, handle, answers

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
        _write(self._handle, answer, self.path)
        self.answers = replace(self.answers, given=(*self.answers.given, answer))


@contextmanager
def open_answers(path: Path, header: Header) -> Iterator[AnswerFile]:
    """Create a file of answers, or continue one about the same questions; no other process may write it meanwhile."""
    with alone_on(path), disk_errors(path):
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o666)
        try:
            if not _complete_lines(path):
                os.ftruncate(handle, 0)
                _write(handle, header, path)
            found = read_answers(path)
            _refuse_other_questions(found, header)
            os.ftruncate(handle, sum(len(line) for line in _complete_lines(path)))
            yield AnswerFile(path, handle, found)
        finally:
            os.close(handle)


def read_answers(path: Path) -> Answers:
    """All answers of a file; what follows the last complete line is ignored."""
    try:
        first, *others = _complete_lines(path) or [b""]
    except OSError as error:
        raise InputError(str(path), f"it cannot be read: {error.strerror}", "a file of ticks", AGAIN) from None
    header = _parsed(Header, first, path, 1)
    if header.ticks > VERSION:
        problem = f"it has version {header.ticks} of the format, from a newer sentloom"
        raise InputError(str(path), problem, f"version {VERSION}", "update sentloom")
    given = tuple(_parsed(Answer, line, path, number) for number, line in enumerate(others, 2))
    return Answers(path.name, header, given)


def _complete_lines(path: Path) -> list[bytes]:
    return [line for line in path.read_bytes().splitlines(keepends=True) if line.endswith(b"\n")]


def _parsed(kind: type[Line], line: bytes, path: Path, number: int) -> Line:
    try:
        return TypeAdapter(kind).validate_json(line)
    except ValidationError:
        if number > 1:
            fix = "restore the file from a copy, or remove the line"
            raise DamagedFile(f"{path}, line {number}", "the answer cannot be read", "", fix) from None
        raise InputError(str(path), "this is not a file of ticks", "answers of `sentloom tick`", AGAIN) from None


def _refuse_other_questions(found: Answers, header: Header) -> None:
    if found.header.subject != header.subject:
        problem = "its answers are about other models or other questions"
        fix = "choose another file with --output; the fit has changed since these answers were given"
        raise InputError(found.name, problem, "answers about this fit", fix)


def _write(handle: int, line: Header | Answer, path: Path) -> None:
    """One call for the whole line, and on the disk before anything else happens."""
    data = json.dumps(asdict(line), ensure_ascii=False).encode() + b"\n"
    if os.write(handle, data) != len(data):
        raise OSError(28, "the answer was not written completely", str(path))
    os.fsync(handle)


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
