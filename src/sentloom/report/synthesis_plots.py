"""The figure of a synthesis: how the scores of each kind lie, and what became of the candidates."""

import textwrap
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from sentloom.report.plots import COLOURS, FAINT, INK, PAPER, plain_axes
from sentloom.writing.filters import REASONS
from sentloom.writing.summary import BINS, Summary

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

KEPT_COLOUR = COLOURS[2]
# Of what was dropped, by reason: greys, so that what was kept stands out; neighbours differ.
SHADES = dict(zip(REASONS, ("#3d3d3d", "#7d7d7d", "#b8b8b8", "#5f5f5f", "#cccccc", "#8f8f8f", "#e2e2e2"), strict=True))
DARK = (KEPT_COLOUR, *(shade for shade in SHADES.values() if shade < "#90"))  # numbers on these are white
LEAST_LABELLED = 0.06  # share of a bar in which a number has room


def synthesis(summary: Summary) -> "Figure":
    """Above, candidates by score with the threshold; below, a bar a kind: kept, and dropped by which filter."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.2, 5.0), facecolor=PAPER, layout="constrained")
    title = f"Synthesis: {summary.sources:,} sources, {summary.triplets:,} triplets, {summary.pairs:,} pairs"
    figure.suptitle(textwrap.fill(title, 61), x=0.02, ha="left", fontsize=12, fontweight="bold", color=INK)
    above, below = figure.subplots(2, 1, height_ratios=(2.4, 1))
    _scores(above, summary)
    _yields(below, summary)
    return figure


def _scores(axes: "Axes", summary: Summary) -> None:
    edges = np.linspace(0, 1, BINS + 1)
    plain_axes(axes)
    for place, (kind, one) in enumerate(summary.kinds.items()):
        share = 100 * np.array(one.histogram) / max(1, one.written)
        colour, line = COLOURS[place], ("-", (0, (4, 1.5)))[place % 2]
        axes.stairs(share, edges, fill=True, color=colour, alpha=0.13)
        axes.stairs(share, edges, color=colour, lw=1.8, linestyle=line, label=kind)
    threshold = summary.filtering.threshold
    axes.axvline(threshold, color=INK, lw=1, linestyle=":")
    axes.annotate(
        f"kept from {threshold:g}", (threshold, 1), (-5, -4), xycoords=("data", "axes fraction"),
        textcoords="offset points", ha="right", va="top", fontsize=9, color=INK,
    )  # fmt: skip
    axes.set_xlim(0, 1)
    axes.set_ylim(bottom=0)
    axes.set_xlabel("score: the probability of the wanted verdict", color=FAINT, fontsize=9)
    axes.set_ylabel("% of candidates", color=FAINT, fontsize=9)
    axes.legend(
        loc="lower left", bbox_to_anchor=(0, 1), ncols=2, frameon=False, fontsize=9, borderaxespad=0.2, labelcolor=INK
    )


def _yields(axes: "Axes", summary: Summary) -> None:
    plain_axes(axes)
    kinds = summary.kinds
    starts = np.zeros(len(kinds))
    written = np.array([max(1, one.written) for one in kinds.values()])
    parts = {"kept": [one.kept for one in kinds.values()]}
    parts |= {reason: [one.dropped.get(reason, 0) for one in kinds.values()] for reason in REASONS}
    for name in [name for name in parts if name == "kept" or any(parts[name])]:
        shares = np.array(parts[name]) / written
        colour = SHADES.get(name, KEPT_COLOUR)
        axes.barh(range(len(kinds)), 100 * shares, 0.62, 100 * starts, color=colour, label=name, edgecolor=PAPER)
        _labels(axes, starts, shares, PAPER if colour in DARK else INK)
        starts += shares
    axes.set_yticks(range(len(kinds)), list(kinds))
    axes.set_ylim(len(kinds) - 0.5, -0.5)
    axes.set_xlim(0, 100)
    axes.set_xlabel("% of candidates", color=FAINT, fontsize=9)
    axes.grid(axis="y", visible=False)
    axes.legend(
        loc="lower left", bbox_to_anchor=(0, 1), ncols=8, frameon=False, fontsize=8.5, borderaxespad=0.2,
        handlelength=1, handleheight=1, columnspacing=0.9, labelcolor=INK,
    )  # fmt: skip


def _labels(axes: "Axes", starts: NDArray[np.float64], shares: NDArray[np.float64], ink: str) -> None:
    for row, (start, share) in enumerate(zip(starts, shares, strict=True)):
        if share >= LEAST_LABELLED:
            x = 100 * (start + share / 2)
            axes.text(x, row, f"{100 * share:.0f}", ha="center", va="center", fontsize=9, color=ink)
