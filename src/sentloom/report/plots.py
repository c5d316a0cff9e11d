"""Figures as PNG files: restrained, readable without colour vision, the same bytes for the same numbers.

Each function makes a figure; `write` puts it into a file.
"""

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sentloom.errors import InputError
from sentloom.evaluation.geometry import ScoredPairs, UniformityVariant
from sentloom.evaluation.layers import Sweep
from sentloom.evaluation.metrics import Numbers
from sentloom.files import new_file
from sentloom.report import labels
from sentloom.search.vectors import Encode

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

RESOLUTION = 200  # dots an inch: twice that of a screen
PAPER, INK, FAINT, LINE = "#ffffff", "#262626", "#6b6b6b", "#e4e4e4"
# Okabe and Ito's colours, which stay apart under every kind of colour blindness; yellow is too light for white paper.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
MARKERS = ("o", "s", "^", "D", "v", "P")
PAIRS_OF_A_KIND = 20  # as in figure 5 of the self-guided paper
HIGH, LOW = 4.0, 1.0
MOST_LABELS = 12  # of a long way, only some checkpoints are named


@dataclass(frozen=True)
class Bar:
    """A score and, where there is one, its interval."""

    value: float
    low: float | None = None
    high: float | None = None


def write(figure: "Figure", path: Path) -> None:
    """Write a PNG, whole or not at all. It holds no date and no version, so equal figures are equal files."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    _literal(figure)
    with new_file(path) as part:
        FigureCanvasAgg(figure).print_figure(
            part, format="png", dpi=RESOLUTION, facecolor=PAPER, metadata={"Software": None}
        )


def _literal(figure: "Figure") -> None:
    """Names with dollar signs are names, not formulas."""
    from matplotlib.text import Text

    for text in figure.findobj(Text):
        text.set_parse_math(False)


def align_uniform(
    points: Mapping[str, tuple[float, float]], variant: UniformityVariant = UniformityVariant.REFERENCE
) -> "Figure":
    """Models by their (uniformity, alignment): less is better on both, so the best stand at the lower left."""
    figure, axes = _plane("Alignment and uniformity", variant)
    for place, (x, y) in enumerate(points.values()):
        axes.scatter(x, y, s=52, color=_colour(place), marker=_marker(place), zorder=3, linewidths=0)
    _place_labels(axes, np.array(list(points.values())), list(points))
    return figure


def trajectory(
    name: str,
    points: Sequence[tuple[float, float]],
    labels: Sequence[str],
    variant: UniformityVariant = UniformityVariant.REFERENCE,
) -> "Figure":
    """A model's checkpoints by their (uniformity, alignment), in order, with arrows from each to the next."""
    figure, axes = _plane(f"Alignment and uniformity: {name}", variant)
    shade = np.linspace(0.35, 1.0, len(points))
    for (start, end), alpha in zip(pairwise(points), shade[1:], strict=True):
        style = {"arrowstyle": "-|>", "color": COLOURS[0], "alpha": alpha, "lw": 1.4, "shrinkA": 4, "shrinkB": 4}
        axes.annotate("", xy=end, xytext=start, arrowprops=style)
    at = np.array(points)
    for (x, y), alpha in zip(points, shade, strict=True):
        axes.scatter(x, y, s=34, color=COLOURS[0], alpha=float(alpha), zorder=3, linewidths=0)
    step = -(-len(labels) // MOST_LABELS)
    shown = [label if place % step == 0 or place == len(at) - 1 else "" for place, label in enumerate(labels)]
    _place_labels(axes, at, shown, joined=True)
    return figure


def _plane(title: str, variant: UniformityVariant) -> tuple["Figure", "Axes"]:
    figure, axes = _figure(6.4, 4.8, title)
    better = "↑" if variant == UniformityVariant.PRINTED else "↓"  # as printed, alignment has a minus sign
    axes.set_xlabel("uniformity  (← better)", color=FAINT, fontsize=9)
    axes.set_ylabel(f"alignment  ({better} better)", color=FAINT, fontsize=9)
    axes.margins(0.18)
    return figure, axes


def heat_map(name: str, found: Sweep) -> "Figure":
    """Spearman's correlation of every layer and pooling, as colours and as numbers; the best one is framed."""
    from matplotlib.patches import Rectangle

    rows, columns = found.spearman.shape
    figure, axes = _figure(1.6 + 1.15 * columns, 1.1 + 0.36 * rows, f"Spearman by layer: {name}")
    shown = axes.imshow(found.spearman, cmap="Blues", aspect="auto", origin="lower")
    shades = np.asarray(shown.norm(found.spearman))  # 0 to 1
    for (row, column), value in np.ndenumerate(found.spearman):
        ink = INK if shades[row, column] < 0.65 else PAPER
        axes.text(column, row, f"{value:.1f}", ha="center", va="center", fontsize=9, color=ink)
    row, column = np.unravel_index(found.spearman.argmax(), found.spearman.shape)
    axes.add_patch(
        Rectangle((column - 0.5, row - 0.5), 1, 1, fill=False, edgecolor=COLOURS[1], lw=2.2, zorder=4, clip_on=False)
    )
    axes.set_xticks(range(columns), found.poolings)
    axes.set_yticks(range(rows), [str(layer) for layer in found.layers])
    axes.set_ylabel("layer (0: embeddings)", color=FAINT, fontsize=9)
    axes.grid(visible=False)
    axes.spines[:].set_visible(False)
    return figure


def choose_pairs(gold: Numbers, count: int = PAIRS_OF_A_KIND, seed: int = 0) -> tuple[NDArray[Any], NDArray[Any]]:
    """Rows of high pairs (above 4, the highest first) and of low ones (below 1), equal scores in random order."""
    shuffled = np.random.default_rng(seed).permutation(len(gold))
    rising = shuffled[np.argsort(gold[shuffled], kind="stable")]
    low, high = rising[gold[rising] < LOW][:count], rising[gold[rising] > HIGH][::-1][:count]
    if not len(low) or not len(high):
        found = f"scores from {gold.min():g} to {gold.max():g}"
        raise InputError("pairs", found, "some above 4 and some below 1", "scale the scores, or take another file")
    return high, low


def chosen_vectors(encode: Encode, pairs: ScoredPairs) -> tuple[tuple[Numbers, Numbers], tuple[Numbers, Numbers]]:
    """The vectors of both sides of the high and of the low pairs, as `map_pairs` takes them."""
    high, low = (
        tuple(
            np.asarray(encode([side[row] for row in rows.tolist()]), np.float64) for side in (pairs.left, pairs.right)
        )
        for rows in choose_pairs(pairs.gold)
    )
    return (high[0], high[1]), (low[0], low[1])


def map_pairs(name: str, high: tuple[Numbers, Numbers], low: tuple[Numbers, Numbers]) -> "Figure":
    """The vectors of high and of low pairs, both sides (n, d), on a plane by t-SNE; partners are joined by a line."""
    places = _tsne(np.concatenate([*high, *low]))
    edges = np.cumsum([len(side) for side in (*high, *low)])[:-1]
    high_a, high_b, low_a, low_b = np.split(places, edges)
    figure, axes = _figure(6.4, 5.6, f"Pairs with high and low scores: {name}")
    kinds = ((high_a, high_b, COLOURS[0], "o", "high (above 4)"), (low_a, low_b, COLOURS[1], "s", "low (below 1)"))
    for a, b, colour, marker, label in kinds:
        axes.plot(*np.stack([a, b]).transpose(2, 0, 1), color=colour, lw=1, alpha=0.45, zorder=2)
        x, y = np.concatenate([a, b]).T
        axes.scatter(x, y, s=30, color=colour, marker=marker, label=label, zorder=3, linewidths=0)
    axes.spines[:].set_visible(False)
    axes.set_xticks([])
    axes.set_yticks([])
    axes.margins(0.06)
    _legend(axes, columns=2)
    return figure


def _tsne(vectors: Numbers) -> Numbers:
    """Places (n, 2) on a plane. The exact method runs in one thread, so the same vectors get the same places."""
    from sklearn.manifold import TSNE

    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True).clip(min=1e-12)
    perplexity = min(15.0, (len(unit) - 1) / 3)
    method = TSNE(2, perplexity=perplexity, init="pca", method="exact", random_state=0)
    places: Numbers = method.fit_transform(unit.astype(np.float64))
    return places


