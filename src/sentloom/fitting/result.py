"""The result of a fit, as plain numbers and words: everything that the report and the model card show.

Scores, differences and their intervals are times 100. A missing number is None; a part that does not apply is an empty
tuple or None, and the report leaves it out.
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Literal

from sentloom.errors import InputError
from sentloom.files import new_file

Part = Literal["deciding", "general", "watched"]
Verdict = Literal["written", "refused", "forced"]
Finding = Literal["better", "worse", "unsure"]
Near = tuple[float, str]  # cosine, text


class Compared:
    """A difference to the base with its 95% interval."""

    low: float | None
    high: float | None

    @property
    def better(self) -> bool:
        """Whether the whole interval of the difference is above 0."""
        return self.low is not None and self.low > 0

    @property
    def worse(self) -> bool:
        """Whether the whole interval of the difference is below 0."""
        return self.high is not None and self.high < 0

    @property
    def finding(self) -> Finding:
        """What the interval shows."""
        return "better" if self.better else "worse" if self.worse else "unsure"


@dataclass(frozen=True)
class Measure(Compared):
    """One score of the base (before) and of the winner (after), and their paired difference."""

    name: str
    label: str  # plain words: "a sentence's half finds the other among 812"
    part: Part
    metric: str
    items: int
    before: float
    before_low: float
    before_high: float
    after: float
    after_low: float
    after_high: float
    difference: float
    low: float
    high: float
    p: float


@dataclass(frozen=True)
class Stability:
    """How many nearest neighbours of held-out texts two seeds of the winning route have in common, in percent."""

    share: float
    low: float  # of the 95% interval
    high: float
    texts: int
    neighbours: int  # of each text


@dataclass(frozen=True)
class Run(Compared):
    """One route in one round, with its score on the validation rows and its difference to the base there."""

    route: str
    rung: int  # from 1
    steps: int
    seconds: float
    score: float | None  # None: it failed
    difference: float | None
    low: float | None
    high: float | None
    verdict: str  # "advanced" | "dropped" | "finished" | "won" | "best, refused" | "best, forced" | "failed: ..."
    stages: tuple[str, ...] = ()  # "method on data, N steps"

    @property
    def is_best(self) -> bool:
        """Whether its model was the one that the gate tested."""
        return self.verdict == "won" or self.verdict.startswith("best")


@dataclass(frozen=True)
class RouteSummary:
    """A route that the data supports or does not; `why` says why it was or was not tried."""

    name: str
    why: str
    tried: bool


@dataclass(frozen=True)
class Curve:
    """The training loss of one stage of a run."""

    route: str
    stage: str
    steps: tuple[int, ...]
    loss: tuple[float, ...]


@dataclass(frozen=True)
class Trail:
    """Alignment and uniformity of a route: at the base and after each round."""

    route: str
    points: tuple[tuple[str, float, float], ...]  # (label, alignment, uniformity)


@dataclass(frozen=True)
class Histogram:
    """How many related and unrelated pairs have a cosine between edges[i] and edges[i + 1]."""

    edges: tuple[float, ...]
    related_before: tuple[int, ...]
    unrelated_before: tuple[int, ...]
    related_after: tuple[int, ...]
    unrelated_after: tuple[int, ...]

    @property
    def before(self) -> "Shares":
        """Of the base."""
        return Shares(_percent(self.related_before), _percent(self.unrelated_before))

    @property
    def after(self) -> "Shares":
        """Of the fitted model."""
        return Shares(_percent(self.related_after), _percent(self.unrelated_after))

    def __bool__(self) -> bool:
        return any((*self.related_before, *self.related_after))


@dataclass(frozen=True)
class Shares:
    """A histogram of one model, in percent of the related and of the unrelated pairs."""

    related: tuple[float, ...]
    unrelated: tuple[float, ...]

    @property
    def overlap(self) -> float:
        """The percentage that lies under both."""
        return sum(map(min, self.related, self.unrelated))


def _percent(counts: Sequence[int]) -> tuple[float, ...]:
    return tuple(100 * count / max(1, sum(counts)) for count in counts)


@dataclass(frozen=True)
class Neighbours:
    """The nearest texts of a sentence, nearest first."""

    sentence: str
    before: tuple[Near, ...]
    after: tuple[Near, ...]

    @property
    def gone(self) -> set[str]:
        """Texts that left the list."""
        return {text for _, text in self.before} - {text for _, text in self.after}

    @property
    def new(self) -> set[str]:
        """Texts that entered the list."""
        return {text for _, text in self.after} - {text for _, text in self.before}


@dataclass(frozen=True)
class InputSummary:
    """One input and what became of its rows."""

    name: str
    shape: str
    rows: int
    distinct: int
    language: str | None  # of its first text column; None: not recognised, or mixed
    words: float  # the median of a text
    duplicates: int
    held_out: int
    trained: int
    sha256: str
    notes: tuple[str, ...] = ()
    languages: Mapping[str, float] = field(default_factory=dict)  # shares of the texts; `und`: not recognised


@dataclass(frozen=True)
class FitResult:
    """Everything about one fit."""

    title: str
    verdict: Verdict
    reason: str  # one or two plain sentences
    base: str
    model: str | None  # its path; None when the gate refused it
    created: str  # ISO date
    command: str
    against: tuple[str, ...] = ()  # sets that decided, in place of held-out rows
    sources: tuple[InputSummary, ...] = ()
    routes: tuple[RouteSummary, ...] = ()
    runs: tuple[Run, ...] = ()
    measures: tuple[Measure, ...] = ()
    total: Measure | None = None  # the mean of the deciding measures, or the single one
    stability: Stability | None = None  # None: labels decided, or the model is not used
    advice: tuple[str, ...] = ()  # what may help, where the gate refused
    curves: tuple[Curve, ...] = ()
    trails: tuple[Trail, ...] = ()
    histogram: Histogram | None = None
    neighbours: tuple[Neighbours, ...] = ()
    warnings: tuple[str, ...] = ()
    recipe: str = ""  # YAML of the winner, nothing left to defaults
    budget: str = ""  # in words
    versions: Mapping[str, str] = field(default_factory=dict)
    hashes: Mapping[str, str] = field(default_factory=dict)
    cost: Mapping[str, float | str] = field(default_factory=dict)  # seconds, or words

    @property
    def parts(self) -> dict[Part, list[Measure]]:
        """Measures by what they are for; the mean follows the deciding measures."""
        shown = [*self.measures, *([self.mean] if self.mean else [])]
        names: tuple[Part, ...] = ("deciding", "general", "watched")
        found = {part: [one for one in shown if one.part == part] for part in names}
        return {part: ones for part, ones in found.items() if ones}

    @property
    def mean(self) -> Measure | None:
        """The total, unless it is the single deciding measure itself."""
        return None if sum(one.part == "deciding" for one in self.measures) == 1 else self.total

    @property
    def winner(self) -> str | None:
        """The route of the best run, or else of the last run."""
        won = [run.route for run in self.runs if run.is_best] or [run.route for run in self.runs]
        return won[-1] if won else None

    @property
    def ladder(self) -> dict[str, dict[int, Run]]:
        """ladder[route][round]: the winner first, then routes by how far they came, then by score."""
        found: dict[str, dict[int, Run]] = {}
        for run in self.runs:
            found.setdefault(run.route, {})[run.rung] = run
        return dict(sorted(found.items(), key=lambda item: _rank(item[1]), reverse=True))

    @property
    def rounds(self) -> dict[int, list[int]]:
        """The different numbers of steps in each round."""
        numbers = sorted({run.rung for run in self.runs})
        return {number: sorted({run.steps for run in self.runs if run.rung == number}) for number in numbers}

    @property
    def skipped(self) -> list[RouteSummary]:
        """Routes that were not tried."""
        return [route for route in self.routes if not route.tried]

    def write(self, path: Path) -> None:
        """As JSON; the same result gives the same bytes."""
        with new_file(path) as part:
            part.write_text(json.dumps(asdict(self), indent=1, ensure_ascii=False) + "\n", "utf-8", "replace")

    @classmethod
    def read(cls, path: Path) -> "FitResult":
        """What `write` wrote."""
        from pydantic import TypeAdapter, ValidationError

        try:
            return TypeAdapter(cls).validate_json(path.read_bytes())
        except (OSError, ValidationError) as error:
            found = str(error).splitlines()[0]
            raise InputError(str(path), found, "the result of a fit", "run `sentloom fit` again") from None


def _rank(runs: Mapping[int, Run]) -> tuple[bool, int, float]:
    last = runs[max(runs)]
    return last.is_best, last.rung, -math.inf if last.score is None else last.score
