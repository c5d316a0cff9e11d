"""Where labels go beside their points: on the side where they cover least."""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike, NDArray

Boxes = NDArray[np.float64]  # (n, 4): the low x, low y, high x and high y of each
OUTSIDE = 4.0  # what lies outside the plot counts as much as covering four times the area
# Directions from a point to its label, the preferred ones first, then the same farther away.
SIDES = [
    (far * x, far * y)
    for far in (1, 2, 3)
    for x, y in ((1, 0), (-1, 0), (0, 1), (0, -1), (0.7, 0.7), (0.7, -0.7), (-0.7, 0.7), (-0.7, -0.7))
]


def place(points: ArrayLike, sizes: ArrayLike, taken: Boxes, room: ArrayLike, gap: float) -> Boxes:
    """Boxes (n, 4) for labels of these sizes (n, 2): they avoid `taken`, each other and the edges of `room`."""
    boxes: list[NDArray[np.float64]] = []
    for point, size in zip(np.asarray(points, float), np.asarray(sizes, float), strict=True):
        tries = _around(point, size, gap)
        covered = [_shared(one, taken).sum() for one in tries]
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