def score_bars(title: str, scores: Mapping[str, Mapping[str, Bar]]) -> "Figure":
    """Horizontal bars with intervals: scores[set][model], a group a set, a colour a model."""
    models = list(dict.fromkeys(model for of_set in scores.values() for model in of_set))
    thick = 0.8 / len(models)
    rows = sum(0.16 + 0.24 * len(models) for _ in scores)
    figure, axes = _figure(6.8, 1.1 + rows + (0.25 if len(models) > 1 else 0), title)
    for place, model in enumerate(models):
        at = [(number + (place - (len(models) - 1) / 2) * thick, of[model]) for number, of in _having(scores, model)]
        _draw_bars(axes, at, model, _colour(place), thick)
    axes.set_yticks(range(len(scores)), list(scores))
    axes.set_ylim(len(scores) - 0.5, -0.5)
    bars = [bar for of_set in scores.values() for bar in of_set.values()]
    ends = [0.0, *(end for bar in bars for end in (bar.value, bar.low, bar.high) if end is not None)]
    span = max(ends) - min(ends) or 1.0
    axes.set_xlim(min(ends) - (0.1 * span if min(ends) < 0 else 0), max(ends) + 0.1 * span)
    axes.grid(axis="y", visible=False)
    axes.tick_params(axis="y", colors=INK)
    if len(models) > 1:
        _legend(axes, columns=min(3, len(models)))
    return figure


