"""What a user can get wrong: each error says where, what was found, what was wanted, and what to do next."""

from collections.abc import Sequence
from dataclasses import dataclass

SHOWN_PROBLEMS = 10


class SentloomError(Exception):
    """Base of every error that a user can mend; the command prints it without a traceback and exits with 2."""

    exit_code = 2

    def __init__(self, where: str, found: str, wanted: str, next_step: str) -> None:
        self.where, self.found, self.wanted, self.next_step = where, found, wanted, next_step
        super().__init__(f"{where}: found {found}; wanted {wanted}.\nNext: {next_step}")


class InputError(SentloomError):
    """A value given to a function or a command is not one it can take."""


class ModelError(SentloomError):
    """A model folder or name cannot be loaded, or a model cannot be written in the asked form."""


class MissingPart(SentloomError):
    """An optional package, an embedded part or a data set is not there; the message says what to install."""


class TrainingStopped(SentloomError):
    """A run that cannot go on, such as one whose loss is no number; its last good checkpoint is untouched."""


@dataclass(frozen=True)
class Problem:
    """One fault in a file. `place` is what stands after the file's name: "line 17", "row 3" or ""."""

    file: str
    place: str
    found: str
    wanted: str

    def __str__(self) -> str:
        spot = f"{self.file}, {self.place}" if self.place else self.file
        return f"{spot}: found {self.found}; wanted {self.wanted}"


class DataError(SentloomError):
    """Faults in data files: all of them counted, the first ten shown."""

    def __init__(self, problems: Sequence[Problem], total: int, next_step: str) -> None:
        self.problems, self.total = list(problems[:SHOWN_PROBLEMS]), total
        first = self.problems[0]
        super().__init__(
            f"{first.file}, {first.place}" if first.place else first.file, first.found, first.wanted, next_step
        )

    def __str__(self) -> str:
        lines = [str(problem) for problem in self.problems]
        if self.total > len(lines):
            lines.append(f"... and {self.total - len(lines)} more problems, {self.total} in all")
        return "\n".join([*lines, f"Next: {self.next_step}"])


class RecipeError(SentloomError):
    """Faults in a recipe or in what is laid over it: all of them shown."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = list(problems)
        first = self.problems[0]
        super().__init__(
            f"{first.file}, {first.place}" if first.place else first.file, first.found, first.wanted, "correct them all"
        )

    def __str__(self) -> str:
        return "\n".join([*map(str, self.problems), f"Next: {self.next_step}"])
