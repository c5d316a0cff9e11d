"""The figures of a fit as PNG files, for places where no page can be shown; what there are no numbers of has none."""

import math
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING

from sentloom.fitting.result import Curve, FitResult, Histogram, Measure, Run
from sentloom.report import formatting, labels, plots
from sentloom.report.plots import COLOURS, FAINT, INK, PAPER, plain_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

BASE, FITTED = "#a3abb3", COLOURS[0]
COLUMNS = 2  # of curves beside each other
LABEL_WIDTH = 30  # letters, before a label is broken


def figures(result: FitResult) -> dict[str, "Figure"]:
    """By name, in the order of the report."""
    found: dict[str, Figure] = {}
    measures = [one for group in result.parts.values() for one in group]
    curves = [curve for curve in result.curves if sum(map(math.isfinite, curve.loss)) > 1]
    if measures:
        found["scores"] = scores(measures)
    if any(run.difference is not None for run in result.runs):
        found["routes"] = routes(result)
    if curves:
        found["training"] = training(curves)
    if trail := next((one for one in result.trails if one.points and one.route == result.winner), None):
        points = [(uniformity, alignment) for _, alignment, uniformity in trail.points]
        found["trajectory"] = plots.trajectory(trail.route, points, [label for label, *_ in trail.points])
    if result.histogram:
        found["similarities"] = similarities(result.histogram)
    return found


def scores(measures: Sequence[Measure]) -> "Figure":
    """Bars before and after with their intervals."""
    figure, (axes,) = _figure(7.2, 0.9 + 0.62 * len(measures), "Before (grey) and after (blue), with 95% intervals", 1)
    for row, one in enumerate(measures):
        _bar(axes, row - 0.19, one.before, one.before_low, one.before_high, BASE)
        _bar(axes, row + 0.19, one.after, one.after_low, one.after_high, FITTED)
    axes.set_yticks(range(len(measures)), [textwrap.fill(one.label, LABEL_WIDTH) for one in measures])
    axes.set_ylim(len(measures) - 0.5, -0.5)
    axes.margins(x=0.12)
    axes.grid(axis="y", visible=False)
    return figure


def _bar(axes: "Axes", height: float, value: float, low: float, high: float, colour: str) -> None:
    axes.barh(height, value, 0.34, color=colour)
    axes.plot([low, high], [height, height], color=INK, lw=1.3, solid_capstyle="butt")
    _say(axes, formatting.number(value), max(high, 0.0), height)


def _say(axes: "Axes", text: str, x: float, y: float) -> None:
    """Words to the right of a place."""
    axes.annotate(text, (x, y), (6, 0), textcoords="offset points", va="center", fontsize=8.5, color=INK)


def routes(result: FitResult) -> "Figure":
    """A row a run, by route and rung: its difference to the base with the interval, and what became of it."""
    found = [(route, run) for route, runs in result.ladder.items() for run in runs.values()]
    shown = [(route, run) for route, run in found if run.difference is not None]
    figure, (axes,) = _figure(7.2, 0.9 + 0.34 * len(shown), "Routes: difference to the base, with 95% intervals", 1)
    for row, (_, run) in enumerate(shown):
        _whisker(axes, row, run)
    axes.set_yticks(range(len(shown)), [_route_label(route, run) for route, run in shown])
    axes.set_ylim(len(shown) - 0.5, -0.5)
    axes.axvline(0, color=FAINT, lw=1, linestyle="--")
    axes.margins(x=0.2)
    axes.grid(axis="y", visible=False)
    return figure


def _route_label(route: str, run: Run) -> str:
    return f"{textwrap.shorten(route, LABEL_WIDTH, placeholder=' …')}, round {run.rung}"


def _whisker(axes: "Axes", row: int, run: Run) -> None:
    difference = run.difference or 0.0
    low, high = (difference if end is None else end for end in (run.low, run.high))
    colour = FITTED if run.is_best else FAINT
    axes.plot([low, high], [row, row], color=colour, lw=2)
    axes.plot(difference, row, "o", color=colour, ms=6, mfc=colour if run.is_best else PAPER, mew=1.6)
    _say(axes, f"{formatting.signed(difference)}  {run.verdict}", high, row)


def training(curves: Sequence[Curve]) -> "Figure":
    """A small picture a stage, each with a scale of its own: losses of different methods do not compare."""
    rows = -(-len(curves) // COLUMNS)
    figure, panels = _figure(7.2, 0.6 + 2.3 * rows, "Training loss", len(curves))
    for axes, curve in zip(panels, curves, strict=True):
        axes.plot(curve.steps[: len(curve.loss)], curve.loss[: len(curve.steps)], color=FITTED, lw=1.2)
        title = textwrap.fill(f"{curve.route}: {curve.stage}", 44)
        axes.set_title(title, loc="left", fontsize=9, color=INK)
        axes.set_xlabel("step", color=FAINT, fontsize=9)
    return figure


def similarities(found: Histogram) -> "Figure":
    """Cosines of related and unrelated pairs, before beside after."""
    figure, panels = _figure(7.2, 3.0, "Cosines of related and unrelated pairs", 2)
    for axes, name, side in zip(panels, ("before", "after"), (found.before, found.after), strict=True):
        for kind, share, colour in (("unrelated", side.unrelated, BASE), ("related", side.related, FITTED)):
            axes.stairs(share, found.edges, fill=True, color=colour, alpha=0.3)
            axes.stairs(share, found.edges, color=colour, lw=1.6)
            _name_peak(axes, kind, found.edges, share, FAINT if colour == BASE else colour)
        axes.set_title(f"{name}: overlap {side.overlap:.0f}%", loc="left", fontsize=9)
        axes.set_xlabel("cosine", color=FAINT, fontsize=9)
    panels[0].set_ylabel("% of pairs", color=FAINT, fontsize=9)
    panels[1].sharey(panels[0])
    panels[0].margins(y=0.12)
    return figure


def _name_peak(axes: "Axes", kind: str, edges: Sequence[float], share: Sequence[float], colour: str) -> None:
    """The name of a kind of pairs, above the peak of its histogram."""
    axes.annotate(
        kind, labels.peak(edges, share), (0, 4), textcoords="offset points", ha="center", fontsize=9, color=colour
    )


def _figure(width: float, height: float, title: str, panels: int) -> tuple["Figure", list["Axes"]]:
    """Plain axes on white, light lines behind, the title at the left."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), facecolor=PAPER, layout="constrained")
    figure.suptitle(title, x=0.02, ha="left", fontsize=12, fontweight="bold", color=INK)
    columns = min(COLUMNS, panels)
    made = [figure.add_subplot(-(-panels // columns), columns, place + 1) for place in range(panels)]
    for axes in made:
        plain_axes(axes)
    return figure, made
