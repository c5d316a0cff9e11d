"""What all plots share: their look, writing them as PNG or inline SVG, and where labels go beside their points."""

import io
import re
import textwrap
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

import numpy as np
from markupsafe import Markup
from numpy.typing import ArrayLike, NDArray

from sentloom.evaluation.geometry import UniformityVariant
from sentloom.evaluation.metrics import Numbers
from sentloom.evaluation.results import Cell
from sentloom.files import new_file
from sentloom.terminal import printable

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Points = Sequence[tuple[float, float]]
Boxes = NDArray[np.float64]  # (n, 4): the low x, low y, high x and high y of each

RESOLUTION = 200  # dots per inch: twice that of a screen
PAPER, INK, FAINT, LINE = "#ffffff", "#262626", "#6b6b6b", "#e4e4e4"
# Okabe and Ito's colours, which differ under every kind of colour blindness; yellow is too light for white paper.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
BASE = "#a3abb3"  # what a model is compared with
# The same colours by their names in page.css, where they follow the light or dark theme.
THEME = {PAPER: "paper", INK: "ink", FAINT: "soft", LINE: "line", BASE: "base", COLOURS[0]: "accent"}
NOT_IN_XML = dict.fromkeys([0xFFFE, 0xFFFF], 0xFFFD)  # besides what `printable` replaces
LABEL_WIDTH = 30  # characters, before a label is wrapped
OUTSIDE = 4.0  # what lies outside the plot counts as much as covering four times the area
# Directions from a point to its label, the preferred ones first, then the same farther away.
SIDES = [
    (far * x, far * y)
    for far in (1, 2, 3)
    for x, y in ((1, 0), (-1, 0), (0, 1), (0, -1), (0.7, 0.7), (0.7, -0.7), (-0.7, 0.7), (-0.7, -0.7))
]


def write(figure: "Figure", path: Path) -> None:
    """Write a PNG, completely or not at all. It has no date and no version, so equal figures are equal files."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    _literal(figure)
    with new_file(path) as part:
        FigureCanvasAgg(figure).print_figure(
            part, format="png", dpi=RESOLUTION, facecolor=PAPER, metadata={"Software": None}
        )


def inline_svg(name: str, figure: "Figure") -> Markup:
    """A figure as part of an HTML page, with its title as its description; `name` is unique on the page.

    Its words are text, its colours are those of the page, and it is as wide as there is room.
    """
    from matplotlib import rc_context
    from matplotlib.backends.backend_svg import FigureCanvasSVG

    _literal(figure)
    written = io.StringIO()
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": name, "font.sans-serif": ["DejaVu Sans"]}):
        FigureCanvasSVG(figure).print_figure(written, format="svg", facecolor="none", metadata={"Date": None})
    drawn = ElementTree.fromstring(printable(written.getvalue()).translate(NOT_IN_XML))
    title = " ".join(figure.get_suptitle().split())
    root = ElementTree.Element(
        "svg", {"class": "plot", "role": "img", "aria-label": title, "viewBox": drawn.get("viewBox", "")}
    )
    ElementTree.SubElement(root, "title").text = title
    root.extend(_for_page(part) for part in drawn if not part.tag.endswith("}metadata"))
    return Markup(ElementTree.tostring(root, encoding="unicode", method="html"))


def _for_page(part: ElementTree.Element) -> ElementTree.Element:
    """An element without namespaces, unused names and digits that nobody sees, in the colours of the page."""
    kind = part.tag.rpartition("}")[2]
    kept = {name.rpartition("}")[2]: value for name, value in part.items() if (kind, name) != ("g", "id")}
    if "style" in kept:
        kept["style"] = re.sub("#[0-9a-f]{6}", _theme_colour, kept["style"])
    if "d" in kept:
        kept["d"] = re.sub(r"\s+", " ", re.sub(r"(\.\d\d)\d+", r"\1", kept["d"])).strip()
    made = ElementTree.Element(kind, kept)
    made.text = part.text if kind == "text" else None
    made.extend(_for_page(child) for child in part if not child.tag.endswith("}style"))
    return made


def _theme_colour(colour: re.Match[str]) -> str:
    return f"var(--{THEME[colour[0]]})" if colour[0] in THEME else colour[0]


def _literal(figure: "Figure") -> None:
    """Dollar signs are text and not formulas."""
    from matplotlib.text import Text

    for text in figure.findobj(Text):
        text.set_parse_math(False)


def panels(
    width: float, height: float, title: str, rows: int = 1, columns: int = 1, **grid: Any
) -> tuple["Figure", list["Axes"]]:
    """Plain axes on white with a faint grid, and the title at the left."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), facecolor=PAPER, layout="constrained")
    title = textwrap.fill(title, int(9 * width))
    figure.suptitle(title, x=0.02, ha="left", fontsize=11, fontweight="bold", color=INK)
    made = list(figure.subplots(rows, columns, squeeze=False, **grid).flat)
    for axes in made:
        axes.set_axisbelow(True)
        axes.grid(color=LINE, lw=0.8)
        axes.spines[["top", "right"]].set_visible(False)
        axes.spines[["left", "bottom"]].set_color(LINE)
        axes.tick_params(colors=FAINT, labelsize=9, length=0, labelcolor=INK)
    return figure, made


