"""A choice among searches: for the terminal, as choose.json and choose.md, and as a picture of score and latency."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from rich.console import Group, RenderableType
from rich.text import Text

from sentloom.fitting.measures import metric_name
from sentloom.markdown import plain, table
from sentloom.report.formatting import NONE, interval_text, number, signed
from sentloom.report.plots import COLOURS, FAINT, name_axes, name_points, panels, write
from sentloom.report.tables import plain_table, write_text
from sentloom.systems.choose import Choice, Standing
from sentloom.terminal import json_text

if TYPE_CHECKING:
    from matplotlib.figure import Figure

HEAD = ("search", "score", "from the best", "texts/s", "query p50", "p95", "weights", "1M vectors")
JSON, MARKDOWN, PICTURE = FILES = "choose.json", "choose.md", "choose.png"


def choice_table(choice: Choice) -> RenderableType:
    """Every search, the best first, and the advice."""
    shown = plain_table(_title(choice), *HEAD, numbers=len(HEAD) - 1)
    for standing in choice.standings:
        shown.add_row(*_cells(standing), style="" if standing.may_be_best else "dim")
    return Group(shown, *(Text(line) for line in _notes(choice)), Text(choice.advice, style="bold"))


def write_choice(choice: Choice, folder: Path) -> None:
    """Write all three files; a picture only if something is searched."""
    write_text(folder / JSON, json_text({**asdict(choice), "advised": choice.advised.name, "advice": choice.advice}))
    rows = [_cells(standing) for standing in choice.standings]
    parts = [f"# {plain(_title(choice))}", plain(choice.advice), table(list(HEAD), rows), *map(plain, _notes(choice))]
    write_text(folder / MARKDOWN, "\n\n".join(parts) + "\n")
    if all(standing.costs.latency for standing in choice.standings):
        write(picture(choice), folder / PICTURE)


def picture(choice: Choice) -> "Figure":
    """Score against latency, with the interval of each score."""
    figure, (axes,) = panels(7.0, 4.6, "Score and latency of each search")
    points = np.array([(1000 * standing.slowness, standing.score) for standing in choice.standings])
    for (x, y), standing in zip(points, choice.standings, strict=True):
        colour = COLOURS[0] if standing.may_be_best else FAINT
        axes.errorbar(x, y, [[y - standing.low], [standing.high - y]], fmt="o", color=colour, ms=5, lw=1)
    axes.set_xscale("log")
    name_axes(axes, "milliseconds of a query, p50  (← better)", f"{metric_name(choice.metric)}  (↑ better)")
    axes.margins(0.2)
    name_points(axes, points, [standing.name for standing in choice.standings])
    return figure


def _title(choice: Choice) -> str:
    return f"{metric_name(choice.metric)} of {len(choice.standings)} searches on {choice.rows:,} rows"


def _cells(standing: Standing) -> list[str]:
    costs, gap = standing.costs, NONE
    if standing.difference is not None:
        interval = interval_text(standing.difference_low, standing.difference_high)
        gap = f"{signed(standing.difference)} ({interval}){', stopped' if standing.stopped else ''}"
    p50, p95 = (NONE if costs.latency is None else f"{1000 * seconds:.0f} ms" for seconds in costs.latency or (0, 0))
    speed = NONE if costs.texts_per_second is None else f"{costs.texts_per_second:,.0f}"
    score = f"{number(standing.score)} ({interval_text(standing.low, standing.high)})"
    return [standing.name, score, gap, speed, p50, p95, _size(costs.weights_bytes), _size(costs.bytes_per_million)]


def _size(count: int) -> str:
    return f"{count / 1e6:,.0f} MB" if count else NONE


def _notes(choice: Choice) -> Sequence[str]:
    stopped = [standing for standing in choice.standings if standing.stopped]
    level = f"Intervals of differences are {100 * choice.level:.4g}% ones, so that all of them hold together at 95%."
    searches = {standing.name: standing.system for standing in choice.standings if standing.system != "vectors"}
    systems = [f"{name}: {system}." for name, system in searches.items()]
    late = [f"Stopped after {stopped[0].queries:,} queries, on which they are shown to be worse."] if stopped else []
    return [*systems, *late, level, "Times are those of this machine, with whatever else ran on it."]
