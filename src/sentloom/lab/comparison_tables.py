"""A comparison of methods for the terminal, and as compare.json (with every run), compare.md and compare.csv."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from rich.console import Group, RenderableType
from rich.text import Text

from sentloom import __version__
from sentloom.lab.comparison import MARK, Compared, ComparisonCell, ComparisonTable, Cost, Line, comparison_table
from sentloom.lab.results import refuse_foreign_file, run_values, score_text
from sentloom.markdown import plain, raw_table
from sentloom.report.tables import Wide, csv_text, write_text
from sentloom.terminal import json_text

JSON, MARKDOWN, CSV = FILES = "compare.json", "compare.md", "compare.csv"


def refuse_foreign_tables(folder: Path) -> None:
    """Never overwrite a table that no comparison wrote."""
    for name in (MARKDOWN, CSV):
        refuse_foreign_file(folder / name, folder / JSON)


def write_comparison(compared: Compared, folder: Path) -> None:
    """Write all three files."""
    comparison = comparison_table(compared)
    runs = [run_values(result, folder) for result in compared.results]
    write_text(folder / JSON, json_text({"sentloom": __version__, **asdict(comparison), "runs": runs}))
    write_text(folder / MARKDOWN, comparison_markdown(comparison))
    write_text(folder / CSV, comparison_csv(comparison))


def methods_table(title: str, comparison: ComparisonTable) -> RenderableType:
    """For the terminal."""
    heads = [*_labels(comparison.sets).values(), *(head.replace(" per ", "\nper ") for head in _cost_heads(comparison))]
    sections = [
        [(line.name, _shown(line, comparison)) for line in comparison.lines if line.is_base == bases]
        for bases in (True, False)
    ]
    return Group(Wide(title, heads, sections, "method"), *(Text(note, style="dim") for note in comparison.notes))


def _shown(line: Line, comparison: ComparisonTable) -> list[str | Text]:
    cells = [line.cells.get(name) for name in comparison.sets]
    styled = [Text(_text(cell), style="bold" if cell and cell.standing == "best" else "") for cell in cells]
    return [*styled, *_cost(line, comparison)]


def _text(cell: ComparisonCell | None) -> str:
    if cell is None:
        return ""
    mark = f"{MARK} " if cell.standing == "near" else ""
    return mark + score_text(cell.score, cell.deviation, cell.change, unlike=not cell.comparable)


def _labels(sets: Sequence[str]) -> dict[str, str]:
    """The names of files without their folders, unless two have the same name."""
    files = [Path(name).name for name in sets]
    return {
        name: file if Path(name).is_absolute() and files.count(file) == 1 else name
        for name, file in zip(sets, files, strict=True)
    }


def _cost_heads(comparison: ComparisonTable) -> list[str]:
    return ["seeds", "minutes per seed", "steps per seed", *(["minutes, made once"] if _makes(comparison) else [])]


def _cost(line: Line, comparison: ComparisonTable) -> list[str]:
    if line.cost is None:
        return [""] * len(_cost_heads(comparison))
    made = [f"{line.cost.made_seconds / 60:.1f}"] if _makes(comparison) else []
    return [str(line.cost.seeds), f"{line.cost.seconds / 60:.1f}", f"{line.cost.steps:,.0f}", *made]


def _makes(comparison: ComparisonTable) -> bool:
    return any(line.cost and line.cost.made_seconds for line in comparison.lines)


def comparison_markdown(comparison: ComparisonTable) -> str:
    """The table and its notes."""
    heads = ["method", *_labels(comparison.sets).values(), *_cost_heads(comparison)]
    lines = [
        [plain(line.name), *(_bold(line.cells.get(name)) for name in comparison.sets), *_cost(line, comparison)]
        for line in comparison.lines
    ]
    notes = "\n".join(f"- {plain(note)}" for note in comparison.notes)
    return f"{raw_table([*map(plain, heads)], lines)}\n\n{notes}\n"


def _bold(cell: ComparisonCell | None) -> str:
    return f"**{_text(cell)}**" if cell and cell.standing == "best" else _text(cell)


def comparison_csv(comparison: ComparisonTable) -> str:
    """One row per method and set, with every digit."""
    no_cost = [""] * len(Cost.__dataclass_fields__)
    head = ["method", "set", *ComparisonCell.__dataclass_fields__, *Cost.__dataclass_fields__]
    rows = [
        [line.name, name, *vars(cell).values(), *(vars(line.cost).values() if line.cost else no_cost)]
        for line in comparison.lines
        for name, cell in line.cells.items()
    ]
    return csv_text(head, rows)
