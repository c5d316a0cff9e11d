"""What a reading comes upon: problems with their places, counted by kind; repairs; what was skipped."""

import bisect
import shlex
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import NoReturn

from sentloom.data.dataset import Irregular
from sentloom.data.limits import STRICT, Allowance
from sentloom.errors import SHOWN_PROBLEMS, DataError, Problem

MOST_KINDS = 50
OTHER = "other problems"
SHOWN_PLACES = 5
RIGHT_FILE = "check that this is the right file and that its ending says what it holds"
CORRECT = "correct the file and read it again"


@dataclass
class _Kind:
    count: int = 0
    places: list[str] = field(default_factory=list)  # the first with its file, the others by number
    cause: str = ""
    file: str = ""

    def add(self, file: str, place_name: str, place: int, cause: str = "") -> None:
        self.count += 1
        self.cause = self.cause or cause
        if place and len(self.places) < SHOWN_PLACES:
            self.places.append(str(place) if file == self.file else f"{file}, {place_name} {place}")
            self.file = file


class Findings:
    """All problems counted, the first ten in file order kept whole. How many are tolerated is the allowance's say."""

    def __init__(self, allowance: Allowance = STRICT, name: str = "FILE") -> None:
        self.allowance, self.total = allowance, 0
        self.repeated = 0  # problems of rows that had one before
        self.skipped: Counter[str] = Counter()
        self.notes: list[str] = []
        self._name = name
        self._kinds: dict[str, _Kind] = {}
        self._repairs: dict[str, _Kind] = {}
        self._first: list[tuple[int, int, int, Problem]] = []
        self._files: list[str] = []
        self._place_name = "line"

    @property
    def lost(self) -> int:
        """How many rows cannot be used."""
        return self.total - self.repeated

    @property
    def strict(self) -> bool:
        """Whether one problem is enough to refuse the data."""
        return self.allowance == STRICT

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

    def problem(self, place: int, found: str, wanted: str, kind: str = "", cause: str = "") -> None:
        """Note a problem at a line or row from 1; 0 stands for the file as a whole.

        `kind` is what it is counted as, in the plural, and `cause` what most often leads to it.
        """
        self.total += 1
        problem = Problem(self._files[-1], f"{self._place_name} {place}" if place else "", found, wanted)
        bisect.insort(self._first, (len(self._files), place, self.total, problem))
        del self._first[SHOWN_PROBLEMS:]
        self._kind(self._kinds, kind or found).add(self._files[-1], self._place_name, place, cause)

    def repaired(self, place: int, kind: str) -> None:
        """Note what was read in another way than it was written."""
        self._kind(self._repairs, kind).add(self._files[-1], self._place_name, place)

    def stop(self, place: int, found: str, wanted: str, fix: str = CORRECT) -> NoReturn:
        """Note a problem behind which nothing can be read."""
        self.problem(place, found, wanted)
        raise self.error(fix)

    def judge(self, rows: int) -> None:
        """Refuse the data if too many rows cannot be used; `rows` is how many can."""
        whole = rows + self.lost
        if self.lost > self.allowance.most(whole):
            raise self.error("" if self.strict else self._too_many(whole))

    def error(self, fix: str = "") -> DataError:
        """All of it as one error; by default the next step is to clean the data."""
        kinds = sorted(self._kinds.items(), key=lambda one: -one[1].count)
        summary = [f"{kind.count:,} {what}" for what, kind in kinds]
        cause = kinds[0][1].cause if kinds else ""
        problems = [problem for *_, problem in self._first]
        return DataError(problems, self.total, fix or self._clean(), summary, cause)

    def irregular(self) -> tuple[Irregular, ...]:
        """What was left out and what was repaired."""
        return tuple(
            Irregular(what, kind.count, tuple(kind.places), repaired)
            for kinds, repaired in ((self._repairs, True), (self._kinds, False))
            for what, kind in kinds.items()
        )

    def _clean(self) -> str:
        if self.allowance.repair:
            return RIGHT_FILE
        return f"correct them, or let `sentloom clean {shlex.quote(self._name)} -o FIXED` repair or drop such rows"

    def _too_many(self, whole: int) -> str:
        share = f"{self.allowance.share:.0%}"
        unusable = f"{self.lost:,} of {whole:,} rows cannot be used, more than {share}"
        if self.allowance.repair:
            return f"{unusable}: {RIGHT_FILE}"
        return f"{unusable}: {self._clean()}"

    @staticmethod
    def _kind(kinds: dict[str, _Kind], what: str) -> _Kind:
        return kinds.setdefault(what if what in kinds or len(kinds) < MOST_KINDS else OTHER, _Kind())
