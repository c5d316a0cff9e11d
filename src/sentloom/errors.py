"""What a user can get wrong: each error says where, what is wrong, what was expected and how to fix it."""

import errno
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from pydantic import BaseModel

SHOWN_PROBLEMS = 10
COMMANDS = ("pip ", "sentloom ", "iconv ", "apt ")  # that a fix may begin with
NOT_WRITTEN = {
    *(errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EACCES, errno.EPERM, errno.EIO),
    *(errno.ENOTDIR, errno.EISDIR, errno.EEXIST, errno.ENOTEMPTY, errno.ENAMETOOLONG, errno.ENOLCK, errno.ENOTSUP),
}
Options = TypeVar("Options", bound="BaseModel")
_in_command: ContextVar[bool] = ContextVar("whether a command runs", default=False)
IN_TEXT = re.compile(r"(?:os error|\[Errno) (\d+)")  # libraries in Rust, and shutil, have the number only in their text


@contextmanager
def in_command() -> Iterator[None]:
    """Errors raised inside speak of options as a command spells them; outside, as Python does."""
    token = _in_command.set(True)
    try:
        yield
    finally:
        _in_command.reset(token)


def option(name: str, value: str | float | None = None) -> str:
    """An option as the reader of an error would write it.

    >>> option("columns"), option("columns", "text=body"), option("force", True)
    ('columns', "columns='text=body'", 'force=True')
    >>> with in_command():
    ...     option("columns"), option("columns", "text=body"), option("force", True)
    ('--columns', '--columns text=body', '--force')
    """
    if not _in_command.get():
        return name if value is None else f"{name}={value!r}"
    flag = f"--{name.replace('_', '-')}"
    return f"{flag} {value}" if isinstance(value, str | float) else flag


class SentloomError(Exception):
    """Base of every error that a user can correct; the command prints it without a traceback and exits with 2.

    >>> try:
    ...     raise SentloomError("faq.csv", "the file is empty", "a row per question", "check the export")
    ... except SentloomError as error:
    ...     print(error)
    faq.csv: the file is empty. Expected a row per question.
    Check the export.
    """

    exit_code = 2

    def __init__(self, where: str, problem: str, expected: str, fix: str) -> None:
        self.where, self.problem, self.expected, self.fix = where, problem, expected, fix
        super().__init__(f"{where}: {_problem(problem, expected)}\n{_sentence(fix)}")


class InputError(SentloomError):
    """A value given to a function or a command is not one it can take."""


class ModelError(SentloomError):
    """A model folder or name cannot be loaded, or a model cannot be written in the asked form."""


class MissingPart(SentloomError):
    """An optional package, an embedded part or a data set is not there; the message says what to install."""


class NothingToGain(SentloomError):
    """The base cannot be beaten on these rows, so nothing is trained; the exit code is that of a fit without a gain."""

    exit_code = 3


class TrainingStopped(SentloomError):
    """A run that cannot continue, such as one whose loss is NaN; its last good checkpoint is untouched."""


class DamagedFile(SentloomError):
    """A file does not hold what was written to it."""


class DiskError(SentloomError, OSError):
    """Something cannot be written: a full disk, a read-only folder. Also an OSError, for those who catch these."""


def disk_error(error: Exception, place: Path | str) -> DiskError | None:
    """What a failed write to `place` means to a user; None for an error of another kind, or of another place."""
    if isinstance(error, DiskError):
        return error
    number = error.errno if isinstance(error, OSError) and error.errno else _number_in(str(error))
    name = error.filename if isinstance(error, OSError) else None
    if number not in NOT_WRITTEN or (isinstance(name, str) and not _is_near(Path(name), Path(place))):
        return None
    fix = "free some space there or choose another place; the same command then continues"
    return DiskError(str(place), os.strerror(number), "a place that can be written to, with enough space", fix)


def _is_near(path: Path, place: Path) -> bool:
    """Whether a path is beside or below a place, or one of the folders that it is in."""
    path, place = path.absolute(), place.absolute()
    return place.parent in path.parents or path in place.parents


def _number_in(text: str) -> int | None:
    match = IN_TEXT.search(text)
    return int(match[1]) if match else None


