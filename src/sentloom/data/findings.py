"""What reading a file finds: problems with their places, counted by kind; repairs; skipped lines."""

import bisect
import math
import shlex
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import NoReturn

from sentloom.data.dataset import Irregular
from sentloom.data.documents.folder import Unread
from sentloom.data.limits import STRICT, Allowance
from sentloom.errors import SHOWN_PROBLEMS, DataError, Problem, option

MOST_KINDS = 50
OTHER = "other problems"
SHOWN_PLACES = 5
RIGHT_FILE = "check that this is the right file and that its extension matches its content"
CORRECT = "correct the file and read it again"
EMPTY = "there are no rows"
NO_ROWS = "check that this is the right data, and that it was exported or selected completely"


@dataclass
class _Kind:
    count: int = 0
    places: list[str] = field(default_factory=list)  # the first with its file, the others as a number only
    cause: str = ""
    file: str = ""

    def add(self, file: str, place_name: str, place: int, cause: str = "") -> None:
        self.count += 1
        self.cause = self.cause or cause
        if place and len(self.places) < SHOWN_PLACES:
            self.places.append(str(place) if file == self.file else f"{file}, {place_name} {place}")
            self.file = file


class Findings:
    """Counts all problems and keeps the first ten. The allowance says how many rows may be unusable.

    `cleaned` is what the suggested `sentloom check` gets: the file, and options that it was read with; empty for rows
    in memory, which no command can clean.
    """

    def __init__(self, allowance: Allowance = STRICT, cleaned: Sequence[str] = ("FILE",)) -> None:
        self.allowance, self.total = allowance, 0
        self.repeated = 0  # further problems of rows that already had one
        self.skipped: Counter[str] = Counter()
        self.notes: list[str] = []
        self.unread: list[Unread] = []  # files of a folder
        self._cleaned = cleaned
        self._kinds: dict[str, _Kind] = {}
        self._repairs: dict[str, _Kind] = {}
        self._first: list[tuple[int, int, int, Problem]] = []
        self._files: list[str] = []
        self._place_name = "line"

    @property
    def lost(self) -> int:
        """How many rows are unusable."""
        return self.total - self.repeated

    @property
    def strict(self) -> bool:
        """Whether one problem is enough to refuse the data."""
        return not (self.allowance.share or self.allowance.rows)

    def begin(self, file: str, place_name: str) -> None:
        """Attribute the following problems to this file."""
        self._files.append(file)
        self._place_name = place_name

    @contextmanager
    def within(self, file: str) -> Iterator[None]:
        """Attribute problems to one of several files that are read in parallel."""
        together, self._files[-1] = self._files[-1], file
        try:
            yield
        finally:
            self._files[-1] = together

    def problem(self, place: int, problem: str, expected: str, kind: str = "", cause: str = "") -> None:
        """Record a problem at a line or row counted from 1; 0 means the file as a whole.

        `kind` is the plural under which it is counted, and `cause` the most likely reason.
        """
        self.total += 1
        located = Problem(self._files[-1], f"{self._place_name} {place}" if place else "", problem, expected)
        bisect.insort(self._first, (len(self._files), place, self.total, located))
        del self._first[SHOWN_PROBLEMS:]
        self._kind(self._kinds, kind or problem).add(self._files[-1], self._place_name, place, cause)

    def repaired(self, place: int, kind: str) -> None:
        """Record a place that was repaired."""
        self._kind(self._repairs, kind).add(self._files[-1], self._place_name, place)

    def stop(self, place: int, problem: str, expected: str, fix: str = CORRECT) -> NoReturn:
        """Record a problem after which nothing can be read, and raise the error."""
        self.problem(place, problem, expected)
        raise self.error(fix)

    def judge(self, rows: int) -> None:
        """Raise an error if too many rows are unusable; `rows` is the number of usable ones."""
        whole = rows + self.lost
        if self.lost > self.allowance.most(whole):
            raise self.error("" if self.strict else self._too_many(whole))

    def error(self, fix: str = "") -> DataError:
        """Return one error for all problems; the default fix is to clean the data, if there is any."""
        fix = NO_ROWS if [*self._kinds] == [EMPTY] else fix or self._clean()
        kinds = sorted(self._kinds.items(), key=lambda item: -item[1].count)
        summary = [f"{kind.count:,} {what}" for what, kind in kinds]
        cause = kinds[0][1].cause if kinds else ""
        problems = [problem for *_, problem in self._first]
        return DataError(problems, self.total, fix, summary, cause)

    def irregular(self) -> tuple[Irregular, ...]:
        """Return what was left out and what was repaired."""
        return tuple(
            Irregular(what, kind.count, tuple(kind.places), repaired)
            for kinds, repaired in ((self._repairs, True), (self._kinds, False))
            for what, kind in kinds.items()
        )

    def _clean(self) -> str:
        if self.allowance.repair:
            return RIGHT_FILE
        if not self._cleaned:
            return "correct or drop these rows"
        return f"correct the rows, or repair or drop them with `sentloom check {shlex.join(self._cleaned)} -o FIXED`"

    def _too_many(self, whole: int) -> str:
        share = f"{self.allowance.share:.0%}"
        unusable = f"{self.lost:,} of {whole:,} rows are unusable, more than {share}"
        if self.allowance.repair:
            return f"{unusable}: {RIGHT_FILE}"
        enough = f"{math.ceil(100 * self.lost / whole)}%"
        return f"{unusable}: {self._clean()}, or leave them out with {option('max_unusable', enough)}"

    @staticmethod
    def _kind(kinds: dict[str, _Kind], what: str) -> _Kind:
        return kinds.setdefault(what if what in kinds or len(kinds) < MOST_KINDS else OTHER, _Kind())