def _having(scores: Mapping[str, Mapping[str, Bar]], model: str) -> list[tuple[int, Mapping[str, Bar]]]:
    return [(number, of_set) for number, of_set in enumerate(scores.values()) if model in of_set]


def _draw_bars(axes: "Axes", at: Sequence[tuple[float, Bar]], model: str, colour: str, thick: float) -> None:
    heights, bars = [height for height, _ in at], [bar for _, bar in at]
    axes.barh(heights, [bar.value for bar in bars], 0.86 * thick, color=colour, label=model, zorder=2)
    for height, bar in at:
        low, high = (bar.value if end is None else end for end in (bar.low, bar.high))
        axes.plot([low, high], [height, height], color=INK, lw=1.3, solid_capstyle="butt", zorder=3)
        axes.annotate(
            f"{bar.value:.1f}", (max(high, 0), height), (5, 0), textcoords="offset points", va="center", fontsize=8.5,
            color=INK,
        )  # fmt: skip


def _figure(width: float, height: float, title: str) -> tuple["Figure", "Axes"]:
    """One plain set of axes on white, light lines behind, the title at the left."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), facecolor=PAPER, layout="constrained")
    axes = figure.add_subplot()
    figure.suptitle(
        textwrap.fill(title, int(8.5 * width)), x=0.02, ha="left", fontsize=12, fontweight="bold", color=INK
    )
    plain_axes(axes)
    return figure, axes


def plain_axes(axes: "Axes") -> None:
    """Light lines behind, no frame but for two faint sides."""
    axes.set_axisbelow(True)
    axes.grid(color=LINE, lw=0.8)
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(LINE)
    axes.tick_params(colors=FAINT, labelsize=9, length=0, labelcolor=INK)


def _legend(axes: "Axes", columns: int) -> None:
    axes.legend(
        loc="lower left", bbox_to_anchor=(0, 1), ncols=columns, frameon=False, fontsize=9, borderaxespad=0.2,
        handlelength=1.2, labelcolor=INK,
    )  # fmt: skip


def _colour(place: int) -> str:
    return COLOURS[place % len(COLOURS)]


def _marker(place: int) -> str:
    """With colours used up, shapes still tell models apart."""
    return MARKERS[(place + place // len(COLOURS)) % len(MARKERS)]


def _place_labels(axes: "Axes", points: Numbers, names: Sequence[str], joined: bool = False) -> None:
    """Write each name beside its point, away from points, lines (if they are joined) and other labels."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    canvas = FigureCanvasAgg(axes.figure)
    style: dict[str, Any] = {"fontsize": 9, "color": INK, "zorder": 5, "ha": "center", "va": "center"}
    texts = [
        axes.annotate(name, at, (0, 0), textcoords="offset points", **style)
        for at, name in zip(points, names, strict=True)
        if name
    ]
    _literal(canvas.figure)
    canvas.draw()  # the layout must be known before lengths are
    dots = axes.transData.transform(points)
    taken = np.concatenate([labels.squares(dots, 12), labels.squares(labels.along(dots) if joined else dots, 4)])
    sizes = [text.get_window_extent(canvas.get_renderer()).size for text in texts]
    named = dots[[bool(name) for name in names]]
    pixels = axes.figure.dpi / 72  # per point
    boxes = labels.place(named, sizes, taken, axes.bbox.extents, 7 * pixels)
    for text, dot, box in zip(texts, named, boxes, strict=True):
        text.set_position(tuple(((box[:2] + box[2:]) / 2 - dot) / pixels))