def first_line(error: BaseException) -> str:
    """The first line of another library's error, or its type if it has no text."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


@contextmanager
def disk_errors(place: Path) -> Iterator[None]:
    """Turn a failed write to `place` into a DiskError, whichever library it comes from."""
    try:
        yield
    except Exception as error:
        if ours := disk_error(error, place):
            raise ours from error
        raise


@dataclass(frozen=True)
class Problem:
    """One fault in a file. `place` is what follows the file's name: "line 17", "row 3" or ""."""

    file: str
    place: str
    problem: str
    expected: str

    def __str__(self) -> str:
        return f"{self.where}: {_problem(self.problem, self.expected)}"

    @property
    def where(self) -> str:
        """The file, and the place in it."""
        return f"{self.file}, {self.place}" if self.place else self.file


def _problem(problem: str, expected: str) -> str:
    between = "; " if expected.startswith("did you mean") else ". Expected "
    said = f"{problem}{between}{expected}" if expected else problem
    return said + "." * (not said.endswith("?"))


def _sentence(text: str) -> str:
    """With a capital letter and a full stop; a command stays as it is typed."""
    if text.startswith(COMMANDS):
        return f"Run: {text}"
    return text[:1].upper() + text[1:] + "." * (not text.endswith((".", "!", "?")))


VALIDATION_WORDS = {  # of pydantic -> ours
    "a valid string": "text",
    "a valid integer": "a whole number",
    "a valid number": "a number",
    "a valid boolean": "true or false",
    "a valid array": "a list",
    "an object": "keys and values",
}


def plain_words(message: str) -> str:
    """What pydantic expected, in plain words: "a number greater than 0"."""
    said = re.sub(r"^(Input should be|Value error,|Tuple should have|String should have) ", "", message)
    said = said.partition(", unable to parse")[0].replace(" after validation", "")
    said = VALIDATION_WORDS.get(said, said)
    return f"a number {said}" if said.startswith(("greater", "less")) else said


def checked(model: type[Options], where: str, values: Mapping[str, Any]) -> Options:
    """Values as a pydantic model; the error is about the first one that it refuses."""
    from pydantic import ValidationError  # here, since it takes a while to import

    fix = "correct the value"
    try:
        return model(**values)
    except ValidationError as error:
        first = error.errors()[0]
    name = ".".join(map(str, first["loc"]))
    if first["type"] == "extra_forbidden":
        raise InputError(where, f"unknown name {name!r}", f"one of {', '.join(model.model_fields)}", "correct the name")
    if first["type"] == "missing":
        raise InputError(where, f"{name} is missing", "", "add it")
    if not name:  # about several values
        raise InputError(where, plain_words(first["msg"]), "", fix)
    raise InputError(where, f"{name} is {first['input']!r}", plain_words(first["msg"]), fix)


class DataError(SentloomError):
    """Faults in data files: all of them counted, the first ten shown, many of them summed up by kind."""

    def __init__(
        self, problems: Sequence[Problem], total: int, fix: str, summary: Sequence[str] = (), cause: str = ""
    ) -> None:
        self.problems, self.total = list(problems[:SHOWN_PROBLEMS]), total
        self.summary, self.cause = list(summary[:SHOWN_PROBLEMS]), cause
        first = self.problems[0]
        super().__init__(first.where, first.problem, first.expected, fix)

    def __str__(self) -> str:
        lines = [str(problem) for problem in self.problems]
        if self.total > len(lines):
            lines.append(f"... and {self.total - len(lines):,} more problems, {self.total:,} in all:")
            lines += [f"  {line}" for line in self.summary]
        if self.cause:
            lines.append(f"Likely cause: {self.cause}")
        return "\n".join([*lines, _sentence(self.fix)])


class RecipeError(SentloomError):
    """Faults in a recipe or in its overrides: all of them shown."""

    def __init__(self, problems: Sequence[Problem], fix: str = "correct the recipe") -> None:
        self.problems = list(problems)
        first = self.problems[0]
        super().__init__(first.where, first.problem, first.expected, fix)

    def __str__(self) -> str:
        return "\n".join([*map(str, self.problems), _sentence(self.fix)])
