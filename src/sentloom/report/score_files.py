"""Scores as files: JSON with every digit, CSV for spreadsheets, Markdown for people, a picture of bars."""

import csv
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from sentloom import __version__
from sentloom.data.writers import no_formula
from sentloom.errors import InputError
from sentloom.evaluation.results import Cell, SuiteResult
from sentloom.files import new_file
from sentloom.markdown import plain, raw_table
from sentloom.report import plots

PICTURE = ".png"
Facts = Mapping[str, Mapping[str, Any]]  # model -> its name, hash, pooling ...


def write_scores(path: Path, models: Facts, results: Sequence[SuiteResult]) -> None:
    """Write scores in the form that the ending names. The same scores give the same bytes: no time, no path of ours."""
    if path.suffix == PICTURE:
        plots.write(plots.score_bars(", ".join(one.name for one in results), _bars(results)), path)
        return
    with new_file(path) as part:
        part.write_text(_form(path)(models, results), "utf-8")


def check_ending(path: Path) -> None:
    """Say before anything is scored that a file cannot be written in the form that its ending names."""
    if path.suffix != PICTURE:
        _form(path)
    if path.is_dir():
        raise InputError(str(path), "a folder", "a file to write", "choose another name")


def _form(path: Path) -> Callable[[Facts, Sequence[SuiteResult]], str]:
    forms = {".json": as_json, ".csv": as_csv, ".md": as_markdown}
    if path.suffix not in forms:
        found = f"the ending {path.suffix!r}"
        raise InputError(str(path), found, f"one of {', '.join([*forms, PICTURE])}", "choose another ending")
    return forms[path.suffix]


def as_json(models: Facts, results: Sequence[SuiteResult]) -> str:
    """Everything."""
    suites = [{**asdict(one), "notes": list(one.notes)} for one in results]
    return (
        json.dumps({"sentloom": __version__, "models": models, "suites": suites}, indent=1, ensure_ascii=False) + "\n"
    )


def as_csv(models: Facts, results: Sequence[SuiteResult]) -> str:
    """One row a model, set and score. No name is run as a formula."""
    from io import StringIO

    head = ["suite", "set", "items", "model", "score", *Cell.__dataclass_fields__]
    text = StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(head)
    for suite in results:
        for one in suite.sets:
            for model, cells in one.cells.items():
                for score, cell in cells.items():
                    names = map(no_formula, (suite.name, one.name, one.items, model, score))
                    writer.writerow([*names, *asdict(cell).values()])
        for average in suite.averages:
            for model, cell in average.cells.items():
                names = map(no_formula, (suite.name, average.label, "", model, "average"))
                writer.writerow([*names, *asdict(cell).values()])
    return text.getvalue()


def as_markdown(models: Facts, results: Sequence[SuiteResult]) -> str:
    """A table a suite: sets down, models across; main scores."""
    return "\n".join(_markdown_table(list(models), one) for one in results)


def _markdown_table(models: Sequence[str], suite: SuiteResult) -> str:
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
    parts = [
        f"### {plain(suite.name)}",
        raw_table(head, lines, 2),
        "\n".join(f"- {plain(note)}" for note in suite.notes),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _bars(results: Sequence[SuiteResult]) -> dict[str, dict[str, plots.Bar]]:
    """The main scores of all sets, model by model; over seeds the deviation to both sides."""
    return {
        one.name: {model: _bar(cells[one.main]) for model, cells in one.cells.items()}
        for suite in results
        for one in suite.sets
    }


def _bar(cell: Cell) -> plots.Bar:
    spread = cell.deviation or 0.0
    low = cell.value - spread if cell.low is None else cell.low
    high = cell.value + spread if cell.high is None else cell.high
    return plots.Bar(cell.value, low, high)


def cell_text(cell: Cell) -> str:
    """As in "82.03 (80.1 to 83.8)" or "82.03 ± 0.12"; "≈" before what does not differ from the first model's."""
    mark = "" if cell.significant else "≈ "
    if cell.deviation is not None:
        return f"{cell.value:.2f} ± {cell.deviation:.2f}"
    spread = f" ({cell.low:.1f} to {cell.high:.1f})" if cell.low is not None else ""
    return f"{mark}{cell.value:.2f}{spread}"
