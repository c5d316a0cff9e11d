"""Methods against each other: scores, distance from the base and cost, as a table, Markdown and CSV."""

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from io import StringIO
from pathlib import Path
from typing import Literal

from rich.console import Group, RenderableType
from rich.text import Text

from sentloom.data.writers import no_formula
from sentloom.markdown import plain, raw_table
from sentloom.pipeline.results import Row, change, score_text, untouched
from sentloom.report.tables import Wide

MEAN = "mean"
MARK = "≈"
Standing = Literal["best", "near", ""]


@dataclass(frozen=True)
class Cost:
    """What a method takes: training and steps of a seed, and what is made once for all seeds."""

    seeds: int
    seconds: float
    steps: float
    made_seconds: float


@dataclass(frozen=True)
class ComparisonCell:
    """A score, and how it stands in its column: the best, or so near that the deviations overlap."""

    score: float
    deviation: float | None = None  # over seeds
    change: float | None = None  # from the base as it is
    standing: Standing = ""


@dataclass(frozen=True)
class Line:
    """A method, or a base as it is."""

    name: str
    cells: Mapping[str, ComparisonCell]  # by set
    cost: Cost | None  # None: nothing was trained
    is_base: bool = False


@dataclass(frozen=True)
class ComparisonTable:
    """A table of methods: bases as they are first, then methods in the order given; what a reader must know."""

    sets: tuple[str, ...]
    lines: tuple[Line, ...]
    notes: tuple[str, ...]


def comparison(rows: Sequence[Row], steps: Mapping[str, float]) -> ComparisonTable:
    """The table of some rows; `steps` are those of a seed, by the row's name."""
    names = list(dict.fromkeys(name for row in rows for name in row.after))
    whole = _one_mean(rows)
    sets = tuple(sorted((name for name in names if whole or name != MEAN), key=MEAN.__eq__))  # the mean stands last
    lines = [_base(label, scores, sets) for label, scores in untouched(rows).items()]
    lines += [_method(row, steps.get(row.name, 0.0), sets) for row in rows]
    standing = tuple(_with_standings(lines, sets))
    notes = [] if whole else ["no mean: not all methods are scored on the same sets"]
    return ComparisonTable(sets, standing, (*_legend(standing), *notes))


def _one_mean(rows: Sequence[Row]) -> bool:
    """Whether the means of all rows that have one are over the same sets."""
    return len({frozenset(row.after) for row in rows if MEAN in row.after}) <= 1


def _base(label: str, scores: Mapping[str, float], sets: Sequence[str]) -> Line:
    return Line(
        f"{label}, untouched",
        {name: ComparisonCell(scores[name]) for name in sets if name in scores},
        None,
        is_base=True,
    )


def _method(row: Row, steps: float, sets: Sequence[str]) -> Line:
    cells = {
        name: ComparisonCell(row.after[name], row.deviation[name], change(row, name))
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
    """What has no deviation was not drawn: a base as it is has none."""
    low, high = best.score - (best.deviation or 0.0), cell.score + (cell.deviation or 0.0)
    return replace(cell, standing="best" if cell.score == best.score else "near" if high >= low else "")


def _legend(lines: Sequence[Line]) -> list[str]:
    """What the signs mean, where they stand."""
    cells = [cell for line in lines for cell in line.cells.values()]
    costs = [line.cost for line in lines if line.cost]
    notes = ["bold: the best of its column"]
    if any(cell.standing == "near" for cell in cells):
        notes.append(f"{MARK}: not clearly worse, its deviation over seeds and that of the best overlap")
    if any(cell.change is not None for cell in cells):
        notes.append("in brackets: distance from the base as it is")
    if any(cost.seeds == 1 for cost in costs):
        notes.append("one seed: how much of a difference is chance is not known")
    return notes


def table(title: str, found: ComparisonTable) -> RenderableType:
    """For the terminal."""
    heads = [*_labels(found.sets).values(), *(head.replace(" a ", "\na ") for head in _cost_heads(found))]
    sections = [
        [(line.name, _shown(line, found)) for line in found.lines if line.is_base == bases] for bases in (True, False)
    ]
    return Group(Wide(title, heads, sections, "method"), *(Text(note, style="dim") for note in found.notes))


def _shown(line: Line, found: ComparisonTable) -> list[str | Text]:
    cells = [line.cells.get(name) for name in found.sets]
    styled = [Text(_text(cell), style="bold" if cell and cell.standing == "best" else "") for cell in cells]
    return [*styled, *_cost(line, found)]


def _text(cell: ComparisonCell | None) -> str:
    if cell is None:
        return ""
    mark = f"{MARK} " if cell.standing == "near" else ""
    return mark + score_text(cell.score, cell.deviation, cell.change)


def _labels(sets: Sequence[str]) -> dict[str, str]:
    """Files go by their names, unless two have the same."""
    files = [Path(name).name for name in sets]
    return {
        name: file if Path(name).is_absolute() and files.count(file) == 1 else name
        for name, file in zip(sets, files, strict=True)
    }


def _cost_heads(found: ComparisonTable) -> list[str]:
    return ["seeds", "minutes a seed", "steps a seed", *(["minutes, made once"] if _makes(found) else [])]


def _cost(line: Line, found: ComparisonTable) -> list[str]:
    if line.cost is None:
        return [""] * len(_cost_heads(found))
    made = [f"{line.cost.made_seconds / 60:.1f}"] if _makes(found) else []
    return [str(line.cost.seeds), f"{line.cost.seconds / 60:.1f}", f"{line.cost.steps:,.0f}", *made]


def _makes(found: ComparisonTable) -> bool:
    return any(line.cost and line.cost.made_seconds for line in found.lines)


def as_markdown(found: ComparisonTable) -> str:
    """The table, and below it what the signs mean."""
    heads = ["method", *_labels(found.sets).values(), *_cost_heads(found)]
    lines = [
        [plain(line.name), *(_bold(line.cells.get(name)) for name in found.sets), *_cost(line, found)]
        for line in found.lines
    ]
    notes = "\n".join(f"- {plain(note)}" for note in found.notes)
    return f"{raw_table([*map(plain, heads)], lines)}\n\n{notes}\n"


def _bold(cell: ComparisonCell | None) -> str:
    return f"**{_text(cell)}**" if cell and cell.standing == "best" else _text(cell)


def as_csv(found: ComparisonTable) -> str:
    """One row a method and set, every digit. No name is run as a formula."""
    text = StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["method", "set", *ComparisonCell.__dataclass_fields__, *Cost.__dataclass_fields__])
    for line in found.lines:
        cost = vars(line.cost).values() if line.cost else [""] * len(Cost.__dataclass_fields__)
        for name, cell in line.cells.items():
            writer.writerow([no_formula(line.name), no_formula(name), *vars(cell).values(), *cost])
    return text.getvalue()
