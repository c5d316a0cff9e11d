"""The answers of one person: a file of JSON lines to which every answer is appended and synced as soon as it is given.

The first line says which models and questions the answers are about. Every line ends with a checksum of what comes
before it, so that a changed line is never read as another one. At the end of a file, a line without a line feed is an
answer like any other; one that was not written completely was never confirmed, and is cut off when the file is
continued. Empty lines and the line ends of Windows, which editors leave, mean nothing. A later answer to a query
replaces an earlier one.

Editors replace files, and other programs write to them: what is at the path is compared with what was confirmed before
every answer and at the end. If a confirmed answer is no longer there, all of them are saved in another file.
"""

import errno
import json
import os
import re
import secrets
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from hashlib import blake2b
from io import FileIO
from itertools import count
from pathlib import Path
from statistics import fmean
from typing import Literal, TypeVar

from pydantic import TypeAdapter, ValidationError

from sentloom.errors import DamagedFile, InputError, SentloomError, disk_errors
from sentloom.files import new_file
from sentloom.locks import alone_on
from sentloom.ticking.questions import Question, Questions

VERSION = 2
Side = Literal["base", "fitted"]
Said = Literal["base", "fitted", "both", "neither", "skip"]
Choice = Literal["left", "right", "both", "neither", "skip"]
AGAIN = "`sentloom tick MODEL.fit` writes such a file"
OURS = b'{"ticks": '  # how a file begins
ANSWER = b'{"query": "'  # how every other line begins
OF_VERSION = re.compile(rb'\{"ticks": ([1-9][0-9]{0,8})[,}]')
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
        return {answer.query: answer for answer in self.given}

    @property
    def answered(self) -> list[str]:
        """The queries that were not skipped, in the same order."""
        return [query for query, answer in self.latest.items() if answer.answer != "skip"]


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
    """A file that answers are appended to. It is opened for each of them, since an editor may have replaced it."""

    def __init__(self, path: Path, answers: Answers) -> None:
        self.path, self.answers = path, answers
        self._left: tuple[int, ...] | None = None  # the state of the file after the last answer

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
        with disk_errors(self.path), self._current() as file:
            _append(file, sealed(answer))
            self._left = _state(file)
        self.answers = replace(self.answers, given=(*self.answers.given, answer))

    def check(self) -> None:
        """Raise an error if the file no longer has all answers that were confirmed, or has other content."""
        self._left = None
        with disk_errors(self.path), self._current():
            pass

    @contextmanager
    def _current(self) -> Iterator[FileIO]:
        """What is at the path now, with all confirmed answers."""
        try:
            with _opened(self.path) as file:
                if _state(file) != self._left:
                    self._read_again(file)
                yield file
        except FileNotFoundError:
            raise self._changed(str(self.path), "it was removed") from None
        except SentloomError as error:
            raise self._changed(error.where, error.problem) from None

    def _read_again(self, file: FileIO) -> None:
        content = file.readall()
        answers = _parsed_file(content, self.path)
        if answers.header != self.header:
            raise InputError(str(self.path), "it is another file of ticks", "", "")
        rest = iter(answers.given)
        if not all(answer in rest for answer in self.answers.given):  # in this order
            raise InputError(str(self.path), "answers that were saved are no longer in it", "", "")
        _repair(file, content)
        self.answers = answers

    def _changed(self, where: str, problem: str) -> InputError:
        """What to do about another program's changes, which are left as they are."""
        number, problem = len(self.answers.given), f"the file was changed while answers were given: {problem}"
        try:
            kept = _kept(self.answers, self.path)
        except OSError as error:
            return InputError(where, problem, "", f"the {number} answers could not be saved elsewhere: {error}")
        fix = f"all answers that were saved ({number}) are in {kept}: continue with --output {kept}, or copy it back"
        return InputError(where, problem, "", fix)


@contextmanager
def open_answers(path: Path, header: Header) -> Iterator[AnswerFile]:
    """Create a file of answers, or continue one about the same questions; no other `tick` may write it meanwhile.

    An empty file is used. A file with other content, or with a damaged line, is refused and left as it is. So is one
    with several names (hard links), since a lock is on a name.
    """
    with alone_on(path), disk_errors(path):
        if _size(path) == 0:
            with new_file(path.resolve()) as part:  # a killed process leaves no half of a first line
                part.write_bytes(sealed(header))
        with _opened(path) as file:
            content = file.readall()
            answers = _parsed_file(content, path)
            _refuse_other_questions(answers, header)
            _repair(file, content)
        answer_file = AnswerFile(path, answers)
        yield answer_file
        answer_file.check()


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


