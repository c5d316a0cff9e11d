"""The figure of a synthesis: how the scores of each kind are distributed, and how many candidates were kept."""

from itertools import cycle, islice
from typing import TYPE_CHECKING

import numpy as np

from sentloom.report.plots import COLOURS, INK, PAPER, legend, name_axes, name_rows, panels
from sentloom.writing.filters import REASONS
from sentloom.writing.triplets import BINS, Summary

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

KEPT_COLOUR = COLOURS[2]
# Shades of grey for the reasons why candidates were dropped, so that kept ones stand out; neighbours differ.
GREYS = ("#3d3d3d", "#7d7d7d", "#b8b8b8", "#5f5f5f", "#cccccc", "#8f8f8f", "#e2e2e2")
DARK = (KEPT_COLOUR, *(shade for shade in GREYS if shade < "#90"))  # numbers on these are white
LEAST_LABELLED = 0.06  # share of a bar that has room for a number


def synthesis_figure(summary: Summary) -> "Figure":
    """Above, candidates by score with the threshold; below, a bar per kind: kept, and dropped by which filter."""
    triplets = f"{summary.triplets:,} triplets, " if "contradiction" in summary.kinds else ""
    title = f"Synthesis: {summary.sources:,} sources, {triplets}{summary.pairs:,} pairs"
    figure, (above, below) = panels(7.2, 5.2, title, 2, height_ratios=(2.4, 1))
    _scores(above, summary)
    _yields(below, summary)
    return figure


def _scores(axes: "Axes", summary: Summary) -> None:
    edges = np.linspace(0, 1, BINS + 1)
    for place, (kind, tally) in enumerate(summary.kinds.items()):
        share = 100 * np.array(tally.histogram) / max(1, tally.written)
        colour, line = COLOURS[place], ("-", (0, (4, 1.5)))[place % 2]
        axes.stairs(share, edges, fill=True, color=colour, alpha=0.13)
        axes.stairs(share, edges, color=colour, lw=1.8, linestyle=line, label=kind)
    threshold, what = summary.least_score
    axes.axvline(threshold, color=INK, lw=1, linestyle=":")
    axes.annotate(
        f"{what}", (threshold, 1), (-5, -4), xycoords=("data", "axes fraction"),
        textcoords="offset points", ha="right", va="top", fontsize=9, color=INK,
    )  # fmt: skip
    axes.set_xlim(0, 1)
    axes.set_ylim(bottom=0)
    name_axes(axes, summary.score, "% of candidates")
    legend(axes, 2, handlelength=2)


def _yields(axes: "Axes", summary: Summary) -> None:
    kinds = summary.kinds
    starts = np.zeros(len(kinds))
    written = np.array([max(1, tally.written) for tally in kinds.values()])
    parts = {"kept": [tally.kept for tally in kinds.values()]}
    parts |= {reason: [tally.dropped.get(reason, 0) for tally in kinds.values()] for reason in REASONS}
    shown = [name for name in parts if name == "kept" or any(parts[name])]
    for name, colour in zip(shown, (KEPT_COLOUR, *islice(cycle(GREYS), len(shown) - 1)), strict=True):
        shares = np.array(parts[name]) / written
        bars = axes.barh(range(len(kinds)), 100 * shares, 0.62, 100 * starts, color=colour, label=name, edgecolor=PAPER)
        numbers = [f"{100 * share:.0f}" if share >= LEAST_LABELLED else "" for share in shares]
        axes.bar_label(bars, numbers, label_type="center", fontsize=9, color=PAPER if colour in DARK else INK)
        starts += shares
    name_rows(axes, list(kinds))
    axes.set_xlim(0, 100)
    name_axes(axes, "% of candidates")
    legend(axes, 6, fontsize=8.5, handlelength=1, handleheight=1, columnspacing=0.9)
