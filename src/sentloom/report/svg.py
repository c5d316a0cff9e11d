"""Pictures for the page as inline SVG: their colours are those of the page, light or dark, their words are text.

Drawn for a phone's width, so that letters stay readable there; wider pages stretch them or set two side by side.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean

from sentloom.fitting.result import Curve, Shares, Trail
from sentloom.report.formatting import number
from sentloom.report.markup import Markup, element, join

WIDTH, HEIGHT = 360, 232
LEFT, RIGHT, TOP, BOTTOM = 42, 14, 16, 40  # margins
LETTER, LINE_HEIGHT = 5.7, 13  # about, of the plots' text
Point = tuple[float, float]
Box = tuple[float, float, float, float]  # left, top, right, bottom


@dataclass(frozen=True)
class Frame:
    """Where numbers stand in a picture: ranges of both axes."""

    x_low: float
    x_high: float
    y_low: float
    y_high: float

    def x(self, value: float) -> float:
        """Across, in units of the picture."""
        return LEFT + (WIDTH - LEFT - RIGHT) * (value - self.x_low) / (self.x_high - self.x_low)

    def y(self, value: float) -> float:
        """Downwards, in units of the picture."""
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * (value - self.y_low) / (self.y_high - self.y_low)

    def at(self, point: Point) -> Point:
        """Both."""
        return self.x(point[0]), self.y(point[1])


def frame_of(points: Sequence[Point], margin: float) -> Frame:
    """A frame around points with a share of margin; a range of nothing gets a width."""
    return Frame(*_widened([x for x, _ in points], margin), *_widened([y for _, y in points], margin))


def _widened(values: Sequence[float], margin: float) -> tuple[float, float]:
    low, high = min(values), max(values)
    room = margin * (high - low) if high > low else abs(low) / 2 or 1.0
    return low - room, high + room


def ticks(low: float, high: float, about: int = 4) -> list[float]:
    """Round numbers from low to high: steps of 1, 2 or 5 times a power of ten."""
    rough = (high - low) / about
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= rough * 0.999)
    return [step * place for place in range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)]


def loss_curve(curve: Curve) -> Markup | None:
    """The loss by step: every value faintly, a running mean over it, the first and last mean as numbers."""
    points = [(float(x), y) for x, y in zip(curve.steps, curve.loss, strict=False) if math.isfinite(y)]
    if len(points) < 2:
        return None
    frame, smooth = frame_of(points, 0.0), _running_mean(points)
    ends = (smooth[0], smooth[-1])
    return _picture(
        f"Training loss of {curve.route}, {curve.stage}, from {number(ends[0][1], 3)} to {number(ends[1][1], 3)}",
        _axes(frame, "step", "loss"),
        _line(frame, points, "raw"),
        _line(frame, smooth, "main"),
        *(_dot(frame.at(end), "end") for end in ends[1:]),
        _text(frame.at(ends[1]), number(ends[1][1], 3), -2, -9, "end", "strong"),
    )


def _running_mean(points: Sequence[Point]) -> list[Point]:
    """Each point with the mean of those around it, a fifteenth of the way to both sides."""
    reach = len(points) // 15
    return [
        (x, fmean(y for _, y in points[max(0, place - reach) : place + reach + 1]))
        for place, (x, _) in enumerate(points)
    ]


def trails(shown: Sequence[Trail], winner: str | None) -> Markup:
    """Ways through uniformity (across) and alignment (up); the winner's stands out and is drawn last."""
    ordered = sorted((trail for trail in shown if trail.points), key=lambda trail: trail.route == winner)
    ways = [[(uniformity, alignment) for _, alignment, uniformity in trail.points] for trail in ordered]
    frame = frame_of([point for way in ways for point in way], 0.16)
    parts: list[Markup] = []
    for trail, way in zip(ordered, ways, strict=True):
        kind = "main" if trail.route == winner else "other"
        parts.append(_line(frame, way, kind))
        dots = zip(trail.points, way, strict=True)
        parts += [_dot(frame.at(at), kind, f"{trail.route}, {label}") for (label, *_), at in dots]
    return _picture(
        "Alignment and uniformity on the way",
        _axes(frame, "uniformity (← spread more evenly)", "alignment (↓ related lie closer)"),
        *parts,
        *_labels(frame, ordered, ways, winner),
    )


def _labels(
    frame: Frame, ordered: Sequence[Trail], ways: Sequence[Sequence[Point]], winner: str | None
) -> list[Markup]:
    """The first point's name once, and each route's at its end, where they cover least."""
    wanted = [(frame.at(way[-1]), trail.route, trail.route == winner) for trail, way in zip(ordered, ways, strict=True)]
    starts = {frame.at(way[0]): trail.points[0][0] for trail, way in zip(ordered, ways, strict=True) if len(way) > 1}
    wanted = [*((at, name, False) for at, name in starts.items()), *reversed(wanted)]
    taken = [_around(at) for way in ways for at in _along([frame.at(point) for point in way])]
    made = []
    for at, name, strong in wanted:
        box, anchor = min(_sides(at, name), key=lambda side: _covered(side[0], taken))
        taken.append(box)
        x = {"start": box[0], "middle": (box[0] + box[2]) / 2, "end": box[2]}[anchor]
        made.append(_text((x, box[3] - 3), name, 0, 0, anchor, "strong" if strong else None))
    return made


