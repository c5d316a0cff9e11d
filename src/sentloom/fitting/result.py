"""The result of a fit, as plain numbers and words: everything that the report and the model card show.

Scores, differences and their intervals are times 100. A missing number is None; a part that does not apply is an empty
tuple or None, and the report leaves it out.
"""

import json
import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Literal

from sentloom.errors import InputError
from sentloom.evaluation.significance import LEVEL, are_enough
from sentloom.files import new_file
from sentloom.terminal import json_text

SCHEMA = 4  # of report.json (docs/report.md); raised when a field changes its meaning or goes
Part = Literal["deciding", "general", "watched"]
Verdict = Literal["better", "no difference shown", "worse"]
NO_DIFFERENCE: Verdict = "no difference shown"
METRIC_NAMES = {
    "ndcg": "nDCG",
    "mrr": "MRR",
    "map": "MAP",
    "spearman": "Spearman",
    "mean": "mean score",
    "probe": "linear probe",
}
Near = tuple[float, str]  # cosine, text


class Difference:
    """A difference from the base with its interval."""

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
    def finding(self) -> Verdict:
        """What the interval shows."""
        return "better" if self.better else "worse" if self.worse else NO_DIFFERENCE


@dataclass(frozen=True)
class Measure(Difference):
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
    level: float = LEVEL  # of the interval of the difference; higher where test rows were used before
    clusters: int = 0  # of items that are not independent; intervals are over clusters
    effective: float = 0.0  # Kish's effective number of clusters: how many of equal size would say as much
    documents: int | None = None  # that queries search, for retrieval
    of_documents: int | None = None  # that there are; more than `documents` if these are a sample
    equivalent: bool = False  # whether the difference is shown to be less than EQUIVALENT points
    also: Mapping[str, tuple[float, float]] = field(default_factory=dict)  # other scores of the task: before, after

    @property
    def has_enough_clusters(self) -> bool:
        """Whether the interval can show anything."""
        return are_enough(self.effective)

    @property
    def finding(self) -> Verdict:
        """What the interval shows; nothing with fewer clusters than intervals hold for."""
        return super().finding if self.has_enough_clusters else NO_DIFFERENCE


class Limit(StrEnum):
    """Why test rows can show no gain."""

    CLUSTERS = "too few clusters"
    HIGHEST = "highest score"  # of the base, on every row
    CONSTANT = "constant scores"  # of the base, which say nothing about the spread of a gain
    LABELS = "no labels"  # so that only a worse model can be shown


@dataclass(frozen=True)
class Power:
    """What the test rows can show: the smallest gain that is found with this probability."""

    gain: float | None  # points; None: no gain can be shown, or nothing can be said, because of `limit`
    probability: float
    correlation: float  # assumed, of the base and a tuned model over clusters
    clusters: int
    level: float = LEVEL  # of the interval that the verdict will have
    effective: float = 0.0  # number of clusters
    limit: Limit | None = None


@dataclass(frozen=True)
class Threshold:
    """Nearest matches from this cosine up are accepted: chosen on validation rows, checked on test rows."""

    cosine: float
    asked: float  # the precision asked for
    precision: float  # on validation rows
    recall: float
    test_precision: float | None  # None: no test query is accepted
    test_recall: float
    queries: int  # that it was chosen on
    accepted: int = 0  # of these queries

    @property
    def reached(self) -> bool:
        """Whether the precision asked for is reached on the validation rows."""
        return self.precision >= self.asked


@dataclass(frozen=True)
class Example:
    """A test item that the fitted model does better or worse than the base."""

    task: str
    asked: str
    expected: str
    before: float  # the item's score, times 100
    after: float
    found_before: str = ""  # the nearest text, for retrieval; the nearest training row after its label
    found_after: str = ""

    @property
    def change(self) -> float:
        """By how much it changed."""
        return self.after - self.before


@dataclass(frozen=True)
class Stability:
    """How many nearest neighbours of held-out texts two seeds of the winning route have in common, in percent."""

    share: float
    low: float  # of the 95% interval
    high: float
    texts: int
    neighbours: int  # of each text


