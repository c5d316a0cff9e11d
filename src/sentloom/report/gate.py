"""What the gate found, for the terminal and as Markdown."""

from rich.console import Group, RenderableType
from rich.text import Text

from sentloom.markdown import plain, table
from sentloom.report.formatting import change_text, number
from sentloom.report.tables import plain_table
from sentloom.systems.gate import Gated

HEAD = ("task", "old", "new", "difference")


def gate_table(gated: Gated) -> RenderableType:
    """Both scores on every task."""
    scores = plain_table(f"{gated.old} (old) and {gated.new} (new)", *HEAD, numbers=3)
    for row in _rows(gated):
        scores.add_row(*row)
    notes = [Text(_left_out(gated))] if gated.left_out else []
    return Group(*([scores] if gated.total else []), *notes)


def gate_markdown(gated: Gated) -> str:
    """A summary, such as for the page of a CI job."""
    title = f"## Search gate: {gated.finding}"
    parts = [title, plain(f"Old: {gated.old}. New: {gated.new}."), plain(gated.reason)]
    parts += [table(list(HEAD), _rows(gated))] if gated.total else []
    parts += [plain(_left_out(gated))] if gated.left_out else []
    return "\n\n".join([*parts, f"`{gated.line}`"]) + "\n"


def _rows(gated: Gated) -> list[list[str]]:
    shown = [*gated.measures, *([gated.total] if gated.total and len(gated.measures) > 1 else [])]
    return [[row.label, number(row.before), number(row.after), change_text(row)] for row in shown]


def _left_out(gated: Gated) -> str:
    return f"{gated.left_out:,} rows were left out, because one of the two had trained on them."
