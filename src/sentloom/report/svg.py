"""Pictures for the page as inline SVG: they take the colours of the page, light or dark, and their words are text.

They are drawn for the width of a phone, so that letters stay readable there; wider pages show two side by side.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean

import numpy as np
from markupsafe import Markup

from sentloom.fitting.result import Curve, Histogram, Shares, Trail
from sentloom.report import labels
from sentloom.report.formatting import number

WIDTH, HEIGHT = 360, 232
LEFT, RIGHT, TOP, BOTTOM = 42, 14, 16, 40  # margins
LETTER, LINE_HEIGHT = 5.7, 13  # approximate size of the text
GAP = 8  # between a point and its label
Point = tuple[float, float]


@dataclass(frozen=True)
class Frame:
    """Maps numbers to places in a picture: the ranges of both axes."""

    x_low: float
    x_high: float
    y_low: float
    y_high: float

    def x(self, value: float) -> float:
        """From the left, in units of the picture."""
        return LEFT + (WIDTH - LEFT - RIGHT) * (value - self.x_low) / (self.x_high - self.x_low)

    def y(self, value: float) -> float:
        """From the top, in units of the picture."""
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * (value - self.y_low) / (self.y_high - self.y_low)

    def at(self, point: Point) -> Point:
        """Both."""
        return self.x(point[0]), self.y(point[1])


def frame_of(points: Sequence[Point], margin: float) -> Frame:
    """A frame around points with a relative margin; an empty range is widened."""
    return Frame(*_widened([x for x, _ in points], margin), *_widened([y for _, y in points], margin))


def _widened(values: Sequence[float], margin: float) -> tuple[float, float]:
    low, high = min(values), max(values)
    room = margin * (high - low) if high > low else abs(low) / 2 or 1.0
    return low - room, high + room


def ticks(low: float, high: float, about: int = 4) -> list[float]:
    """Round numbers from low to high, in steps of 1, 2 or 5 times a power of ten."""
    rough = (high - low) / about
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= 0.85 * rough)
    return [step * place for place in range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)]


def loss_curve(curve: Curve) -> Markup | None:
    """The loss by step: every value as a thin line, a running mean, and its last value as a number."""
    points = [(float(x), y) for x, y in zip(curve.steps, curve.loss, strict=False) if math.isfinite(y)]
    if len(points) < 2:
        return None
    frame, smooth = frame_of(points, 0.0), _running_mean(points)
    first, last = (number(y, 3) for _, y in (smooth[0], smooth[-1]))
    x, y = frame.at(smooth[-1])
    return _picture(
        f"Training loss of {curve.route}, {curve.stage}, from {first} to {last}",
        _axes(frame, "step", "loss"),
        _path(frame, points, "way raw"),
        _path(frame, smooth, "way main"),
        _dot((x, y), "end"),
        _text((x - 2, y - 9), last, "end", "strong"),
    )


def _running_mean(points: Sequence[Point]) -> list[Point]:
    """Each point with the mean of those around it, a fifteenth of the curve to both sides."""
    reach = len(points) // 15
    return [
        (x, fmean(y for _, y in points[max(0, place - reach) : place + reach + 1]))
        for place, (x, _) in enumerate(points)
    ]


def trails(shown: Sequence[Trail], winner: str | None) -> Markup | None:
    """Routes by uniformity (x) and alignment (y); the winner is highlighted and drawn last."""
    ordered = sorted((trail for trail in shown if trail.points), key=lambda trail: trail.route == winner)
    lines = [[(uniformity, alignment) for _, alignment, uniformity in trail.points] for trail in ordered]
    if not ordered:
        return None
    frame = frame_of([point for line in lines for point in line], 0.16)
    parts: list[Markup] = []
    for trail, line in zip(ordered, lines, strict=True):
        kind = "main" if trail.route == winner else "other"
        parts.append(_path(frame, line, f"way {kind}"))
        dots = zip(trail.points, line, strict=True)
        parts += [_dot(frame.at(at), kind, f"{trail.route}, {label}") for (label, *_), at in dots]
    return _picture(
        "Alignment and uniformity of every route",
        _axes(frame, "uniformity (← more evenly spread)", "alignment (↓ related texts closer)"),
        *parts,
        *_labels(ordered, [[frame.at(point) for point in line] for line in lines], winner),
    )


def _labels(ordered: Sequence[Trail], lines: Sequence[Sequence[Point]], winner: str | None) -> list[Markup]:
    """The name of each starting point once, and of each route at its end."""
    trails = list(zip(ordered, lines, strict=True))
    starts = {line[0]: trail.points[0][0] for trail, line in trails if len(line) > 1}
    named = [*starts.items(), *((line[-1], trail.route) for trail, line in reversed(trails))]
    taken = np.concatenate([labels.squares(labels.along(line), 10) for line in lines])
    sizes = [(LETTER * len(name), LINE_HEIGHT) for _, name in named]
    boxes = labels.place([at for at, _ in named], sizes, taken, (LEFT, 0, WIDTH, HEIGHT - BOTTOM), GAP)
    return [_label(*one, box, winner) for one, box in zip(named, boxes.tolist(), strict=True)]


def _label(at: Point, name: str, box: Sequence[float], winner: str | None) -> Markup:
    """A label that is anchored on the side of its point: how long it is drawn is not known exactly."""
    left, _, right, bottom = box
    x, anchor = (left, "start") if left > at[0] else (right, "end") if right < at[0] else (at[0], "middle")
    return _text((x, bottom - 3), name, anchor, "strong" if name == winner else "")


def similarities(found: Histogram) -> list[tuple[str, Shares, Markup]]:
    """Histograms of the base and of the fitted model with the same axes."""
    sides = {"Before": found.before, "After": found.after}
    top = 1.12 * max(share for side in sides.values() for share in (*side.related, *side.unrelated))
    frame = Frame(found.edges[0], found.edges[-1], 0.0, top)
    return [(title, side, _histogram(frame, found.edges, side)) for title, side in sides.items()]


def _histogram(frame: Frame, edges: Sequence[float], shares: Shares) -> Markup:
    kinds = (("unrelated", "other", shares.unrelated), ("related", "main", shares.related))
    return _picture(
        "Percentage of related and unrelated pairs by cosine",
        _axes(frame, "cosine", "% of pairs"),
        *(_stairs(frame, edges, share, kind) for _, kind, share in kinds),
        *(_peak_label(frame.at(labels.peak(edges, share)), name, kind) for name, kind, share in kinds if any(share)),
    )


def _peak_label(at: Point, name: str, kind: str) -> Markup:
    half = LETTER * len(name) / 2
    x = min(max(at[0], LEFT + half), WIDTH - half)
    return _text((x, at[1] - 6), name, "middle", f"of-{kind}")


def _stairs(frame: Frame, edges: Sequence[float], share: Sequence[float], kind: str) -> Markup:
    """An area with steps, closed along the x axis."""
    corners = [(edges[0], 0.0)]
    for (low, high), height in zip(pairwise(edges), share, strict=True):
        corners += [(low, height), (high, height)]
    return _path(frame, [*corners, (edges[-1], 0.0)], f"area {kind}")


def _picture(description: str, *parts: Markup) -> Markup:
    """An SVG picture, described in words for screen readers."""
    return Markup('<svg class="plot" viewBox="0 0 {} {}" role="img" aria-label="{}"><title>{}</title>{}</svg>').format(
        WIDTH, HEIGHT, description, description, Markup("").join(parts)
    )


def _axes(frame: Frame, x_name: str, y_name: str) -> Markup:
    """Faint horizontal lines with their numbers, numbers below, and the names of both axes."""
    rows, columns = ticks(frame.y_low, frame.y_high), ticks(frame.x_low, frame.x_high, 5)
    row_digits, column_digits, ground = _digits(rows), _digits(columns), HEIGHT - BOTTOM
    return Markup("").join(
        [
            *(_rule(frame.y(value)) for value in rows),
            *(_text((LEFT - 6, frame.y(value) + 3.5), number(value, row_digits), "end") for value in rows),
            *(_text((frame.x(value), ground + 14), number(value, column_digits), "middle") for value in columns),
            _text((WIDTH - RIGHT, HEIGHT - 8), x_name, "end", "name"),
            _text((0, 9), y_name, "start", "name"),
        ]
    )


def _digits(values: Sequence[float]) -> int:
    """As many decimals as the values have, at most 6."""
    exact = (digits for digits in range(6) if all(abs(round(value, digits) - value) < 1e-9 for value in values))
    return next(exact, 6)


def _rule(y: float) -> Markup:
    line = Markup('<line class="rule" x1="{}" x2="{}" y1="{:.1f}" y2="{:.1f}"></line>')
    return line.format(LEFT, WIDTH - RIGHT, y, y)


def _path(frame: Frame, points: Sequence[Point], kind: str) -> Markup:
    line = "M" + " ".join(f"{x:.1f},{y:.1f}" for x, y in map(frame.at, points))
    return Markup('<path class="{}" d="{}"></path>').format(kind, line)


def _dot(at: Point, kind: str, name: str = "") -> Markup:
    title = Markup("<title>{}</title>").format(name) if name else ""
    return Markup('<circle class="dot {}" cx="{:.1f}" cy="{:.1f}" r="3.4">{}</circle>').format(kind, *at, title)


def _text(at: Point, words: str, anchor: str, kind: str = "") -> Markup:
    text = Markup('<text class="{}" text-anchor="{}" x="{:.1f}" y="{:.1f}">{}</text>')
    return text.format(kind, anchor, *at, words)
