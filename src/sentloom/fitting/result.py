"""The result of a fit, as plain numbers and words: everything that the report and the model card show.

Scores, differences and their intervals are times 100. A missing number is None; a part that does not apply is an empty
tuple or None, and the report leaves it out.
"""

import json
import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path

from sentloom.classify.proving import Proof as ClassifierProof
from sentloom.classify.proving import Unknown
from sentloom.errors import InputError
from sentloom.files import new_file
from sentloom.fitting.advice import Advice
from sentloom.fitting.measures import Difference, Measure, Part, Power, Verdict, verdict_line
from sentloom.terminal import json_text

SCHEMA = 4  # of report.json (docs/report.md); raised when a field changes its meaning or goes
Near = tuple[float, str]  # cosine, text


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
class Addition:
    """What a part of a search adds to those before it, on the test rows."""

    weight: float  # that it has in the search: 0 unless it was shown to be better with it
    chosen: float  # that was best on the validation rows
    measures: tuple[Measure, ...] = ()  # without and with the part; empty if the validation rows chose 0
    total: Measure | None = None
    uses: int = 0  # of the test rows
    gain: float | None = None  # of `total`
    interval: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        """Report readers find gain and interval without knowing what a measure is."""
        if self.total:
            object.__setattr__(self, "gain", self.total.difference)
            object.__setattr__(self, "interval", (self.total.low, self.total.high))


@dataclass(frozen=True)
class SystemResult:
    """The search that was proven: by vectors, and by what was shown to add to them."""

    stemming: str  # of the words
    fusion: Addition  # words
    reranking: Addition | None = None
    reranker: str | None = None  # that was tried
    depth: int = 0  # results that it reads
    of_base: bool = False  # whether the vectors are those of the untouched base

    @property
    def shown(self) -> Addition | None:
        """The first part that was shown to add something."""
        parts = [part for part in (self.fusion, self.reranking) if part and part.weight]
        return parts[0] if parts else None


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
class Mistake:
    """A text that the classifier was sure about, and wrong."""

    text: str
    label: str
    given: str
    probability: float


@dataclass(frozen=True)
class Suspect:
    """A row whose label is probably wrong."""

    place: str
    text: str
    label: str
    likelier: str
    probability: float  # of the likelier label


@dataclass(frozen=True)
class ClassifierSummary:
    """The classifier of one label column: how it was chosen, and what it does on rows that it has not learned from."""

    name: str  # of the input
    column: str
    head: str  # in words
    labels: tuple[str, ...]
    several: bool  # for one text
    fitted: bool  # whether it has the vectors of the fitted encoder, or those of the base
    proven_on: str  # which rows, in words
    rows: int  # that it has learned from in the end
    probability: float  # below which it abstains
    cosine: float  # with the nearest row, below which it abstains
    proof: ClassifierProof
    unknown: Unknown | None  # None: there are too few labels to hold some of them out
    # The difference of classifiers on the fitted encoder from those on the base, the mean of all label columns:
    gain: float = 0.0
    gain_low: float = 0.0
    gain_high: float = 0.0
    mistakes: tuple[Mistake, ...] = ()
    suspects: tuple[Suspect, ...] = ()
    suspect_share: float = 0.0


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
    system: SystemResult | None = None  # None: nothing is searched, no labels decide, or there was no time
    won: tuple[Example, ...] = ()  # the largest gains first
    lost: tuple[Example, ...] = ()  # the largest losses first
    merging: Merging | None = None  # None: nothing was merged
    changes: tuple[str, ...] = ()  # what was shortened or dropped because the time ran out
    stability: Stability | None = None  # None: labels decided, or the model is not used
    label_free: bool = False  # whether no labels of rows or sets were there to decide
    classifiers: tuple[ClassifierSummary, ...] = ()  # one for each label column
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
    def of_base(self) -> bool:
        """Whether the model that is written has the base as its encoder: with words, or with a classifier."""
        by_system = self.system is not None and self.system.of_base
        return by_system or any(not classifier.fitted for classifier in self.classifiers)

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


def chosen_on(folds: int) -> str:
    """The rows that runs are chosen on."""
    return f"{folds} folds of the training rows" if folds else "the validation rows"


def _rank(runs: Mapping[int, Run]) -> tuple[bool, int, float]:
    last = runs[max(runs)]
    return last.is_best, last.rung, -math.inf if last.score is None else last.score
