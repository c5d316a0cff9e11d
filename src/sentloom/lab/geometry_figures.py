"""Geometry as figures, as tables for the terminal and as JSON: alignment and uniformity, layers, pairs on a plane."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from rich.console import Group, RenderableType
from rich.text import Text

from sentloom.evaluation.geometry import Geometry, UniformityVariant
from sentloom.lab.geometry import PairMap, Sweep
from sentloom.report.plots import COLOURS, INK, PAPER, legend, name_axes, name_points, panels, plane
from sentloom.report.tables import plain_table, write_text
from sentloom.terminal import json_text

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MARKERS = ("o", "s", "^", "D", "v", "P")
MOST_LABELS = 12  # of many checkpoints, only some are named
NOTES = {
    UniformityVariant.SENTENCE_T5: "variant sentence-t5: vectors are also paired with themselves, as in its code",
    UniformityVariant.PRINTED: "variant printed: distances not squared, alignment negated, as the papers print them",
}


def align_uniform(
    points: Mapping[str, tuple[float, float]], variant: UniformityVariant = UniformityVariant.REFERENCE
) -> "Figure":
    """Models by their (uniformity, alignment): lower is better for both, so the best are at the lower left."""
    figure, axes = plane("Alignment and uniformity", variant)
    for place, (x, y) in enumerate(points.values()):
        turn, colour = divmod(place, len(COLOURS))  # when all colours are used, shapes tell models apart
        marker = MARKERS[(place + turn) % len(MARKERS)]
        axes.scatter(x, y, s=52, color=COLOURS[colour], marker=marker, zorder=3, linewidths=0)
    name_points(axes, np.array(list(points.values())), list(points))
    return figure


def trajectory(
    name: str,
    points: Sequence[tuple[float, float]],
    labels: Sequence[str],
    variant: UniformityVariant = UniformityVariant.REFERENCE,
) -> "Figure":
    """A model's checkpoints by their (uniformity, alignment), with arrows from each to the next."""
    figure, axes = plane(f"Alignment and uniformity: {name}", variant)
    shade = np.linspace(0.35, 1.0, len(points))
    for (start, end), alpha in zip(pairwise(points), shade[1:], strict=True):
        style = {"arrowstyle": "-|>", "color": COLOURS[0], "alpha": alpha, "lw": 1.4, "shrinkA": 4, "shrinkB": 4}
        axes.annotate("", xy=end, xytext=start, arrowprops=style)
    for (x, y), alpha in zip(points, shade, strict=True):
        axes.scatter(x, y, s=34, color=COLOURS[0], alpha=float(alpha), zorder=3, linewidths=0)
    step, last = -(-len(labels) // MOST_LABELS), len(labels) - 1
    shown = [label if place % step == 0 or place == last else "" for place, label in enumerate(labels)]
    name_points(axes, np.array(points), shown, [points])
    return figure


def heat_map(name: str, sweep: Sweep) -> "Figure":
    """Spearman's correlation of every layer and pooling, as colours and numbers; the best one is framed."""
    from matplotlib.patches import Rectangle

    rows, columns = sweep.spearman.shape
    figure, (axes,) = panels(1.6 + 1.15 * columns, 1.1 + 0.36 * rows, f"Spearman by layer: {name}")
    shown = axes.imshow(sweep.spearman, cmap="Blues", aspect="auto", origin="lower")
    shades = np.asarray(shown.norm(sweep.spearman))  # 0 to 1
    for (row, column), value in np.ndenumerate(sweep.spearman):
        ink = INK if shades[row, column] < 0.65 else PAPER
        axes.text(column, row, f"{value:.1f}", ha="center", va="center", fontsize=9, color=ink)
    layer, pooling, _ = sweep.best
    corner = sweep.poolings.index(pooling) - 0.5, sweep.layers.index(layer) - 0.5
    axes.add_patch(Rectangle(corner, 1, 1, fill=False, edgecolor=COLOURS[1], lw=2.2, zorder=4, clip_on=False))
    axes.set_xticks(range(columns), sweep.poolings)
    axes.set_yticks(range(rows), [str(layer) for layer in sweep.layers])
    name_axes(axes, y="layer (0: embeddings)")
    axes.grid(visible=False)
    axes.spines[:].set_visible(False)
    return figure


def pairs_on_a_plane(name: str, pairs: PairMap) -> "Figure":
    """High and low scored pairs; the two sides of a pair are joined by a line."""
    figure, (axes,) = panels(6.4, 5.6, f"Pairs with high and low scores: {name}")
    kinds = ((pairs.high, COLOURS[0], "o", "high (above 4)"), (pairs.low, COLOURS[1], "s", "low (below 1)"))
    for places, colour, marker, label in kinds:
        axes.plot(*places.transpose(2, 0, 1), color=colour, lw=1, alpha=0.45, zorder=2)
        x, y = places.reshape(-1, 2).T
        axes.scatter(x, y, s=30, color=colour, marker=marker, label=label, zorder=3, linewidths=0)
    axes.spines[:].set_visible(False)
    axes.set_xticks([])
    axes.set_yticks([])
    axes.margins(0.06)
    legend(axes, columns=2)
    return figure


def geometry(geometries: Mapping[str, Geometry]) -> RenderableType:
    """A table with one row per model."""
    first = next(iter(geometries.values()))
    columns = ("alignment", "uniformity", "cosine", "isotropy", "rank")
    head = f"Geometry: {first.positives:,} positive pairs, {first.sentences:,} sentences"
    table = plain_table(head, "model", *columns, numbers=len(columns))
    for name, measured in geometries.items():
        numbers = (measured.alignment, measured.uniformity, measured.mean_cosine, measured.isotropy)
        rank = f"{measured.effective_rank:.1f} of {measured.dimension}"
        table.add_row(Text(name), *(f"{x:.3f}" for x in numbers), rank)
    return Group(table, Text(NOTES[first.variant])) if first.variant in NOTES else table


def sweep(model: str, by_layer: Sweep) -> RenderableType:
    """A table with one row per layer; the best score is bold."""
    table = plain_table(f"Layers of {model}: Spearman", "layer", *by_layer.poolings, numbers=len(by_layer.poolings))
    best = by_layer.spearman.max()
    for layer, scores in zip(by_layer.layers, by_layer.spearman, strict=True):
        table.add_row(str(layer), *(Text(f"{x:.2f}", style="bold" if x == best else "") for x in scores))
    layer, pooling, score = by_layer.best
    return Group(table, Text(f"best: {pooling} pooling of layer {layer}, {score:.2f}"))


def write_numbers(path: Path, geometries: Mapping[str, Geometry], layers: Mapping[str, Sweep]) -> None:
    """Every number as JSON, with the scores of layers (layer, pooling) if there are any."""
    numbers = {
        model: {**asdict(measured), "layers": layers[model].spearman.tolist() if model in layers else None}
        for model, measured in geometries.items()
    }
    write_text(path, json_text(numbers))