def name_axes(axes: "Axes", x: str = "", y: str = "") -> None:
    """Write the names of the axes."""
    axes.set_xlabel(x, color=FAINT, fontsize=9)
    axes.set_ylabel(y, color=FAINT, fontsize=9)


def name_rows(axes: "Axes", names: Sequence[str]) -> None:
    """Name the rows of a horizontal plot, from top to bottom."""
    axes.set_yticks(range(len(names)), [textwrap.fill(name, LABEL_WIDTH) for name in names])
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.grid(axis="y", visible=False)


def legend(axes: "Axes", columns: int, **style: Any) -> None:
    """A legend above the axes."""
    style = {"fontsize": 9, "handlelength": 1.2, "frameon": False, "borderaxespad": 0.2, "labelcolor": INK, **style}
    axes.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=columns, **style)


def score_bars(
    title: str, scores: Sequence[tuple[str, Mapping[str, Cell]]], colours: Sequence[str] = COLOURS
) -> "Figure":
    """Horizontal bars with intervals: a group per set, a colour per model."""
    models = list(dict.fromkeys(model for _, cells in scores for model in cells))
    thick = 0.8 / len(models)
    height = 1.1 + (0.16 + 0.24 * len(models)) * len(scores) + (0.25 if len(models) > 1 else 0)
    figure, (axes,) = panels(6.8, height, title)
    for number, model in enumerate(models):
        shift = (number - (len(models) - 1) / 2) * thick
        rows = [(row + shift, cells[model]) for row, (_, cells) in enumerate(scores) if model in cells]
        _draw_bars(axes, rows, model, colours[number % len(colours)], thick)
    name_rows(axes, [name for name, _ in scores])
    ends = [0.0, *(end for _, cells in scores for cell in cells.values() for end in (cell.value, *_ends(cell)))]
    span = max(ends) - min(ends) or 1.0
    axes.set_xlim(min(ends) - (0.1 * span if min(ends) < 0 else 0), max(ends) + 0.1 * span)
    if len(models) > 1:
        legend(axes, min(3, len(models)))
    return figure


def _draw_bars(axes: "Axes", rows: Sequence[tuple[float, Cell]], model: str, colour: str, thick: float) -> None:
    heights, values = [height for height, _ in rows], [cell.value for _, cell in rows]
    axes.barh(heights, values, 0.86 * thick, color=colour, label=model, zorder=2)
    for height, cell in rows:
        low, high = _ends(cell)
        axes.plot([low, high], [height, height], color=INK, lw=1.3, solid_capstyle="butt", zorder=3)
        name_beside(axes, f"{cell.value:.1f}", max(high, 0), height)


def _ends(cell: Cell) -> tuple[float, float]:
    """The interval, or the deviation over seeds to both sides."""
    spread = cell.deviation or 0.0
    return (
        cell.value - spread if cell.low is None else cell.low,
        cell.value + spread if cell.high is None else cell.high,
    )


