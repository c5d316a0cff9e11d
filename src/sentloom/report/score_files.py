"""Scores as files: JSON with every digit, CSV for spreadsheets, Markdown for people, a PNG with bars."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sentloom import __version__
from sentloom.errors import InputError
from sentloom.evaluation.results import Cell, SuiteResult
from sentloom.evaluation.significance import LEAST_CLUSTERS
from sentloom.evaluation.task import UNLIKE, signed_note
from sentloom.markdown import plain, raw_table
from sentloom.report import plots
from sentloom.report.tables import csv_text, write_text
from sentloom.terminal import json_text

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
        problem = f"scores cannot be written as {path.suffix!r}"
        raise InputError(str(path), problem, f"one of {', '.join([*formats, PICTURE])}", "choose another ending")
    return formats[path.suffix]


def _json(models: Facts, results: Sequence[SuiteResult]) -> str:
    suites = [{**asdict(suite), "notes": list(suite.notes)} for suite in results]
    return json_text({"sentloom": __version__, "models": models, "suites": suites})


def _csv(models: Facts, results: Sequence[SuiteResult]) -> str:
    """One row per model, set and score, then one per model and average."""
    head = ["suite", "set", "items", "model", "score", *Cell.__dataclass_fields__]
    rows: list[list[Any]] = []
    for suite in results:
        rows += [
            [suite.name, result.name, result.items, model, score, *asdict(cell).values()]
            for result in suite.sets
            for model, cells in result.cells.items()
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
    return "\n".join(_suite_markdown(list(models), suite) for suite in results)


def _suite_markdown(models: Sequence[str], suite: SuiteResult) -> str:
    lines = [
        [
            plain(result.name),
            plain(result.main),
            f"{result.items:,}",
            *(cell_text(result.cells[model][result.main]) for model in models),
        ]
        for result in suite.sets
    ]
    lines += [
        [plain(average.label), "", "", *(f"**{cell_text(average.cells[model])}**" for model in models)]
        for average in suite.averages
    ]
    head = ["set", "score", "items", *map(plain, models)]
    notes = "\n".join(f"- {plain(signed_note(note))}" for note in suite.notes)
    tables = [raw_table(head, lines, 2), *_differences_markdown(models, suite)] if suite.sets else []
    return "\n\n".join(part for part in [f"### {plain(suite.name)}", *tables, notes] if part) + "\n"


def _differences_markdown(models: Sequence[str], suite: SuiteResult) -> list[str]:
    """How the other models differ from the first one; nothing for a single model."""
    (first, *others) = models
    if not others:
        return []
    lines = [[plain(name), *texts] for name, texts in differences(suite, others)]
    legend = "\n".join(f"- {line}" for line in difference_legend(suite, others))
    return [raw_table([f"difference from {plain(first)}", *map(plain, others)], lines), legend]


def differences(suite: SuiteResult, models: Sequence[str]) -> list[tuple[str, list[str]]]:
    """For each set and mean, how these models differ from the first one."""
    sets = [(row.name, [difference_text(row.cells[model][row.main]) for model in models]) for row in suite.sets]
    return [*sets, *((row.label, [difference_text(row.cells[model]) for model in models]) for row in suite.averages)]


def difference_text(cell: Cell) -> str:
    """As in "+1.25 (+0.31 to +2.19)", or "+1.25†" on a set that is not the published one."""
    value = f"{cell.difference:+.2f}{UNLIKE * (not cell.comparable)}"
    if cell.difference_low is None:
        return f"{value} (no interval)"
    return f"{value} ({cell.difference_low:+.2f} to {cell.difference_high:+.2f})"


def difference_legend(suite: SuiteResult, models: Sequence[str]) -> list[str]:
    """What the intervals of differences are, and why some are missing."""
    cells = [result.cells[model][result.main] for result in suite.sets for model in models]
    level = f"{100 * cells[0].level:.4g}%"
    joint = f", corrected for {len(models)} comparisons" if len(models) > 1 else ""
    lines = [f"in brackets: {level} interval, paired over the items of the set{joint}"]
    if any(cell.difference_low is None for cell in cells):
        lines.append(f"no interval: several seeds, or fewer than {LEAST_CLUSTERS} independent items")
    return lines


def _bars(results: Sequence[SuiteResult]) -> "Figure":
    """The main scores of all sets and models."""
    scores = [
        (result.name, {model: cells[result.main] for model, cells in result.cells.items()})
        for suite in results
        for result in suite.sets
    ]
    return plots.score_bars(", ".join(suite.name for suite in results), scores)


def cell_text(cell: Cell) -> str:
    """As in "82.03 (80.1 to 83.8)" or "82.03 ± 0.12"; "≈" if no difference from the first model is shown.

    "82.03†" is not comparable with published scores.
    """
    mark, value = "" if cell.significant else "≈ ", f"{cell.value:.2f}{UNLIKE * (not cell.comparable)}"
    if cell.deviation is not None:
        return f"{value} ± {cell.deviation:.2f}"
    spread = f" ({cell.low:.1f} to {cell.high:.1f})" if cell.low is not None else ""
    return f"{mark}{value}{spread}"
