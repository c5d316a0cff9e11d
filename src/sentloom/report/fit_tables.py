"""What `sentloom fit` shows at its end: base against winner, and what was tried."""

from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from sentloom.fitting.result import FitResult, Measure, Run
from sentloom.report import formatting
from sentloom.report.tables import plain_table

MARKS = {"deciding": "", "general": " (general)", "watched": " (watched)"}
STYLES = {"written": "bold green", "forced": "bold yellow", "refused": "bold red"}


def fit_summary(result: FitResult) -> RenderableType:
    """The runs, the scores, the warnings and the verdict."""
    return Group(*_parts(result))


def _parts(result: FitResult) -> Iterator[RenderableType]:
    yield runs(result)
    yield scores(result)
    if stable := formatting.stability(result):
        yield Text(stable)
    for warning in result.warnings:
        yield Text(f"WARNING: {warning}", style="bold yellow")
    yield Text.assemble((f"{result.verdict.capitalize()}. ", STYLES[result.verdict]), result.reason)
    yield from map(Text, result.advice)


def runs(result: FitResult) -> Table:
    """Every run with its score on the rows that choose."""
    table = plain_table(
        "What was tried", "route", "round", "steps", "minutes", "score", "against the base", "", numbers=4
    )
    for run in result.runs:
        table.add_row(*_run(run), style="bold" if run.is_best else "")
    return table


def _run(run: Run) -> tuple[str, ...]:
    cells = (run.route, str(run.rung), f"{run.steps:,}", f"{run.seconds / 60:.1f}")
    if run.score is None or run.difference is None:
        return (*cells, "", "", run.verdict)
    interval = "" if run.low is None or run.high is None else f" ({run.low:+.2f} to {run.high:+.2f})"
    return (*cells, f"{run.score:.2f}", f"{run.difference:+.2f}{interval}", run.verdict)


def scores(result: FitResult) -> Table:
    """Base against winner on the rows that prove."""
    table = plain_table(
        "On held-out rows that nothing was chosen on", "", "what is asked", "base", "fitted", "gain", numbers=3
    )
    for one in result.measures:
        table.add_row(f"{one.name}{MARKS[one.part]}", one.label, f"{one.before:.2f}", f"{one.after:.2f}", gain(one))
    if result.total and result.total not in result.measures:
        table.add_section()
        table.add_row(result.total.name, "of those that decide", *_both(result.total), style="bold")
    return table


def _both(one: Measure) -> tuple[str, str, str]:
    return f"{one.before:.2f}", f"{one.after:.2f}", gain(one)


def gain(one: Measure) -> str:
    """The difference with its interval, and a word where it may be chance."""
    unsure = "" if one.better or one.worse else " unsure"
    return f"{one.difference:+.2f} ({one.low:+.2f} to {one.high:+.2f}){unsure}"