def name_beside(axes: "Axes", text: str, x: float, y: float) -> None:
    """Write text to the right of a place."""
    axes.annotate(text, (x, y), (5, 0), textcoords="offset points", va="center", fontsize=8.5, color=INK)


def name_points(axes: "Axes", points: Numbers, names: Sequence[str], lines: Sequence[Points] = ()) -> None:
    """Write each name beside its point, away from points, lines and other labels."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    canvas = FigureCanvasAgg(axes.figure)
    style: dict[str, Any] = {"fontsize": 9, "color": INK, "zorder": 5, "ha": "center", "va": "center"}
    labelled = [(at, name) for at, name in zip(points, names, strict=True) if name]
    texts = [axes.annotate(name, at, (0, 0), textcoords="offset points", **style) for at, name in labelled]
    _literal(canvas.figure)
    canvas.draw()  # sizes are known only after the layout
    dots, at = axes.transData.transform(points), axes.transData.transform([at for at, _ in labelled])
    ways = [squares(along(axes.transData.transform(line)), 4) for line in lines]
    taken = np.concatenate([squares(dots, 12), *ways])
    sizes = [text.get_window_extent(canvas.get_renderer()).size for text in texts]
    pixels = axes.figure.dpi / 72  # per point
    boxes = place(at, sizes, taken, axes.bbox.extents, 7 * pixels)
    for text, dot, box in zip(texts, at, boxes, strict=True):
        text.set_position(tuple(((box[:2] + box[2:]) / 2 - dot) / pixels))


def plane(
    title: str, variant: UniformityVariant = UniformityVariant.REFERENCE, width: float = 6.4, height: float = 4.8
) -> tuple["Figure", "Axes"]:
    """Axes of uniformity (x) and alignment (y)."""
    figure, (axes,) = panels(width, height, title)
    better = "↑" if variant == UniformityVariant.PRINTED else "↓"  # as printed, alignment has a minus sign
    name_axes(axes, "uniformity  (← better)", f"alignment  ({better} better)")
    axes.margins(0.18)
    return figure, axes


def place(points: ArrayLike, sizes: ArrayLike, taken: Boxes, room: ArrayLike, gap: float) -> Boxes:
    """Boxes (n, 4) for labels of these sizes (n, 2): they avoid `taken`, each other and the edges of `room`."""
    boxes: list[NDArray[np.float64]] = []
    for point, size in zip(np.asarray(points, float), np.asarray(sizes, float), strict=True):
        tries = _around(point, size, gap)
        covered = [_shared(box, taken).sum() for box in tries]
        outside = np.prod(size) - _shared(np.asarray(room, float), tries)
        boxes.append(tries[np.argmin(np.round(covered + OUTSIDE * outside, 3))])
        taken = np.concatenate([taken, boxes[-1:]])
    return np.array(boxes)


def _around(point: NDArray[np.float64], size: NDArray[np.float64], gap: float) -> Boxes:
    """A box on each side of a point, `gap` away from it: beyond it, before it or centred on it, by each axis."""
    sides = np.array(SIDES)
    low = point + gap * sides + size * (np.sign(sides) - 1) / 2
    return np.concatenate([low, low + size], axis=1)


def _shared(box: NDArray[np.float64], others: Boxes) -> NDArray[np.float64]:
    """The area that a box has in common with each of the others."""
    sides = np.minimum(box[2:], others[:, 2:]) - np.maximum(box[:2], others[:, :2])
    return sides.clip(min=0).prod(axis=1)


def squares(points: ArrayLike, size: float) -> Boxes:
    """Boxes around points."""
    points = np.asarray(points, float)
    return np.concatenate([points - size / 2, points + size / 2], axis=1)


def along(points: ArrayLike, steps: int = 60) -> NDArray[np.float64]:
    """Places on the lines from each point to the next, and the points themselves."""
    points = np.asarray(points, float)
    return np.concatenate([points, *(np.linspace(start, end, steps) for start, end in pairwise(points))])


def peak(edges: Sequence[float], heights: Sequence[float]) -> tuple[float, float]:
    """The middle of the highest bar of a histogram, and its height."""
    highest = max(range(len(heights)), key=heights.__getitem__)
    return (edges[highest] + edges[highest + 1]) / 2, heights[highest]
