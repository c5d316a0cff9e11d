"""A task: the sentences that it needs, and how their vectors become scores."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from sentloom.encoder.prompts import Role
from sentloom.evaluation.metrics import METRICS, Numbers
from sentloom.search.vectors import Vectors


class Lookup(Protocol):
    """The vectors (n, d) of sentences that a task asked for, in the role that it asked for."""

    def __call__(self, texts: Sequence[str], role: Role = "symmetric") -> Vectors:
        """Row by row, in the order of the texts."""


@dataclass(frozen=True)
class Score:
    """A metric and the items that it is computed from, so that it can be computed again on a resample of them.

    With `groups`, the metric is taken within each group and the groups are averaged, plainly or weighted by items.
    """

    metric: str  # a key of METRICS
    items: Numbers  # (n, c): one row an item; what the columns are, the metric says
    groups: npt.NDArray[np.int64] | None = None  # (n,)
    weighted: bool = False

    @property
    def value(self) -> float:
        """Times 100."""
        return 100 * self.of(np.arange(len(self.items)))

    def of(self, rows: npt.NDArray[np.int64]) -> float:
        """The metric on some of the items, which may be drawn several times; not times 100."""
        metric = METRICS[self.metric]
        if self.groups is None:
            return metric(self.items[rows])
        groups = self.groups[rows]
        names, sizes = np.unique(groups, return_counts=True)
        values = [metric(self.items[rows[groups == name]]) for name in names]
        return float(np.average(values, weights=sizes if self.weighted else None))


Scores = Mapping[str, Score]


@dataclass(frozen=True)
class Task:
    """One set under one protocol. `settings` and `sha256` are all that its scores depend on beside the vectors."""

    name: str
    main: str  # the score that tables show
    texts: Mapping[Role, Sequence[str]]
    score: Callable[[Lookup], Scores]
    source: str = ""
    sha256: str = ""  # of the content, whatever file it came in
    settings: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Average:
    """A named mean of main scores. A part that is a tuple is averaged first and counts once."""

    label: str
    parts: tuple[str | tuple[str, ...], ...]


@dataclass(frozen=True)
class Suite:
    """Sets under one name. `load` makes the task of a set, or raises MissingPart where its data are not at hand."""

    name: str
    sets: tuple[str, ...]
    load: Callable[..., Task]  # (set name, Origin) -> Task
    averages: tuple[Average, ...]
