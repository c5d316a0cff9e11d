"""What `sentloom fit` shows at its end: base against winner, and what was tried."""

from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from sentloom.report import wording
from sentloom.report.story import Measure, Run, Story
from sentloom.report.tables import plain_table

MARKS = {"deciding": "", "general": " (general)", "watched": " (watched)"}
STYLES = {"written": "bold green", "forced": "bold yellow", "refused": "bold red"}


def fit_summary(story: Story) -> RenderableType:
    """The runs, the scores, the warnings and the verdict."""
    return Group(*_parts(story))


def _parts(story: Story) -> Iterator[RenderableType]:
    yield runs(story)
    yield scores(story)
    if stable := wording.stability(story):
        yield Text(stable)
    for warning in story.warnings:
        yield Text(f"WARNING: {warning}", style="bold yellow")
    yield Text.assemble((f"{story.verdict.capitalize()}. ", STYLES[story.verdict]), story.reason)
    yield from map(Text, story.advice)


def runs(story: Story) -> Table:
    """Every run with its score on the rows that choose."""
    table = plain_table(
        "What was tried", "route", "round", "steps", "minutes", "score", "against the base", "", numbers=4
    )
    for run in story.runs:
        table.add_row(*_run(run), style="bold" if run.is_best else "")
    return table


def _run(run: Run) -> tuple[str, ...]:
    cells = (run.route, str(run.rung), f"{run.steps:,}", f"{run.seconds / 60:.1f}")
    if run.score is None or run.difference is None:
        return (*cells, "", "", run.verdict)
    interval = "" if run.low is None or run.high is None else f" ({run.low:+.2f} to {run.high:+.2f})"
    return (*cells, f"{run.score:.2f}", f"{run.difference:+.2f}{interval}", run.verdict)


def scores(story: Story) -> Table:
    """Base against winner on the rows that prove."""
    table = plain_table(
        "On held-out rows that nothing was chosen on", "", "what is asked", "base", "fitted", "gain", numbers=3
    )
    for one in story.measures:
        table.add_row(f"{one.name}{MARKS[one.part]}", one.label, f"{one.before:.2f}", f"{one.after:.2f}", gain(one))
    if story.total and story.total not in story.measures:
        table.add_section()
        table.add_row(story.total.name, "of those that decide", *_both(story.total), style="bold")
    return table


def _both(one: Measure) -> tuple[str, str, str]:
    return f"{one.before:.2f}", f"{one.after:.2f}", gain(one)


def gain(one: Measure) -> str:
    """The difference with its interval, and a word where it may be chance."""
    unsure = "" if one.better or one.worse else " unsure"
    return f"{one.difference:+.2f} ({one.low:+.2f} to {one.high:+.2f}){unsure}"
