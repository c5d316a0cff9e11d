"""Labels: on the first side that is free, and off what they should not cover."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sentloom.report import plots

ROOM = (0.0, 0.0, 100.0, 100.0)
NOTHING = np.empty((0, 4))


def test_a_free_label_is_to_the_right_and_centred():
    assert plots.place([(50, 50)], [(20, 10)], NOTHING, ROOM, 5).tolist() == [[55, 45, 75, 55]]


def test_at_the_right_edge_it_is_to_the_left():
    assert plots.place([(90, 50)], [(20, 10)], NOTHING, ROOM, 5).tolist() == [[65, 45, 85, 55]]


def test_with_both_sides_taken_it_is_centred_beyond_the_point():
    taken = np.array([[0.0, 40.0, 46.0, 60.0], [54.0, 40.0, 100.0, 60.0]])
    assert plots.place([(50, 50)], [(4, 10)], taken, ROOM, 5).tolist() == [[48, 55, 52, 65]]


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(st.integers(1, 9), st.integers(1, 9)), min_size=1, max_size=6, unique=True))
def test_few_labels_cover_neither_points_nor_each_other(cells):
    points = [(100.0 * x, 100.0 * y) for x, y in cells]
    boxes = plots.place(points, [(40, 10)] * len(points), plots.squares(points, 10), (0, 0, 1000, 1000), 8)
    every = [*boxes, *plots.squares(points, 10)]
    for place, one in enumerate(boxes):
        others = every[place + 1 :]
        assert not any((one[:2] < other[2:]).all() and (other[:2] < one[2:]).all() for other in others)


def test_squares_and_places_along_a_line():
    assert plots.squares([(1.0, 2.0)], 4).tolist() == [[-1, 0, 3, 4]]
    assert plots.along([(0, 0), (2, 4)], 3).tolist() == [[0, 0], [2, 4], [0, 0], [1, 2], [2, 4]]


def test_the_peak_of_a_histogram():
    assert plots.peak((0.0, 0.5, 1.0, 2.0), (1.0, 2.0, 5.0)) == pytest.approx((1.5, 5.0))
