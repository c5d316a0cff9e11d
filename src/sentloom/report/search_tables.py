"""Search results and mined negatives, for the terminal."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from sentloom.search.mining import MineReport

TEXT_WIDTH = 160  # characters


def answers(query: str, found: Sequence[tuple[float, str, str]]) -> RenderableType:
    """The results of a query: cosine, place or name, text."""
    table = Table(title=Text(f"“{query}”"), title_justify="left", title_style="bold", show_header=False, box=None)
    for column in ("cosine", "place", "text"):
        table.add_column(column, overflow="fold")  # a long path or word is wrapped, never cut
    for cosine, place, text in found:
        table.add_row(Text(f"{cosine:.2f}", "dim"), Text(place, "cyan"), Text(shortened(text)))
    return table


def shortened(text: str) -> str:
    """At most TEXT_WIDTH characters."""
    return text if len(text) <= TEXT_WIDTH else text[: TEXT_WIDTH - 3] + "..."


def mining(report: "MineReport") -> RenderableType:
    """How many negatives were found, and why candidates were skipped."""
    absent = report.rows - report.kept
    without = f"; the other {absent:,} are not in the output" if absent else ""
    rejected = f", {report.rejected:,} scored too high by the teacher" if report.rejected else ""
    return Text(
        f"{report.rows:,} pairs, {report.kept:,} with hard negatives ({report.negatives:,} in total){without}; skipped "
        f"candidates: {report.known_right:,} known positives, {report.too_near:,} within the margin{rejected}"
    )