def _size(path: Path) -> int:
    """The size of a file, or 0 if there is none; /dev/null and its like are refused, and files with several names."""
    if not path.exists():
        return 0
    status, expected = path.stat(), "a file of ticks, or a new name"
    if not stat.S_ISREG(status.st_mode):
        raise InputError(str(path), "this is not a regular file", expected, "choose another name")
    if status.st_nlink > 1:
        problem = "this file has several names (hard links), and may be written under another one"
        raise InputError(str(path), problem, "a file with one name", "copy it, and continue with the copy")
    return status.st_size


def _opened(path: Path) -> FileIO:
    """A file to read from its beginning, and to append to. It is not created."""
    _size(path)
    file = FileIO(path, "a+", opener=lambda name, flags: os.open(name, flags & ~os.O_CREAT))
    file.seek(0)
    return file


def _state(file: FileIO) -> tuple[int, ...]:
    """What differs if something else has replaced a file or written to it."""
    status = os.fstat(file.fileno())
    return status.st_dev, status.st_ino, status.st_nlink, status.st_size, status.st_mtime_ns


def _kept(answers: Answers, path: Path) -> Path:
    """The name of a complete file of these answers, beside another file; it is written unless it is there."""
    content = b"".join([sealed(answers.header), *map(sealed, answers.given)])
    for number in count(1):
        kept = path.with_name(f"{path.stem}-kept-{number}{path.suffix}")
        if not kept.exists():
            with new_file(kept) as part:
                part.write_bytes(content)
        if kept.is_file() and kept.read_bytes() == content:
            break
    return kept


def _parsed_file(content: bytes, path: Path) -> Answers:
    first, *others = _lines(content)
    if not first.startswith(OURS):
        raise InputError(str(path), "this is not a file of ticks", "answers of `sentloom tick`", AGAIN)
    _refuse_other_versions(first, path)
    header = _parsed(Header, first, path, 1)
    answers = tuple(_parsed(Answer, line, path, number) for number, line in enumerate(others, 2) if line.strip())
    return Answers(path.name, header, answers)


def _refuse_other_versions(first: bytes, path: Path) -> None:
    """Before anything else of the line is read, which may have another form."""
    match = OF_VERSION.match(first)
    version = int(match[1]) if match else VERSION
    if version > VERSION:
        problem = f"it has version {version} of the format, from a newer sentloom"
        raise InputError(str(path), problem, f"version {VERSION}", "update sentloom")
    if version < VERSION:
        problem = f"it has version {version} of the format, from an older sentloom"
        raise InputError(str(path), problem, f"version {VERSION}", "answer in a new file: choose another name")


def _lines(content: bytes) -> list[bytes]:
    """All lines, also damaged ones, but not a last one that was cut off before its end."""
    *lines, last = (line.rstrip(b"\r") for line in content.split(b"\n"))
    return lines if lines and _is_unfinished(last) else [*lines, last]


def _is_unfinished(last: bytes) -> bool:
    """Whether this is the beginning of an answer, or the zeros that a power cut may leave of one."""
    ours = last.startswith(ANSWER) or ANSWER.startswith(last) or not last.strip(b"\0")
    return ours and not WHOLE.search(last)


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


def _refuse_other_questions(answers: Answers, header: Header) -> None:
    if answers.header.subject != header.subject:
        problem = "its answers are about other models or other questions"
        fix = "choose another file with --output; the fit has changed since these answers were given"
        raise InputError(answers.name, problem, "answers about this fit", fix)


def _repair(file: FileIO, content: bytes) -> None:
    """Cut off a line that was never completed, or end the last one."""
    last = content.rpartition(b"\n")[2]
    if not _is_unfinished(last):
        _append(file, b"\n")
    elif last:
        file.truncate(len(content) - len(last))


def _append(file: FileIO, line: bytes) -> None:
    """Write a line to the disk, completely or not at all.

    What a failed write left is cut off at once, or else when the file is read again.
    """
    size = os.fstat(file.fileno()).st_size
    try:
        if file.write(line) != len(line):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        os.fsync(file.fileno())
    except BaseException:
        with suppress(OSError):
            file.truncate(size)
        raise


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
    answers_to: dict[str, list[Answer]] = {}
    for person in people:
        for query, answer in person.latest.items():
            if answer.answer != "skip":
                answers_to.setdefault(query, []).append(answer)
    return {
        query: Tick(said[0].stratum, *(fmean(answer.answer == side for answer in said) for side in ("base", "fitted")))
        for query, said in answers_to.items()
    }
