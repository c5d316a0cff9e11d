"""The figures of a fit as PNG files, for places that cannot show the page; figures without numbers are left out."""

import math
import textwrap
from collections.abc import Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any

from sentloom.evaluation.results import Cell
from sentloom.fitting.result import Curve, FitResult, Histogram, Measure, Run
from sentloom.report import formatting, geometry_plots, labels, plots
from sentloom.report.plots import COLOURS, FAINT, INK, PAPER, name_axes, name_rows, panels

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

BASE, FITTED = "#a3abb3", COLOURS[0]
COLUMNS = 2  # of training curves


def figures(result: FitResult) -> dict[str, "Figure"]:
    """By name, in the order of the report."""
    found: dict[str, Figure] = {}
    runs = [run for runs in result.ladder.values() for run in runs.values() if run.difference is not None]
    curves = [curve for curve in result.curves if sum(map(math.isfinite, curve.loss)) > 1]
    if measures := list(chain.from_iterable(result.parts.values())):
        found["scores"] = scores_figure(measures)
    if runs:
        found["routes"] = runs_figure(runs)
    if curves:
        found["training"] = training_figure(curves)
    if trail := next((one for one in result.trails if one.points and one.route == result.winner), None):
        points = [(uniformity, alignment) for _, alignment, uniformity in trail.points]
        found["trajectory"] = geometry_plots.trajectory(trail.route, points, [label for label, *_ in trail.points])
    if result.histogram:
        found["similarities"] = similarity_figure(result.histogram)
    return found


def scores_figure(measures: Sequence[Measure]) -> "Figure":
    """Bars before and after with their intervals."""
    cells = [
        (
            one.label,
            {
                "base": Cell(one.before, one.before_low, one.before_high),
                "fitted model": Cell(one.after, one.after_low, one.after_high),
            },
        )
        for one in measures
    ]
    return plots.score_bars("Scores before and after, with 95% intervals", cells, (BASE, FITTED))


def runs_figure(runs: Sequence[Run]) -> "Figure":
    """One row per run: its difference from the base with the interval, and its outcome."""
    figure, (axes,) = panels(7.2, 0.9 + 0.34 * len(runs), "Routes: difference from the base, with 95% intervals")
    for row, run in enumerate(runs):
        _whisker(axes, row, run)
    name_rows(axes, list(map(_run_name, runs)))
    axes.axvline(0, color=FAINT, lw=1, linestyle="--")
    axes.margins(x=0.2)
    return figure


def _run_name(run: Run) -> str:
    """At most two lines. Merged models, which take no steps, belong to no round; what they are made of comes last."""
    if run.steps == 0:
        return textwrap.shorten(run.route, 2 * plots.LABEL_WIDTH, placeholder=" …")
    return f"{textwrap.shorten(run.route, plots.LABEL_WIDTH - 10, placeholder=' …')}, round {run.rung}"


def _whisker(axes: "Axes", row: int, run: Run) -> None:
    difference = run.difference or 0.0
    low, high = (difference if end is None else end for end in (run.low, run.high))
    colour = FITTED if run.is_best else FAINT
    axes.plot([low, high], [row, row], color=colour, lw=2)
    axes.plot(difference, row, "o", color=colour, ms=6, mfc=colour if run.is_best else PAPER, mew=1.6)
    plots.name_beside(axes, f"{formatting.signed(difference)}  {run.verdict}", high, row)


def training_figure(curves: Sequence[Curve]) -> "Figure":
    """One panel per stage, each with its own scale: losses of different methods cannot be compared."""
    columns = min(COLUMNS, len(curves))
    rows = -(-len(curves) // columns)
    figure, made = panels(7.2, 0.6 + 2.3 * rows, "Training loss", rows, columns)
    for axes in made[len(curves) :]:
        axes.remove()
    for axes, curve in zip(made, curves, strict=False):
        axes.plot(curve.steps[: len(curve.loss)], curve.loss[: len(curve.steps)], color=FITTED, lw=1.2)
        axes.set_title(textwrap.fill(f"{curve.route}: {curve.stage}", 44), loc="left", fontsize=9, color=INK)
        name_axes(axes, "step")
    return figure


def similarity_figure(found: Histogram) -> "Figure":
    """Cosines of related and unrelated pairs, before and after."""
    figure, made = panels(7.2, 3.0, "Cosines of related and unrelated pairs", 1, 2, sharey=True)
    for axes, name, side in zip(made, ("before", "after"), (found.before, found.after), strict=True):
        for kind, share, colour in (("unrelated", side.unrelated, BASE), ("related", side.related, FITTED)):
            axes.stairs(share, found.edges, fill=True, color=colour, alpha=0.3)
            axes.stairs(share, found.edges, color=colour, lw=1.6)
            style: dict[str, Any] = {"ha": "center", "fontsize": 9, "color": FAINT if colour == BASE else colour}
            axes.annotate(kind, labels.peak(found.edges, share), (0, 4), textcoords="offset points", **style)
        axes.set_title(f"{name}: overlap {side.overlap:.0f}%", loc="left", fontsize=9)
        name_axes(axes, "cosine", "% of pairs" if name == "before" else "")
    made[0].margins(y=0.12)
    return figure
