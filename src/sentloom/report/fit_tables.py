"""What `sentloom fit` prints at the end, and a notebook shows: the runs, the scores before and after, the verdict."""

from collections.abc import Iterator
from pathlib import Path

from jinja2 import Environment
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from sentloom.fitting.measures import NO_DIFFERENCE, Measure
from sentloom.fitting.result import FitResult
from sentloom.report.advice import advice
from sentloom.report.classifiers import facts
from sentloom.report.formatting import change_text, duration, evidence, headline, number, stability, unit, warnings
from sentloom.report.tables import plain_table

MARKS = {"deciding": "", "general": " (general ability)", "watched": " (for information)"}
STYLES = {"better": "bold green", "closer": "bold green", NO_DIFFERENCE: "bold yellow", "worse": "bold red"}
HTML = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True).from_string("""\
<div>
<p><strong>{{ headline }}.</strong> {{ result.reason }}</p>
<table>
<thead><tr><th>test</th><th>base</th><th>fitted</th><th>gain (interval)</th></tr></thead>
<tbody>
{% for measure in result.measures %}
<tr><td style="text-align: left">{{ measure.name }}</td><td>{{ "%.2f" | format(measure.before) }}</td>
<td>{{ "%.2f" | format(measure.after) }}</td>
<td>{{ "%+.2f (%+.2f to %+.2f)" | format(measure.difference, measure.low, measure.high) }}</td></tr>
{% endfor %}
</tbody>
</table>
<p>{% if model %}Model: <code>{{ model }}</code>. {% else %}No model was written. {% endif %}
Report: <code>{{ report }}</code></p>
</div>
""")


def fit_summary(result: FitResult) -> RenderableType:
    """The runs, the scores, the warnings and the verdict."""
    return Group(*_parts(result))


def _parts(result: FitResult) -> Iterator[RenderableType]:
    yield _runs(result)
    yield _scores(result)
    if result.stability:
        yield Text(stability(result))
    for summary in result.classifiers:
        yield Text("\n".join([f"Classifier of {summary.column}:", *(f"  {line}" for line in facts(summary)), ""]))
    for warning in warnings(result):
        yield Text(f"WARNING: {warning}", style="bold yellow")
    yield Text.assemble((f"{headline(result)}. ", STYLES[result.verdict]), result.reason)
    yield from map(Text, evidence(result))
    yield from map(Text, advice(result))


def _runs(result: FitResult) -> Table:
    """Every run with its score on the rows that it was chosen on."""
    head = ("route", "outcome", "round", "steps", "time", "score", "difference from the base")
    table = plain_table(f"Runs, scored on {result.chosen_on}", *head, numbers=5)
    for run in result.runs:
        numbers = (f"{run.steps:,}", duration(run.seconds), number(run.score), change_text(run))
        table.add_row(run.route, run.verdict, str(run.rung), *numbers, style="bold" if run.is_best else "")
    return table


def _scores(result: FitResult) -> Table:
    """The base and the winner on test data."""
    table = plain_table("Scores on test data", "", "task", "base", "fitted", "difference", numbers=3)
    for measure in result.measures:
        table.add_row(f"{measure.name}{MARKS[measure.part]}", f"{measure.label}; {unit(measure)}", *_numbers(measure))
    if result.mean:
        table.add_section()
        table.add_row(result.mean.name, "of the deciding tasks", *_numbers(result.mean), style="bold")
    return table


def _numbers(measure: Measure) -> tuple[str, str, str]:
    unsure = f", {measure.finding}" if measure.finding == NO_DIFFERENCE else ""
    return number(measure.before), number(measure.after), change_text(measure) + unsure


def fit_html(result: FitResult, model: Path | None, report: Path) -> str:
    """A result as a notebook shows it."""
    return HTML.render(result=result, headline=headline(result), model=model, report=report)