@dataclass(frozen=True)
class Agreement:
    """How often people said the same about the same queries, in percent with a 95% interval, and Cohen's kappa."""

    queries: int
    share: float
    low: float
    high: float
    kappa: float | None  # None if all answers are the same; the mean over pairs, for more than two people


@dataclass(frozen=True)
class Ticks:
    """What people said about the first results of base and fitted model (`sentloom tick`)."""

    people: int
    answered: int  # queries
    skipped: int
    used: int  # of those answered: the first 30, 60, 120 ..., which the verdict rests on; 0 if there are too few
    queries: int  # of the test rows, one per cluster
    different: int  # of these: both models return a different first result
    base: float  # percent of the different ones for which people prefer the base's result
    fitted: float
    agreement: Agreement | None = None  # None: one person


@dataclass(frozen=True)
class Run(Difference):
    """One route in one round, with its score on the validation rows and its difference from the base there."""

    route: str
    rung: int  # from 1
    steps: int = 0  # 0: merged
    seconds: float = 0.0
    score: float | None = None  # None: it failed
    difference: float | None = None
    low: float | None = None
    high: float | None = None
    verdict: str = (
        ""  # "advanced" | "dropped" | "finished" | "won" | "best, not written" | "best, forced" | "failed: ..."
    )
    stages: tuple[str, ...] = ()  # "method on data, N steps"

    @property
    def is_best(self) -> bool:
        """Whether its model was the one that the gate tested."""
        return self.verdict == "won" or self.verdict.startswith("best")


@dataclass(frozen=True)
class Merging:
    """The best merged model beside the best trained one: validation scores, and general ability."""

    route: str  # the name of the merged run
    chosen: bool  # whether it was preferred
    tuned: float
    merged: float
    general: str  # the name of the set
    general_before: float  # of the base
    general_tuned: float
    general_merged: float


@dataclass(frozen=True)
class RouteSummary:
    """A route that the data supports or does not; `why` says why it was or was not tried."""

    name: str
    why: str
    tried: bool


class AdviceKind(StrEnum):
    """What may help where the gate refused."""

    LABEL = "label"  # text without labels, which is no prose
    ADD_CLUSTERS = "add clusters"
    KEEP_BASE = "keep the base"  # training made it worse
    KEEP_BETTER_BASE = "keep the better base"
    SETTLE = "settle"  # validation and test rows disagree
    ADD_ROWS = "add rows"  # about `number` clusters would show the gain
    LITTLE_LEFT = "little left"
    IMPROVE_DATA = "improve the data"
    ADD_PAIRS = "add pairs"  # to raw text
    MORE_TIME = "more time"  # for the routes in `names`
    MORE_STEPS = "more steps"  # than `number`
    TICK = "tick"  # the fit in the folder `names`
    TRY_TO_TICK = "try to tick"  # there was no time to see whether there is enough to tick
    NOTHING_TO_TICK = "nothing to tick"  # the models differ for `number` `of` queries
    TICK_MORE = "tick more"  # up to `number` queries
    ALL_TICKED = "all ticked"
    PEOPLE_KEEP_BASE = "people keep the base"


