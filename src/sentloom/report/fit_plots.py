"""The figures of a fit, for the page and as PNG files; figures without numbers are left out.

They are drawn for the width of a phone, so that letters stay readable there; wider pages show two side by side.
"""

import math
import textwrap
from collections.abc import Sequence
from itertools import chain
from statistics import fmean
from typing import TYPE_CHECKING, Any

import numpy as np

from sentloom.evaluation.results import Cell
from sentloom.fitting.measures import Measure
from sentloom.fitting.result import Curve, FitResult, Histogram, Run, Shares, Trail
from sentloom.report import classifiers, formatting, plots
from sentloom.report.plots import BASE, COLOURS, FAINT, PAPER, name_axes, name_rows, panels

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FITTED = COLOURS[0]
WIDTH, HEIGHT = 4.4, 2.9  # inches
ROUTE_WIDTH = 20  # characters, before the name of a route is wrapped


def figures(result: FitResult) -> dict[str, "Figure"]:
    """By name, in the order of the report."""
    by_name: dict[str, Figure] = {}
    runs = [run for runs in result.ladder.values() for run in runs.values() if run.difference is not None]
    if measures := list(chain.from_iterable(result.parts.values())):
        by_name["scores"] = scores_figure(measures)
    if runs:
        by_name["routes"] = runs_figure(runs)
    curves = [curve for curve in result.curves if len(_finite(curve)) > 1]
    by_name |= {f"training-{number}": loss_figure(curve) for number, curve in enumerate(curves, 1)}
    if trails := [trail for trail in result.trails if trail.points]:
        by_name["trajectory"] = trails_figure(trails, result.winner)
    for number, summary in enumerate(result.classifiers, 1):
        by_name |= classifiers.figures(summary, number)
    return by_name | (similarity_figures(result.histogram) if result.histogram else {})


def scores_figure(measures: Sequence[Measure]) -> "Figure":
    """Bars before and after with their intervals."""
    cells = [
        (
            measure.label,
            {
                "base": Cell(measure.before, measure.before_low, measure.before_high),
                "fitted model": Cell(measure.after, measure.after_low, measure.after_high),
            },
        )
        for measure in measures
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
        return _two_lines(run.route)
    return f"{textwrap.shorten(run.route, plots.LABEL_WIDTH - 10, placeholder=' …')}, round {run.rung}"


def _two_lines(name: str) -> str:
    return textwrap.shorten(name, 2 * plots.LABEL_WIDTH, placeholder=" …")


def _whisker(axes: "Axes", row: int, run: Run) -> None:
    difference = run.difference or 0.0
    low, high = (difference if end is None else end for end in (run.low, run.high))
    colour = FITTED if run.is_best else FAINT
    axes.plot([low, high], [row, row], color=colour, lw=2)
    axes.plot(difference, row, "o", color=colour, ms=6, mfc=colour if run.is_best else PAPER, mew=1.6)
    plots.name_beside(axes, f"{formatting.signed(difference)}  {run.verdict}", high, row)


def loss_figure(curve: Curve) -> "Figure":
    """The loss by step: every value as a thin line, a running mean, and its last value as a number."""
    points = _finite(curve)
    smooth = _running_mean(points)
    first, last = (formatting.number(loss, 3) for _, loss in (smooth[0], smooth[-1]))
    figure, (axes,) = panels(WIDTH, HEIGHT, f"{curve.route}, {curve.stage}: from {first} to {last}")
    axes.plot(*zip(*points, strict=True), color=FITTED, lw=0.8, alpha=0.35)
    axes.plot(*zip(*smooth, strict=True), color=FITTED, lw=2)
    axes.plot(*smooth[-1], "o", color=FITTED, ms=6)
    style: dict[str, Any] = {"ha": "right", "fontsize": 9, "color": FITTED}
    axes.annotate(last, smooth[-1], (0, 7), textcoords="offset points", **style)
    name_axes(axes, "step", "loss")
    return figure


def _finite(curve: Curve) -> list[tuple[int, float]]:
    return [(step, loss) for step, loss in zip(curve.steps, curve.loss, strict=False) if math.isfinite(loss)]


def _running_mean(points: Sequence[tuple[int, float]]) -> list[tuple[int, float]]:
    """Each point with the mean of those around it, a fifteenth of the curve to both sides."""
    reach = len(points) // 15
    return [
        (step, fmean(loss for _, loss in points[max(0, place - reach) : place + reach + 1]))
        for place, (step, _) in enumerate(points)
    ]


def trails_figure(trails: Sequence[Trail], winner: str | None) -> "Figure":
    """Routes by uniformity (x) and alignment (y), named at their ends; the winner is highlighted and drawn last."""
    figure, axes = plots.plane("Alignment and uniformity of every route", width=WIDTH, height=HEIGHT)
    ordered = sorted(trails, key=lambda trail: trail.route == winner)
    lines = [[(uniformity, alignment) for _, alignment, uniformity in trail.points] for trail in ordered]
    names: dict[tuple[float, float], str] = {}
    for trail, line in zip(ordered, lines, strict=True):
        colour, fill, width = (FITTED, FITTED, 2.0) if trail.route == winner else (BASE, PAPER, 1.2)
        axes.plot(*zip(*line, strict=True), "o-", color=colour, lw=width, ms=5, mfc=fill)
        name = textwrap.fill(_two_lines(trail.route), ROUTE_WIDTH)
        names |= {line[0]: trail.points[0][0], **dict.fromkeys(line[1:-1], ""), line[-1]: name}
    plots.name_points(axes, np.array(list(names)), list(names.values()), lines)
    return figure


def similarity_figures(histogram: Histogram) -> dict[str, "Figure"]:
    """Cosines of related and unrelated pairs, before and after, with the same axes."""
    sides = {"before": histogram.before, "after": histogram.after}
    top = 1.12 * max(share for side in sides.values() for share in (*side.related, *side.unrelated))
    return {
        f"similarities-{name}": similarity_figure(name.capitalize(), histogram.edges, side, top)
        for name, side in sides.items()
    }


def similarity_figure(name: str, edges: Sequence[float], side: Shares, top: float) -> "Figure":
    """Percentages of related and unrelated pairs by cosine, up to a height that figures to compare have in common."""
    figure, (axes,) = panels(WIDTH, HEIGHT, f"{name}: overlap {side.overlap:.0f}%")
    for kind, share, colour in (("unrelated", side.unrelated, BASE), ("related", side.related, FITTED)):
        axes.stairs(share, edges, fill=True, color=colour, alpha=0.3)
        axes.stairs(share, edges, color=colour, lw=1.6)
        if any(share):
            style: dict[str, Any] = {"ha": "center", "fontsize": 9, "color": FAINT if colour == BASE else colour}
            axes.annotate(kind, plots.peak(edges, share), (0, 4), textcoords="offset points", **style)
    axes.set_ylim(0, top)
    name_axes(axes, "cosine", "% of pairs")
    return figure
