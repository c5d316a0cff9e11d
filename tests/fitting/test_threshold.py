"""The threshold: the lowest cosine that reaches a precision, by a slow search over all of them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sentloom.fitting.examples import FEWEST_ACCEPTED, Matches, choose

cosines = st.lists(st.tuples(st.sampled_from([0.1, 0.2, 0.5, 0.7, 0.9]), st.booleans()), min_size=1, max_size=30)


def matches(rows):
    near, right = zip(*rows, strict=True)
    return Matches(np.array(near), np.array(right, float))


def test_precision_and_recall_by_hand():
    nearest = matches([(0.9, True), (0.8, False), (0.7, True), (0.2, True)])
    assert nearest.at(0.7) == pytest.approx((2 / 3, 2 / 4))
    assert nearest.at(0.95) == (None, 0.0)  # nothing is accepted, so nothing is right or wrong
    assert choose(nearest, 0.75) == (0.2, 4)  # all are accepted, three of four are right


def test_a_single_right_match_is_no_precision():
    nearest = matches([(0.9, True), *[(0.8, False)] * 4, *[(0.7, True)] * 5, *[(0.1, False)] * 5])
    assert nearest.at(0.9)[0] == 1
    assert choose(nearest, 0.9) == (0.7, 10)  # 6 of 10 are right, which is the best of ten or more
    assert nearest.at(0.7)[0] == 0.6


@given(cosines, st.sampled_from([0.5, 0.8, 0.9, 1.0]))
def test_no_lower_cosine_reaches_the_precision(rows, asked):
    nearest = matches(rows)
    enough = min(FEWEST_ACCEPTED, len(rows))
    allowed = [cosine for cosine, _ in rows if sum(other >= cosine for other, _ in rows) >= enough]
    reached = [cosine for cosine in allowed if nearest.at(cosine)[0] >= asked]
    cosine, accepted = choose(nearest, asked)
    assert accepted == sum(other >= cosine for other, _ in rows) >= enough
    if reached:
        assert cosine == min(reached)
    else:
        assert nearest.at(cosine)[0] == pytest.approx(max(nearest.at(allowed_cosine)[0] for allowed_cosine in allowed))
