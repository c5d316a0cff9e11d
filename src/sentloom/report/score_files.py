"""Scores as files: JSON with every digit, CSV for spreadsheets, Markdown for people, a PNG with bars."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sentloom import __version__
from sentloom.errors import InputError
from sentloom.evaluation.results import Cell, SuiteResult
from sentloom.markdown import plain, raw_table
from sentloom.report import plots
from sentloom.report.text_files import csv_text, json_text, write_text

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PICTURE = ".png"
Facts = Mapping[str, Mapping[str, Any]]  # model -> its name, hash, pooling ...


def write_scores(path: Path, models: Facts, results: Sequence[SuiteResult]) -> None:
    """Write scores in the format of the path's ending. The same scores give the same bytes: they contain no time."""
    if path.suffix == PICTURE:
        plots.write(_bars(results), path)
    else:
        write_text(path, _format(path)(models, results))


def check_scores_file(path: Path) -> None:
    """Refuse a file that cannot be written before anything is scored."""
    if path.suffix != PICTURE:
        _format(path)
    if path.is_dir():
        raise InputError(str(path), "it is a folder", "a file to write", "choose another name")


def _format(path: Path) -> Callable[[Facts, Sequence[SuiteResult]], str]:
    formats = {".json": _json, ".csv": _csv, ".md": scores_markdown}
    if path.suffix not in formats:
        found = f"scores cannot be written as {path.suffix!r}"
        raise InputError(str(path), found, f"one of {', '.join([*formats, PICTURE])}", "choose another ending")
    return formats[path.suffix]


def _json(models: Facts, results: Sequence[SuiteResult]) -> str:
    suites = [{**asdict(one), "notes": list(one.notes)} for one in results]
    return json_text({"sentloom": __version__, "models": models, "suites": suites})


def _csv(models: Facts, results: Sequence[SuiteResult]) -> str:
    """One row per model, set and score, then one per model and average."""
    head = ["suite", "set", "items", "model", "score", *Cell.__dataclass_fields__]
    rows: list[list[Any]] = []
    for suite in results:
        rows += [
            [suite.name, one.name, one.items, model, score, *asdict(cell).values()]
            for one in suite.sets
            for model, cells in one.cells.items()
            for score, cell in cells.items()
        ]
        rows += [
            [suite.name, average.label, "", model, "average", *asdict(cell).values()]
            for average in suite.averages
            for model, cell in average.cells.items()
        ]
    return csv_text(head, rows)


def scores_markdown(models: Facts, results: Sequence[SuiteResult]) -> str:
    """A table per suite with the main scores: one row per set, one column per model."""
    return "\n".join(_suite_markdown(list(models), one) for one in results)


def _suite_markdown(models: Sequence[str], suite: SuiteResult) -> str:
    lines = [
        [
            plain(one.name),
            plain(one.main),
            f"{one.items:,}",
            *(cell_text(one.cells[model][one.main]) for model in models),
        ]
        for one in suite.sets
    ]
    lines += [
        [plain(average.label), "", "", *(f"**{cell_text(average.cells[model])}**" for model in models)]
        for average in suite.averages
    ]
    head = ["set", "score", "items", *map(plain, models)]
    notes = "\n".join(f"- {plain(note)}" for note in suite.notes)
    parts = [f"### {plain(suite.name)}", raw_table(head, lines, 2), notes]
    return "\n\n".join(part for part in parts if part) + "\n"


def _bars(results: Sequence[SuiteResult]) -> "Figure":
    """The main scores of all sets and models."""
    scores = [
        (one.name, {model: cells[one.main] for model, cells in one.cells.items()})
        for suite in results
        for one in suite.sets
    ]
    return plots.score_bars(", ".join(suite.name for suite in results), scores)


def cell_text(cell: Cell) -> str:
    """As in "82.03 (80.1 to 83.8)" or "82.03 ± 0.12"; "≈" if no difference from the first model is shown."""
    mark = "" if cell.significant else "≈ "
    if cell.deviation is not None:
        return f"{cell.value:.2f} ± {cell.deviation:.2f}"
    spread = f" ({cell.low:.1f} to {cell.high:.1f})" if cell.low is not None else ""
    return f"{mark}{cell.value:.2f}{spread}"
