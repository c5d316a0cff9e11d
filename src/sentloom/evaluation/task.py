"""Tasks: the sentences they need, and how vectors become scores."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt

from sentloom.encoder.tokens import Role
from sentloom.evaluation.metrics import METRICS, Numbers
from sentloom.search.vectors import Vectors

if TYPE_CHECKING:
    from sentloom.evaluation.retrieval import SearchSet
    from sentloom.evaluation.set_source import Rows

CLUSTER = "cluster"  # the column of a set that has the cluster of each row
NOT_COMPARABLE = "not comparable with"  # in a note about a set: its scores are not those that papers print
UNLIKE = "†"  # follows such a score in every table, and precedes the note


def signed_note(note: str) -> str:
    """A note as it is shown below a table, with the sign of the scores that it is about."""
    return f"{UNLIKE if NOT_COMPARABLE in note else 'note:'} {note}"


class Lookup(Protocol):
    """Returns the vectors (n, d) of the sentences that a task requested, in the requested role."""

    def __call__(self, texts: Sequence[str], role: Role = "symmetric") -> Vectors:
        """Return one row per text, in order."""


@dataclass(frozen=True)
class Score:
    """A metric and the items it is computed from, so that it can be recomputed without some of them.

    With `groups`, the metric is computed within each group and averaged over groups, unweighted or weighted by items.
    Items of one cluster are not independent of each other (they share a text, say), and intervals take that into
    account. An equal number means the same cluster in all scores that are compared or averaged; without `clusters`,
    every item is a cluster of its own.
    """

    metric: str  # a key of METRICS
    items: Numbers  # (n, c): one row per item; the metric defines the columns
    groups: npt.NDArray[np.int64] | None = None  # (n,)
    weighted: bool = False
    clusters: npt.NDArray[np.int64] | None = None  # (n,)

    @property
    def value(self) -> float:
        """The metric on all items, times 100."""
        metric = METRICS[self.metric]
        if self.groups is None:
            return 100 * metric(self.items)
        names, sizes = np.unique(self.groups, return_counts=True)
        values = [metric(self.items[self.groups == name]) for name in names]
        return 100 * float(np.average(values, weights=sizes if self.weighted else None))


Scores = Mapping[str, Score]


class Kind(StrEnum):
    """What the items of a task ask."""

    SEARCH = "search"  # which documents answer a query
    TRIPLETS = "triplets"  # whether the positive is nearer than the negatives
    TRANSLATION = "translation"  # which sentence says the same in the other language
    CORRELATION = "correlation"  # how similar two sentences are
    DETECTION = "detection"  # whether two sentences belong together
    RANKING = "ranking"  # which candidates of a question are right
    CLASSIFICATION = "classification"  # which label a text has, by a probe of the rows themselves
    NEIGHBOURS = "neighbours"  # which label a text has, by its nearest known row
    PROBE = "probe"  # which label a text has, by a probe of known rows
    FINDING = "finding"  # which text a view of it is from
    AGREEMENT = "agreement"  # which texts a teacher finds near a text
    GEOMETRY = "geometry"  # how vectors are spread


@dataclass(frozen=True)
class TaskSettings:
    """Which protocol a task follows, and what scores depend on besides its content."""

    task: Kind | None = None  # None: one that only a suite knows
    k: int | None = None  # documents that the main score looks at
    items: int | None = None  # that it asks, where `Task.items` does not show them
    documents: int | None = None  # that are searched
    of_documents: int | None = None  # that there are; more than are searched if these are a sample
    probe: Mapping[str, Any] = field(default_factory=dict)  # the options of a probe, which is trained for every score
    trained: int | None = None  # rows that a probe learns from
    labels: int | None = None  # that it tells apart
    negatives: str = ""  # the hash of rows with negatives of their own, which are scored as well
    seed: int | None = None
    others: Mapping[str, Any] = field(default_factory=dict)  # of a suite: recorded, and never read

    def recorded(self) -> dict[str, Any]:
        """What is set, for cache keys and results."""
        own = {item.name: getattr(self, item.name) for item in fields(self) if item.name != "others"}
        return {**{name: value for name, value in own.items() if value not in (None, "", {})}, **self.others}


@dataclass(frozen=True)
class Task:
    """One set under one protocol. Besides the vectors, scores depend only on `settings` and `sha256`."""

    name: str
    main: str  # the score that tables show
    texts: Mapping[Role, Sequence[str]]
    score: Callable[..., Scores]  # of a Lookup; with a `seed`, of the model itself and the seed
    source: str = ""
    sha256: str = ""  # of the content, independent of the file format
    settings: TaskSettings = field(default_factory=TaskSettings)
    notes: tuple[str, ...] = ()
    items: tuple[tuple[str, str], ...] = ()  # what each item asks and what is expected, if examples can be shown
    searched: "SearchSet | None" = None  # of a search task
    known: "Rows | None" = None  # labelled rows among which neighbours are looked for
    seed: int | None = None  # of a task that fine-tunes a copy of the model

    @property
    def comparable(self) -> bool:
        """Whether scores on it may be put beside published ones."""
        return not any(NOT_COMPARABLE in note for note in self.notes)

    @property
    def item_count(self) -> int:
        """How many items it asks, as far as that is known before it is scored."""
        if self.settings.task is Kind.CORRELATION:
            return len(self.texts["symmetric"]) // 2  # pairs
        return len(self.items) if self.settings.items is None else self.settings.items

    def under(self, seed: int) -> "Task":
        """The same task, fine-tuned with another seed."""
        return replace(self, seed=seed, settings=replace(self.settings, seed=seed))


@dataclass(frozen=True)
class Average:
    """A named mean of main scores. A tuple of sets is averaged first and counts once."""

    label: str
    parts: tuple[str | tuple[str, ...], ...]


@dataclass(frozen=True)
class Suite:
    """Sets under one name. `load` builds the task of a set, or raises MissingPart if its data is not available."""

    name: str
    sets: tuple[str, ...]
    load: Callable[..., Task]  # (set name, SetSource) -> Task
    averages: tuple[Average, ...]
    parts: tuple[str, ...] = ()  # sets that can only be requested alone, such as a dev part
    measures: Mapping[str, Callable[..., Task]] = field(default_factory=dict)  # scores with tasks of their own
