"""Scores in the terminal: models side by side, and what papers print beneath them."""

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from sentloom.evaluation.published import PublishedRow, published
from sentloom.evaluation.results import Cell, SuiteResult
from sentloom.evaluation.suites import SUITES
from sentloom.report.score_files import cell_text
from sentloom.report.tables import plain_table

ACROSS = 3  # models beside each other; more go below each other, without intervals


def suite(one: SuiteResult, models: Sequence[str]) -> RenderableType:
    """The main scores of a suite, with intervals, and notes."""
    body = _sets_down(one, models) if len(models) <= ACROSS else _sets_across(one, models, ())
    return Group(body, *_legend(one), *_notes(one))


def with_published(one: SuiteResult, models: Sequence[str]) -> RenderableType:
    """The models above the rows that papers print for a suite, with the source and the known faults of each."""
    rows = published(one.name)
    if not rows:
        return Text(f"{one.name}: no published rows; they are of whole suites, such as --suite sts", style="yellow")
    faults: dict[str, list[str]] = {}
    for number, row in enumerate(rows, start=1):
        for fault in row.faults:
            faults.setdefault(fault, []).append(f"({number})")
    lines = [Text(f"fault of {' '.join(numbers)}: {fault}", style="yellow") for fault, numbers in faults.items()]
    return Group(_sets_across(one, models, rows), *lines)


def mteb(scores: Mapping[str, Mapping[str, float]]) -> RenderableType:
    """The main scores of mteb's tasks, tasks down and models across."""
    table = plain_table("mteb", "task", *scores, numbers=len(scores))
    for task in dict.fromkeys(task for some in scores.values() for task in some):
        table.add_row(task, *(f"{some[task]:.2f}" if task in some else "" for some in scores.values()))
    return table


def _sets_down(one: SuiteResult, models: Sequence[str]) -> RenderableType:
    table = plain_table(one.name, "set", "score", "items", *models, numbers=1 + len(models))
    table.columns[1].no_wrap = True
    for row in one.sets:
        cells = [_cell(row.cells[model][row.main], len(models)) for model in models]
        table.add_row(row.name, row.main, f"{row.items:,}", *cells)
    if one.averages:
        table.add_section()
    for average in one.averages:
        table.add_row(average.label, "", "", *(_cell(average.cells[model], len(models)) for model in models))
    return table


def _cell(cell: Cell, models: int) -> str:
    """With several models the interval goes below the score: a terminal of 80 columns has no room beside it."""
    return cell_text(cell).replace(" (", "\n(") if models > 1 else cell_text(cell)


def _sets_across(one: SuiteResult, models: Sequence[str], rows: Sequence[PublishedRow]) -> RenderableType:
    own = {row.name: row for row in one.sets}
    suite_order = SUITES[one.name].sets if one.name in SUITES else ()
    printed = {*own, *(name for row in rows for name in row.scores)}
    names = [name for name in dict.fromkeys([*suite_order, *own, *sorted(printed)]) if name in printed]
    table = plain_table(one.name, "model", *names, "mean", numbers=len(names) + 1)
    for model in models:
        values = {name: row.cells[model][row.main].value for name, row in own.items()}
        table.add_row(model, *_numbers(values, names), *(_numbers({0: _mean(one, model)}, [0])))
    if rows:
        table.add_section()
    for number, row in enumerate(rows, start=1):
        joined = f", {row.aggregation}" if row.aggregation not in (None, "all") else ""
        table.add_row(
            f"({number}) {row.label}, {row.source}{joined}",
            *_numbers(row.scores, names),
            *_numbers({0: row.average}, [0]),
        )
    return table


def _mean(one: SuiteResult, model: str) -> float | None:
    return one.averages[0].cells[model].value if one.averages else None


def _numbers(values: Mapping[Any, float | None], names: Sequence[Any]) -> list[str]:
    return ["" if (value := values.get(name)) is None else f"{value:.2f}" for name in names]


def _legend(one: SuiteResult) -> list[Text]:
    """What the signs mean, where they stand."""
    cells = [cell for row in one.sets for scores in row.cells.values() for cell in [scores[row.main]]]
    lines = ["in brackets: 95% bootstrap interval over items"] if any(cell.low is not None for cell in cells) else []
    lines += ["±: deviation over seeds"] if any(cell.deviation is not None for cell in cells) else []
    if not all(cell.significant for cell in cells):
        lines.append("≈: no significant difference from the first model (paired bootstrap, p >= 0.05)")
    return [Text("; ".join(lines), style="dim")] if lines else []


def _notes(one: SuiteResult) -> list[Text]:
    return [Text(f"note: {note}", style="yellow") for note in one.notes]
