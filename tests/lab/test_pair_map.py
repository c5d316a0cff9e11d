"""Pairs on a plane: the highest and lowest ones, with related vectors near each other."""

import numpy as np
import pytest

from sentloom.errors import InputError
from sentloom.evaluation.geometry import ScoredPairs
from sentloom.lab.geometry import choose_pairs, pair_map, project


def test_the_highest_and_lowest_pairs_are_chosen():
    gold = np.array([5.0, 0.0, 4.0, 4.5, 1.0, 0.5, 5.0, 2.5])
    high, low = choose_pairs(gold, 3)
    assert sorted(high[:2]) == [0, 6]
    assert list(high[2:]) == [3]
    assert list(low) == [1, 5]
    assert [rows.tolist() for rows in choose_pairs(gold, 3)] == [high.tolist(), low.tolist()]
    with pytest.raises(InputError, match="scores range from 0 to 1"):
        choose_pairs(gold / 5)


def test_both_sides_of_the_chosen_pairs_are_projected():
    rng = np.random.default_rng(5)
    high = rng.normal(size=(20, 8))
    vectors = {f"high {side} {k}": high[k] + 0.1 * rng.normal(size=8) for side in "ab" for k in range(20)}
    vectors |= {f"low {side} {k}": rng.normal(size=8) for side in "ab" for k in range(20)}
    left, right = ([f"{kind} {side} {k}" for kind in ("high", "low") for k in range(20)] for side in "ab")
    gold = np.repeat([5.0, 0.5], 20)
    asked = []

    def encode(texts):
        asked.extend(texts)
        return np.array([vectors[text] for text in texts], np.float32)

    places = pair_map(encode, ScoredPairs(left, right, gold))
    assert sorted(asked) == sorted(vectors)
    order = np.array([vectors[text] for text in asked], np.float32).astype(np.float64)
    assert np.concatenate([*places.high, *places.low]) == pytest.approx(project(order))
    assert [text.split()[:2] for text in asked[::20]] == [["high", "a"], ["high", "b"], ["low", "a"], ["low", "b"]]
    near, far = (np.linalg.norm(sides[0] - sides[1], axis=1) for sides in (places.high, places.low))
    assert np.median(near) < np.median(far) / 3
