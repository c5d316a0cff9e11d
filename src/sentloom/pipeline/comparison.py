"""The table of a comparison: scores, differences from the base and cost of every method, and what is best."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import mean
from typing import Literal

from sentloom.pipeline.comparing import Compared
from sentloom.pipeline.results import Row, change, set_notes, unlike_at, untouched
from sentloom.pipeline.runner import PlanResult

MEAN = "mean"
MARK = "≈"
Standing = Literal["best", "near", ""]


@dataclass(frozen=True)
class Cost:
    """Training time and steps per seed, and the time for what is made once for all seeds."""

    seeds: int
    seconds: float
    steps: float
    made_seconds: float


@dataclass(frozen=True)
class ComparisonCell:
    """A score, and whether it is the best of its column or so near that the deviations overlap."""

    score: float
    deviation: float | None = None  # over seeds
    change: float | None = None  # from the untouched base
    standing: Standing = ""
    comparable: bool = True  # with published scores


@dataclass(frozen=True)
class Line:
    """A method, or an untouched base."""

    name: str
    cells: Mapping[str, ComparisonCell]  # by set
    cost: Cost | None  # None: nothing was trained
    is_base: bool = False


@dataclass(frozen=True)
class ComparisonTable:
    """Untouched bases first, then methods in the given order; notes explain the signs and what is missing."""

    sets: tuple[str, ...]
    lines: tuple[Line, ...]
    notes: tuple[str, ...]


def comparison_table(found: Compared) -> ComparisonTable:
    """The table, with a note per plan that is missing."""
    steps = {row.name: mean(_steps(one) for one in found.results if one.plan == row.name) for row in found.rows}
    table = comparison(found.rows, steps)
    stopped = [
        f"not in the table: {name}, which stopped ({error.where}: {error.problem})"
        for name, error in found.failed.items()
    ]
    return replace(table, notes=(*table.notes, *stopped))


def _steps(result: PlanResult) -> int:
    return sum(int(stage["outcome"]["steps"]) for stage in result.stages if "outcome" in stage and not stage["once"])


def comparison(rows: Sequence[Row], steps: Mapping[str, float]) -> ComparisonTable:
    """The table of some rows; `steps` are the steps per seed, by the row's name."""
    names = list(dict.fromkeys(name for row in rows for name in row.after))
    whole = _one_mean(rows)
    sets = tuple(sorted((name for name in names if whole or name != MEAN), key=MEAN.__eq__))  # the mean comes last
    lines = [_base(label, scores, sets, unlike_at(rows, label)) for label, scores in untouched(rows).items()]
    lines += [_method(row, steps.get(row.name, 0.0), sets) for row in rows]
    standing = tuple(_with_standings(lines, sets))
    notes = [] if whole else ["no mean: the methods are not all scored on the same sets"]
    return ComparisonTable(sets, standing, (*_legend(standing), *notes, *set_notes(rows)))


def _one_mean(rows: Sequence[Row]) -> bool:
    """Whether all means are over the same sets."""
    return len({frozenset(row.after) for row in rows if MEAN in row.after}) <= 1


def _base(label: str, scores: Mapping[str, float], sets: Sequence[str], unlike: Collection[str]) -> Line:
    cells = {name: ComparisonCell(scores[name], comparable=name not in unlike) for name in sets if name in scores}
    return Line(f"{label}, untouched", cells, None, is_base=True)


def _method(row: Row, steps: float, sets: Sequence[str]) -> Line:
    cells = {
        name: ComparisonCell(
            row.after[name], row.deviation[name], change(row, name), comparable=name not in row.not_comparable
        )
        for name in sets
        if name in row.after
    }
    cost = Cost(row.seeds, row.seconds, steps, sum(one["seconds"] for one in row.made))
    name = f"{row.name} (transductive)" if row.transductive else row.name
    return Line(name, cells, cost if row.trained else None)


def _with_standings(lines: Sequence[Line], sets: Sequence[str]) -> list[Line]:
    best = {
        name: max((line.cells[name] for line in lines if name in line.cells), key=lambda cell: cell.score)
        for name in sets
    }
    return [
        replace(line, cells={name: _standing(cell, best[name]) for name, cell in line.cells.items()}) for line in lines
    ]


def _standing(cell: ComparisonCell, best: ComparisonCell) -> ComparisonCell:
    """An untouched base has no deviation: it does not depend on a seed."""
    low, high = best.score - (best.deviation or 0.0), cell.score + (cell.deviation or 0.0)
    return replace(cell, standing="best" if cell.score == best.score else "near" if high >= low else "")


def _legend(lines: Sequence[Line]) -> list[str]:
    """What the signs in the table mean."""
    cells = [cell for line in lines for cell in line.cells.values()]
    costs = [line.cost for line in lines if line.cost]
    notes = ["bold: the best of its column"]
    if any(cell.standing == "near" for cell in cells):
        notes.append(f"{MARK}: not clearly worse, its deviation over seeds overlaps with the best one's")
    if any(cell.change is not None for cell in cells):
        notes.append("in brackets: difference from the untouched base")
    if any(cost.seeds == 1 for cost in costs):
        notes.append("one seed: it is unknown how much of a difference is due to chance")
    return notes
