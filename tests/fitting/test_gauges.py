"""Gauges and neighbours on vectors whose values are known by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sentloom.errors import InputError
from sentloom.fitting.gauges import Gauges, collapsed, gauges, neighbour_overlap

PLANE = {"east": [1.0, 0.0], "north": [0.0, 2.0], "west": [-3.0, 0.0], "south": [0.0, -1.0]}


def plane(texts):
    return np.array([PLANE[text] for text in texts], np.float32)


def at_angles(*degrees):
    angles = np.radians(degrees)
    return np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)


def test_four_directions_of_the_plane():
    found = gauges(plane, ["east", "north"], ["east", "west"], ["east", "north", "west", "south", "east"])
    assert found.alignment == pytest.approx((0 + 2) / 2)  # squared distances of equal and of orthogonal vectors
    # six pairs: four at a right angle (d² = 2), two opposite (d² = 4)
    assert found.uniformity == pytest.approx(np.log((4 * np.exp(-4) + 2 * np.exp(-8)) / 6))
    assert found.mean_cosine == pytest.approx(-2 / 6)
    assert found.effective_rank == pytest.approx(2)
    assert found.dimension == 2


def test_vectors_that_point_one_way_are_called_collapsed():
    sound = Gauges(alignment=0.3, uniformity=-3.0, mean_cosine=0.1, effective_rank=200.0, dimension=384)
    one_way = Gauges(0.0, -0.01, 0.995, 180.0, 384)
    few = Gauges(0.1, -1.0, 0.5, 90.0, 384)
    assert collapsed(sound, sound) is None
    assert "one way" in collapsed(sound, one_way)
    assert "0.995" in collapsed(sound, one_way)
    assert "effective rank 90, before it was 200" in collapsed(sound, few)
    assert collapsed(one_way, one_way) is None, "what was so before is not the training's fault"


def test_overlap_of_neighbours_by_hand():
    a = at_angles(0, 10, 50, 70)  # the nearest other of each: 1, 0, 3, 2
    b = at_angles(0, 60, 50, 70)  # the nearest other of each: 2, (2 or 3: the first), 1, 1
    assert neighbour_overlap(a, b, k=1) == 0.0
    # two nearest in a: {1,2} {0,2} {3,1} {2,1}; in b: {2,1} {2,3} {1,3} {1,2}
    assert neighbour_overlap(a, b, k=2) == pytest.approx((1 + 0.5 + 1 + 1) / 4)


@given(st.integers(0, 1000), st.integers(1, 5))
def test_overlap_is_one_with_itself_however_turned_and_scaled(seed, k):
    draw = np.random.default_rng(seed)
    vectors = draw.normal(size=(12, 4)).astype(np.float32)
    turn, _ = np.linalg.qr(draw.normal(size=(4, 4)))
    assert neighbour_overlap(vectors, 3 * vectors @ turn, k) == pytest.approx(1, abs=0.1)
    assert neighbour_overlap(vectors, vectors, k) == 1


def test_equal_vectors_are_not_their_own_neighbours():
    same = np.ones((6, 3), np.float32)
    assert neighbour_overlap(same, same, k=2) == 1


def test_too_few_texts_are_refused():
    with pytest.raises(InputError, match="more than k"):
        neighbour_overlap(np.eye(10), np.eye(10), k=10)
