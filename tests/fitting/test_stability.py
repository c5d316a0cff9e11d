"""Shared neighbours of vectors whose values are known by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sentloom.errors import InputError
from sentloom.fitting.race import agreement, shared_neighbours


def at_angles(*degrees):
    angles = np.radians(degrees)
    return np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)


def neighbour_overlap(a, b, k):
    return shared_neighbours(a, b, k).mean()


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


def test_agreement_is_a_percentage_with_an_interval():
    stability = agreement(np.array([1.0, 0.5] * 50))
    assert stability.share == pytest.approx(75)
    # the deviation of the mean is 25 / sqrt(100): 1.96 of them are 4.9
    assert (stability.low, stability.high) == pytest.approx((70.1, 79.9), abs=1)
    assert (stability.texts, stability.neighbours) == (100, 10)
