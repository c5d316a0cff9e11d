"""What happened in a fit, as plain numbers and words: all that the report and the model card are made of.

Scores, differences and their intervals are times 100. What there is no number of is None, and what there is none of
is an empty tuple or None: the report leaves that part out.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Literal

from sentloom.errors import InputError
from sentloom.files import new_file

Part = Literal["deciding", "general", "watched"]
Verdict = Literal["written", "refused", "forced"]


@dataclass(frozen=True)
class Measure:
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

    @property
    def better(self) -> bool:
        """Whether the whole interval of the difference is above 0."""
        return self.low > 0

    @property
    def worse(self) -> bool:
        """Whether the whole interval of the difference is below 0."""
        return self.high < 0


@dataclass(frozen=True)
class Stability:
    """How many of their nearest neighbours held-out texts share under two seeds of the winner's route, in percent."""

    share: float
    low: float  # of the 95% interval
    high: float
    texts: int
    neighbours: int  # of each text


@dataclass(frozen=True)
class Run:
    """One route at one rung, with its score on the rows that choose and its difference to the base there."""

    route: str
    rung: int  # from 1
    steps: int
    seconds: float
    score: float | None  # None: it failed
    difference: float | None
    low: float | None
    high: float | None
    verdict: str  # "goes on" | "dropped" | "ended" | "won" | "best, refused" | "best, forced" | "failed: ..."
    stages: tuple[str, ...] = ()  # "method on data, N steps"

    @property
    def is_best(self) -> bool:
        """Whether it is the run that went before the gate."""
        return self.verdict == "won" or self.verdict.startswith("best")


@dataclass(frozen=True)
class RouteSummary:
    """A way that the data permit or do not; `why` says why it was or was not tried."""

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
    """A route's way through alignment and uniformity: the base, after each rung, the end."""

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


@dataclass(frozen=True)
class Neighbours:
    """The nearest texts of a sentence, nearest first: (cosine, text)."""

    sentence: str
    before: tuple[tuple[float, str], ...]
    after: tuple[tuple[float, str], ...]


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
    """All of one fit."""

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

    def write(self, path: Path) -> None:
        """As JSON; the same story gives the same bytes."""
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
            raise InputError(str(path), found, "the story of a fit", "run `sentloom fit` again") from None