@dataclass(frozen=True)
class Advice:
    """What may help; `report.advice` makes a sentence of it."""

    kind: AdviceKind
    number: int = 0
    of: int = 0
    names: tuple[str, ...] = ()


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
class NearestTexts:
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
class RowCounts:
    """What became of the rows of an input: `read` is the sum of all others."""

    read: int
    train: int
    validation: int  # 0 if runs are chosen on folds of the training rows
    test: int
    left_out: Mapping[str, int] = field(default_factory=dict)  # reason -> rows

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why rows are left out, in words."""
        return tuple(f"left out: {count:,} {why}" for why, count in self.left_out.items())

    def __str__(self) -> str:
        parts = [f"{self.train:,} train", f"{self.validation:,} validation", f"{self.test:,} test"]
        why = ", ".join(f"{count:,} {reason}" for reason, count in self.left_out.items())
        left_out = f"{sum(self.left_out.values()):,} left out" + (f" ({why})" if why else "")
        return f"{self.read:,} rows read: {', '.join(parts)}, {left_out}"


@dataclass(frozen=True)
class InputSummary:
    """One input and what became of its rows."""

    name: str
    shape: str
    rows: RowCounts
    distinct: int
    language: str | None  # of its first text column; None: not recognised, or mixed
    words: float  # the median of a text
    duplicates: int
    sha256: str
    notes: tuple[str, ...] = ()
    languages: Mapping[str, float] = field(default_factory=dict)  # shares of the texts; `und`: not recognised


@dataclass(frozen=True)
class BaseSummary:
    """An encoder that routes started from, untouched."""

    name: str
    parameters: int
    dimension: int
    score: float  # on the validation rows
    compared: bool  # whether it is the one that the winner had to beat
    prompts: bool = False  # whether queries and documents have prompts of their own
    adapters: bool = False  # whether adapters (LoRA) were trained instead of all weights
    languages: tuple[str, ...] = ()  # codes of those that it was made for; empty: unknown
    made_for: str = ""  # the same in words, or how its vocabulary fits
    latency: float | None = None  # milliseconds for a query, if the base was chosen among those on the machine


@dataclass(frozen=True)
class FitResult:
    """Everything about one fit."""

    title: str
    verdict: Verdict
    reason: str  # one or two plain sentences
    base: str  # the one that the winner had to beat
    model: str | None  # its path; None if it was not written
    created: str  # ISO date
    command: str
    schema: int = SCHEMA
    forced: bool = False  # whether the model was written although it is not shown to be better
    started_from: str = ""  # the base of the model that the gate tested
    bases: tuple[BaseSummary, ...] = ()
    max_latency: int | None = None  # milliseconds that a query may take, if the base was chosen
    tested: str = ""  # the folder of the model that the gate tested, inside MODEL.fit
    against: tuple[str, ...] = ()  # sets that decided, in place of held-out rows
    sources: tuple[InputSummary, ...] = ()
    routes: tuple[RouteSummary, ...] = ()
    runs: tuple[Run, ...] = ()
    measures: tuple[Measure, ...] = ()
    total: Measure | None = None  # the mean of the deciding measures, or the single one
    by_language: tuple[Measure, ...] = ()  # on the test rows, where a file has several languages
    by_dimension: tuple[Measure, ...] = ()  # with shorter vectors; the name is the number of dimensions
    power: Power | None = None
    uses: int = 1  # which use of these test rows this is
    test_sha256: str = ""  # of what the test rows ask
    believe: str = ""  # whether validation and test rows agree, and which to believe
    folds: int = 0  # of the training rows that runs were chosen on; 0: on validation rows
    cluster_notes: tuple[str, ...] = ()  # rows that could not be clustered by everything that connects them
    threshold: Threshold | None = None
    won: tuple[Example, ...] = ()  # the largest gains first
    lost: tuple[Example, ...] = ()  # the largest losses first
    merging: Merging | None = None  # None: nothing was merged
    changes: tuple[str, ...] = ()  # what was shortened or dropped because the time ran out
    stability: Stability | None = None  # None: labels decided, or the model is not used
    label_free: bool = False  # whether no labels of rows or sets were there to decide
    ticks: Ticks | None = None  # what people ticked, where that was given (`--labels`)
    advice: tuple[Advice, ...] = ()  # what may help, where the gate refused
    curves: tuple[Curve, ...] = ()
    trails: tuple[Trail, ...] = ()
    histogram: Histogram | None = None
    neighbours: tuple[NearestTexts, ...] = ()
    warnings: tuple[str, ...] = ()
    recipe: str = ""  # YAML of the winner, nothing left to defaults
    budget: str = ""  # in words
    versions: Mapping[str, str] = field(default_factory=dict)
    hashes: Mapping[str, str] = field(default_factory=dict)
    cost: Mapping[str, float | str] = field(default_factory=dict)  # seconds, or words

    @property
    def decided_without_labels(self) -> bool:
        """Whether the verdict rests on label-free scores: neither labels nor people decided."""
        return self.label_free and not (self.ticks and self.ticks.used)

    @property
    def parts(self) -> dict[Part, list[Measure]]:
        """Measures by what they are for; the mean follows the deciding measures."""
        shown = [*self.measures, *([self.mean] if self.mean else [])]
        names: tuple[Part, ...] = ("deciding", "general", "watched")
        by_part = {part: [measure for measure in shown if measure.part == part] for part in names}
        return {part: ones for part, ones in by_part.items() if ones}

    @property
    def mean(self) -> Measure | None:
        """The total, unless it is the single deciding measure itself."""
        return None if sum(measure.part == "deciding" for measure in self.measures) == 1 else self.total

    @property
    def validation(self) -> Run | None:
        """The run that the gate tested, with its gain on the validation rows."""
        return next((run for run in self.runs if run.is_best), None)

    @property
    def chosen_on(self) -> str:
        """The rows that runs were chosen on, in words."""
        return chosen_on(self.folds)

    @property
    def verdict_line(self) -> str:
        """The verdict as one line that is easy to search for."""
        return verdict_line(self.verdict, self.total, self.uses) if self.total else f"VERDICT {self.verdict}"

    @property
    def winner(self) -> str | None:
        """The route of the best run, or else of the last run."""
        won = [run.route for run in self.runs if run.is_best] or [run.route for run in self.runs]
        return won[-1] if won else None

    @property
    def ladder(self) -> dict[str, dict[int, Run]]:
        """ladder[route][round]: the winner first, then routes by how far they came, then by score."""
        by_route: dict[str, dict[int, Run]] = {}
        for run in self.runs:
            by_route.setdefault(run.route, {})[run.rung] = run
        return dict(sorted(by_route.items(), key=lambda item: _rank(item[1]), reverse=True))

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
            part.write_text(json_text(asdict(self)), "utf-8", "replace")

    @classmethod
    def read(cls, path: Path) -> "FitResult":
        """What `write` wrote."""
        from pydantic import TypeAdapter, ValidationError

        refuse_other_version(path)
        try:
            result = TypeAdapter(cls).validate_json(path.read_bytes())
        except (OSError, ValidationError) as error:
            problem = str(error).splitlines()[0]
            raise InputError(str(path), problem, "the result of a fit", "run `sentloom fit` again") from None
        return result


def refuse_other_version(path: Path) -> None:
    """Refuse a result in another version of the format."""
    with suppress(OSError, ValueError, TypeError, KeyError):  # which is refused for other reasons
        version = int(json.loads(path.read_bytes())["schema"])
        if version != SCHEMA:
            other, fix = (
                ("a newer", "update sentloom") if version > SCHEMA else ("an older", "run `sentloom fit` again")
            )
            problem = f"it has version {version} of the format, from {other} sentloom"
            raise InputError(str(path), problem, f"version {SCHEMA}", fix)


def verdict_line(verdict: Verdict, measure: Measure, uses: int) -> str:
    """As in "VERDICT better +4.0 nDCG@10 [1.6, 6.5] level=95% clusters=98 effective=91.4 documents=1456 uses=1"."""
    low, high = (_one_decimal(bound) for bound in (measure.low, measure.high))
    gain = f"{measure.difference:+.1f} {metric_name(measure.metric)} [{low}, {high}]"
    counts = f"clusters={measure.clusters} effective={rounded_down(measure.effective)}"
    searched = f" documents={measure.documents}" if measure.documents else ""
    return f"VERDICT {verdict} {gain} level={100 * measure.level:.4g}% {counts}{searched} uses={uses}"


def _one_decimal(bound: float) -> str:
    """With one decimal, or with more if it would look like 0: the side of 0 that a bound is on decides the verdict."""
    return f"{bound:.1f}" if abs(bound) >= 0.05 or not bound else f"{bound:.1g}"


def rounded_down(effective: float) -> str:
    """An effective number of clusters with one decimal at most; 19.98 is not 20, from which differences are claimed."""
    return f"{math.floor(10 * effective) / 10:g}"


def chosen_on(folds: int) -> str:
    """The rows that runs are chosen on."""
    return f"{folds} folds of the training rows" if folds else "the validation rows"


def metric_name(metric: str) -> str:
    """The name of a metric as people write it."""
    return METRIC_NAMES.get(metric.partition("@")[0], metric.partition("@")[0]) + "".join(metric.partition("@")[1:])


def _rank(runs: Mapping[int, Run]) -> tuple[bool, int, float]:
    last = runs[max(runs)]
    return last.is_best, last.rung, -math.inf if last.score is None else last.score