def _sides(at: Point, name: str) -> list[tuple[Box, str]]:
    """Where a label may stand around a point: its box and the end at which it is held."""
    (x, y), wide = at, LETTER * len(name)
    places = [
        (side * 8 * far, rise * far, anchor)
        for far in (1, 2)
        for side, rise, anchor in ((1, 0, "start"), (-1, 0, "end"), (0, -14, "middle"), (0, 14, "middle"),
                                   (1, -10, "start"), (1, 10, "start"), (-1, -10, "end"), (-1, 10, "end"))
    ]  # fmt: skip
    lefts = {"start": 0.0, "middle": -wide / 2, "end": -wide}
    boxes = [(x + dx + lefts[anchor], y + dy - LINE_HEIGHT / 2, anchor) for dx, dy, anchor in places]
    return [((left, top, left + wide, top + LINE_HEIGHT), anchor) for left, top, anchor in boxes]


def _along(dots: Sequence[Point]) -> list[Point]:
    """Places on the lines from each dot to the next."""
    between = [
        (a[0] + (b[0] - a[0]) * part / 8, a[1] + (b[1] - a[1]) * part / 8)
        for a, b in pairwise(dots)
        for part in range(8)
    ]
    return [*between, *dots]


def _around(at: Point) -> Box:
    return at[0] - 5, at[1] - 5, at[0] + 5, at[1] + 5


def _covered(box: Box, taken: Sequence[Box]) -> float:
    """How much a label would cover of others, and of itself outside."""
    inside = _common(box, (LEFT, 0, WIDTH, HEIGHT - BOTTOM))
    outside = (box[2] - box[0]) * (box[3] - box[1]) - inside
    return 4 * outside + sum(_common(box, other) for other in taken)


def _common(a: Box, b: Box) -> float:
    return max(0.0, min(a[2], b[2]) - max(a[0], b[0])) * max(0.0, min(a[3], b[3]) - max(a[1], b[1]))


def similarities(edges: Sequence[float], shares: Shares, top: float) -> Markup:
    """Shares of related and unrelated pairs by cosine; `top` is the greatest share on the axis, alike in both."""
    frame = Frame(edges[0], edges[-1], 0.0, top)
    kinds = (("unrelated", "other", shares.unrelated), ("related", "main", shares.related))
    peaks = [(kind, name, _peak(edges, share)) for name, kind, share in kinds if any(share)]
    return _picture(
        "Shares of related and unrelated pairs by cosine",
        _axes(frame, "cosine", "% of pairs"),
        *(_stairs(frame, edges, share, kind) for _, kind, share in kinds),
        *(_peak_label(frame.at(at), name, kind) for kind, name, at in peaks),
    )


def _peak(edges: Sequence[float], share: Sequence[float]) -> Point:
    place = max(range(len(share)), key=share.__getitem__)
    return (edges[place] + edges[place + 1]) / 2, share[place]


def _peak_label(at: Point, name: str, kind: str) -> Markup:
    half = LETTER * len(name) / 2
    x = min(max(at[0], LEFT + half), WIDTH - half)
    return _text((x, at[1]), name, 0, -6, "middle", f"of-{kind}")


def _stairs(frame: Frame, edges: Sequence[float], share: Sequence[float], kind: str) -> Markup:
    """An area with steps, from the ground and back to it."""
    corners = [(edges[0], 0.0)]
    for (low, high), height in zip(pairwise(edges), share, strict=True):
        corners += [(low, height), (high, height)]
    path = _path(frame, [*corners, (edges[-1], 0.0)])
    return element("path", class_=f"area {kind}", d=path)


def _picture(says: str, *parts: str) -> Markup:
    """An SVG picture; what it shows is also said in words."""
    label = element("title", says)
    return element("svg", label, *parts, class_="plot", viewBox=f"0 0 {WIDTH} {HEIGHT}", role="img", aria_label=says)


def _axes(frame: Frame, across: str, up: str) -> Markup:
    """Faint lines across with their numbers, numbers below, and the names of both axes."""
    rows, columns = ticks(frame.y_low, frame.y_high), ticks(frame.x_low, frame.x_high, 5)
    digits, digits_below = _digits(rows), _digits(columns)
    ground = HEIGHT - BOTTOM
    return join(
        [
            *(_rule(frame.y(value)) for value in rows),
            *(_text((LEFT - 6, frame.y(value) + 3.5), number(value, digits), 0, 0, "end") for value in rows),
            *(_text((frame.x(value), ground + 14), number(value, digits_below), 0, 0, "middle") for value in columns),
            _text((WIDTH - RIGHT, HEIGHT - 8), across, 0, 0, "end", "name"),
            _text((0, 9), up, 0, 0, "start", "name"),
        ]
    )


def _digits(values: Sequence[float]) -> int:
    """As many behind the point as tell neighbours apart."""
    step = min((b - a for a, b in pairwise(values)), default=1.0)
    return min(6, max(0, -math.floor(math.log10(step) + 1e-9)))


def _rule(y: float) -> Markup:
    return element("line", class_="rule", x1=LEFT, x2=WIDTH - RIGHT, y1=f"{y:.1f}", y2=f"{y:.1f}")


def _line(frame: Frame, points: Sequence[Point], kind: str) -> Markup:
    return element("path", class_=f"way {kind}", d=_path(frame, points))


def _path(frame: Frame, points: Sequence[Point]) -> str:
    return "M" + " ".join(f"{x:.1f},{y:.1f}" for x, y in map(frame.at, points))


def _dot(at: Point, kind: str, says: str | None = None) -> Markup:
    title = [element("title", says)] if says else []
    return element("circle", *title, class_=f"dot {kind}", cx=f"{at[0]:.1f}", cy=f"{at[1]:.1f}", r=3.4)


def _text(at: Point, words: str, dx: float, dy: float, anchor: str, kind: str | None = None) -> Markup:
    place = {"x": f"{at[0] + dx:.1f}", "y": f"{at[1] + dy:.1f}"}
    return element("text", words, class_=kind, text_anchor=anchor, **place)
