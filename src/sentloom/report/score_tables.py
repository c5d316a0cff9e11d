"""Scores in the terminal: models side by side, and the rows that papers print below them."""

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from sentloom.evaluation.results import Cell, SuiteResult
from sentloom.evaluation.suites import SUITES
from sentloom.evaluation.task import signed_note
from sentloom.report.score_files import cell_text, difference_legend, differences
from sentloom.report.tables import Wide, plain_table

MOST_COLUMNS = 3  # of models; more get a row each, without intervals
HEAD = 12  # characters, before the name of a mean is wrapped


def suite(result: SuiteResult, models: Sequence[str]) -> RenderableType:
    """The main scores of a suite, with intervals, and notes."""
    down = len(models) <= MOST_COLUMNS
    if not result.sets:
        return Group(Text(result.name, style="bold"), *_notes(result))
    body = _sets_down(result, models) if down else sets_across(result, models, ())
    return Group(body, *_legend(result, intervals=down), *_differences(result, models), *_notes(result))


def _differences(result: SuiteResult, models: Sequence[str]) -> list[RenderableType]:
    """How the other models differ from the first one; nothing for a single model."""
    (first, *others) = models
    if not others:
        return []
    table = Wide(f"{result.name}: difference from {first}", others, [differences(result, others)], "set")
    return [table, Text("; ".join(difference_legend(result, others)), style="dim")]


def mteb(scores: Mapping[str, Mapping[str, float]]) -> RenderableType:
    """The main scores of mteb's tasks: one row per task, one column per model."""
    table = plain_table("mteb", "task", *scores, numbers=len(scores))
    for task in dict.fromkeys(task for of_model in scores.values() for task in of_model):
        table.add_row(task, *(f"{of_model[task]:.2f}" if task in of_model else "" for of_model in scores.values()))
    return table


def _sets_down(result: SuiteResult, models: Sequence[str]) -> RenderableType:
    table = plain_table(result.name, "set", "score", "items", *models, numbers=1 + len(models))
    table.columns[1].no_wrap = True
    for row in result.sets:
        cells = [_cell(row.cells[model][row.main], len(models)) for model in models]
        table.add_row(row.name, row.main, f"{row.items:,}", *cells)
    if result.averages:
        table.add_section()
    for average in result.averages:
        table.add_row(average.label, "", "", *(_cell(average.cells[model], len(models)) for model in models))
    return table


def _cell(cell: Cell, models: int) -> str:
    """With several models the interval goes below the score: a terminal of 80 characters is too narrow."""
    return cell_text(cell).replace(" (", "\n(") if models > 1 else cell_text(cell)


@dataclass(frozen=True)
class PrintedRow:
    """A row of scores that a paper prints."""

    label: str
    scores: Mapping[str, float | None]
    average: float | None


def sets_across(result: SuiteResult, models: Sequence[str], rows: Sequence[PrintedRow]) -> RenderableType:
    """One row per model, then one per printed row, whose mean belongs under the suite's first mean."""
    own = {row.name: row for row in result.sets}
    suite_order = SUITES[result.name].sets if result.name in SUITES else ()
    printed = {*own, *(name for row in rows for name in row.scores)}
    names = [name for name in dict.fromkeys([*suite_order, *own, *sorted(printed)]) if name in printed]
    ours = [
        (
            model,
            [_short(own[name].cells[model][own[name].main]) if name in own else "" for name in names]
            + [_short(average.cells[model]) for average in result.averages],
        )
        for model in models
    ]
    theirs = [(row.label, [*_numbers(row.scores, names), *_numbers({0: row.average}, [0])]) for row in rows]
    heads = [name.replace(" ", "\n") for name in names] + (_mean_heads(result) or ["mean"] * bool(rows))
    return Wide(result.name, heads, [ours, theirs])


def _mean_heads(result: SuiteResult) -> list[str]:
    """A single mean is called "mean", with the number of its sets if some are missing; several keep their names."""
    labels = [average.label for average in result.averages]
    if len(labels) == 1:
        return ["mean" + labels[0].partition(":")[2].replace(" ", "\n", 1)]
    return [textwrap.fill(label, HEAD) for label in labels]


def _short(cell: Cell) -> str:
    """Without the interval."""
    return cell_text(cell).partition(" (")[0]


def _numbers(values: Mapping[Any, float | None], names: Sequence[Any]) -> list[str]:
    return ["" if (value := values.get(name)) is None else f"{value:.2f}" for name in names]


def _legend(result: SuiteResult, intervals: bool) -> list[Text]:
    """What the signs in the table mean."""
    cells = [scores[row.main] for row in result.sets for scores in row.cells.values()]
    cells += [cell for average in result.averages for cell in average.cells.values()]
    lines = []
    if intervals and any(cell.low is not None for cell in cells):
        lines.append("in brackets: 95% interval over items")
    if any(cell.deviation is not None for cell in cells):
        lines.append("±: standard deviation over seeds; differences are not tested")
    if not all(cell.significant for cell in cells):
        lines.append("≈: no significant difference from the first model")
    return [Text("; ".join(lines), style="dim")] if lines else []


def _notes(result: SuiteResult) -> list[Text]:
    return [Text(signed_note(note), style="yellow") for note in result.notes]
