"""Turn scores into reported results: intervals, deviations over seeds, differences and their significance."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean
from typing import Any

import numpy as np

from sentloom.evaluation.significance import (
    LEVEL,
    are_enough,
    average_interval,
    compare_averages,
    joint_level,
    mean_and_deviation,
)
from sentloom.evaluation.suites import LoadedSuite
from sentloom.evaluation.task import NOT_COMPARABLE, Average, Score, Scores


@dataclass(frozen=True)
class Cell:
    """A score of one model with an interval, or the mean over several seeds with its standard deviation."""

    value: float
    low: float | None = None
    high: float | None = None
    deviation: float | None = None
    difference: float | None = None  # from the first model
    p: float | None = None  # of a paired test of the difference over the items; None for several seeds
    difference_low: float | None = None  # the interval of the difference, paired over the items; None: there is none
    difference_high: float | None = None
    level: float = LEVEL  # of that interval; higher if several models are compared with the first one
    comparable: bool = True  # with published scores

    @property
    def significant(self) -> bool:
        """Whether the interval of the difference from the first model excludes 0; true if there was no test."""
        if self.p is None:
            return True
        low, high = self.difference_low, self.difference_high
        return low is not None and high is not None and not low <= 0 <= high


@dataclass(frozen=True)
class SetResult:
    """The results of all models on one set."""

    name: str
    main: str
    items: int
    cells: Mapping[str, Mapping[str, Cell]]  # model -> score -> cell
    source: str
    sha256: str
    settings: Mapping[str, Any]
    notes: tuple[str, ...]


@dataclass(frozen=True)
class AverageResult:
    """A named mean of main scores over the available sets."""

    label: str
    cells: Mapping[str, Cell]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class SuiteResult:
    """The results of all models on one suite."""

    name: str
    sets: tuple[SetResult, ...]
    averages: tuple[AverageResult, ...]
    missing: Mapping[str, str]  # set -> why
    unlike: Mapping[str, str] = field(default_factory=dict)  # sets that are not the published ones -> how they differ

    @property
    def notes(self) -> tuple[str, ...]:
        """Everything a reader of the scores must know."""
        absent = tuple(f"{name}: missing, left out ({why})" for name, why in self.missing.items())
        unlike = tuple(f"{name}: not the published set, left out ({why})" for name, why in self.unlike.items())
        sets = tuple(f"{result.name}: {note}" for result in self.sets for note in result.notes)
        means = tuple(f"{result.label}: {note}" for result in self.averages for note in result.notes)
        return sets + means + absent + unlike


Member = Sequence[Scores]  # the scores of one model on each task of a suite
Seeds = Sequence[Sequence[Score]]  # per seed: the scores to average, a single one for one set


def suite_result(loaded: LoadedSuite, models: Mapping[str, Sequence[Member]]) -> SuiteResult:
    """Build the table of a suite. Each model has one member, or several that differ by seed."""
    sets, level = [], joint_level(len(models) - 1)
    for place, task in enumerate(loaded.tasks):
        scores = {model: [member[place] for member in members] for model, members in models.items()}
        first = next(iter(scores.values()))
        sets.append(
            SetResult(
                task.name,
                task.main,
                len(first[0][task.main].items),
                {
                    model: _cells(own, None if own is first else first, level, task.comparable)
                    for model, own in scores.items()
                },
                task.source,
                task.sha256,
                task.settings.recorded(),
                (*task.notes, *_constant(task.main, scores)),
            )
        )
    averages = [_average(average, loaded, models, level) for average in loaded.averages]
    means = tuple(mean for mean in averages if mean)
    return SuiteResult(loaded.name, tuple(sets), means, loaded.missing, loaded.unlike)


def _cells(
    members: Sequence[Scores], first: Sequence[Scores] | None, level: float, comparable: bool
) -> dict[str, Cell]:
    def seeds(name: str, of_seeds: Sequence[Scores]) -> Seeds:
        return [[scores[name]] for scores in of_seeds]

    cells = {name: _cell(seeds(name, members), seeds(name, first) if first else None, level) for name in members[0]}
    return {name: replace(cell, comparable=comparable) for name, cell in cells.items()}


def _cell(members: Seeds, first: Seeds | None, level: float, weights: Sequence[float] | None = None) -> Cell:
    """Build the cell of a weighted mean of scores, compared with the first model at this level."""
    values = [_mean(scores, weights) for scores in members]
    difference = None if first is None else fmean(values) - fmean(_mean(scores, weights) for scores in first)
    if len(values) > 1:
        value, deviation = mean_and_deviation(values)
        return Cell(value, deviation=deviation, difference=difference, level=level)
    cell = Cell(values[0], *average_interval(members[0], weights), difference=difference, level=level)
    return _compared(cell, members[0], first[0], weights) if first and len(first) == 1 else cell


def _compared(cell: Cell, scores: Sequence[Score], first: Sequence[Score], weights: Sequence[float] | None) -> Cell:
    """Add p and, if there are enough clusters for one, the interval of the difference."""
    comparison = compare_averages(scores, first, weights, cell.level)
    cell = replace(cell, p=comparison.p)
    if not are_enough(comparison.effective) or not np.isfinite(comparison.low):
        return cell
    return replace(cell, difference_low=comparison.low, difference_high=comparison.high)


def _mean(scores: Sequence[Score], weights: Sequence[float] | None) -> float:
    return float(np.average([score.value for score in scores], weights=weights))


def _constant(main: str, models: Mapping[str, Sequence[Scores]]) -> list[str]:
    """Add a note for each model whose cosines are all equal, which explains a score of 0."""

    def is_constant(score: Score) -> bool:
        return score.metric in ("spearman", "pearson") and np.ptp(score.items[:, 0]) == 0

    constant = [model for model, members in models.items() if any(is_constant(scores[main]) for scores in members)]
    return [f"all cosines of {model} are equal, which scores 0" for model in constant]


def _average(
    average: Average, loaded: LoadedSuite, models: Mapping[str, Sequence[Member]], level: float
) -> AverageResult | None:
    """Average over the sets that are here and are the published ones; if some are not, the label says how many are."""
    places = {task.name: (place, task.main) for place, task in enumerate(loaded.tasks) if task.comparable}
    weights = _weights(average, places)
    if not weights:
        return None
    names = {name for part in average.parts for name in ((part,) if isinstance(part, str) else part)}
    label = average.label if len(weights) == len(names) else f"{average.label}: {len(weights)} of {len(names)} sets"
    chosen = {
        model: [[member[place][main] for place, main in map(places.__getitem__, weights)] for member in members]
        for model, members in models.items()
    }
    first = next(iter(chosen.values()))
    shares = list(weights.values())
    cells = {model: _cell(own, None if own is first else first, level, shares) for model, own in chosen.items()}
    unlike = [task.name for task in loaded.tasks if task.name in names and not task.comparable]
    missing = len(names) - len(weights) - len(unlike)
    reasons = [f"{missing} of its sets missing"] * bool(missing) + [f"without {', '.join(unlike)}"] * bool(unlike)
    notes = (f"{'; '.join(reasons)}: {NOT_COMPARABLE} published scores",) if reasons else ()
    return AverageResult(label, {model: replace(cell, comparable=not notes) for model, cell in cells.items()}, notes)


def _weights(average: Average, at_hand: Collection[str]) -> dict[str, float]:
    """Return the weight of each set in a mean; a part of several sets counts once."""
    parts = [(part,) if isinstance(part, str) else part for part in average.parts]
    present = [part for part in ([name for name in part if name in at_hand] for part in parts) if part]
    return {name: 1 / (len(present) * len(part)) for part in present for name in part}
