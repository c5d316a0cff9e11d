"""The estimate by hand, its oracle, and how often its interval covers the truth."""

import numpy as np
import pytest
from scipy.stats import t as student
from scipy.stats import ttest_1samp

from sentloom.ticking.estimate import Stratum, estimate, is_possible


def test_two_strata_by_hand():
    """W = 0.2 and 0.3; means 0.5 and 0; variances of (1, 0, 1, 0) and (1, -1): 1/3 and 2.

    gain = 0.1; variance = 0.04 / 3 / 4 + 0.09 * 2 / 2 + (0.2 * 0.4^2 + 0.3 * 0.1^2 + 0.5 * 0.1^2) / 100; effective =
    0.5^2 / (0.04 / 4 + 0.09 / 2) = 4.5454...
    """
    found = estimate([Stratum(20, (1, 0, 1, 0)), Stratum(30, (1, -1))], 100)
    error = (0.04 / 3 / 4 + 0.09 + (0.2 * 0.16 + 0.3 * 0.01 + 0.5 * 0.01) / 100) ** 0.5
    freedom = 0.25 / 0.055 - 1
    assert found.value == pytest.approx(10)
    assert found.effective == pytest.approx(0.25 / 0.055)
    assert found.high == pytest.approx(min(50, 100 * (0.1 + student.ppf(0.975, freedom) * error)))
    assert found.p == pytest.approx(2 * student.sf(0.1 / error, freedom))


def test_if_everything_is_answered_it_is_the_t_test_over_all_queries():
    """One stratum, all of it answered, and nothing outside: s^2 / n is all there is."""
    values = tuple(np.random.default_rng(1).choice([-1.0, 0.0, 1.0], 50))
    found, oracle = estimate([Stratum(50, values)], 50), ttest_1samp(values, 0)
    assert found.p == pytest.approx(oracle.pvalue)
    assert (found.low, found.high) == pytest.approx(tuple(100 * end for end in oracle.confidence_interval()))


def test_p_is_below_the_level_exactly_if_the_interval_excludes_0():
    for seed in range(40):
        values = np.random.default_rng(seed).choice([-1.0, 0.0, 1.0], (2, 12), p=[0.2, 0.3, 0.5])
        found = estimate([Stratum(40, tuple(values[0])), Stratum(30, tuple(values[1]))], 100)
        assert (found.p < 0.05) == (found.low > 0 or found.high < 0)


def test_answers_that_are_all_the_same_are_not_certain():
    """Ten times 1 and half an answer of 1 and of -1: mean 10/11, squares 10 / 121 + (1 + 441) / 242 = 1.909, over 10."""
    found = estimate([Stratum(100, (1.0,) * 10)], 100)
    error = (((10 / 121 + 0.5 * (1 / 121 + 441 / 121)) / 10) / 10) ** 0.5
    assert found.value == 100
    assert found.low == pytest.approx(100 * (1 - student.ppf(0.975, 9) * error))
    assert found.low < 95


def test_a_stratum_needs_two_answers_unless_it_has_only_one_query():
    assert not is_possible([Stratum(9, (1.0,)), Stratum(9, (1.0, 0.0))])
    assert is_possible([Stratum(0, ()), Stratum(9, (1.0, 0.0)), Stratum(1, (1.0,))])
    assert not is_possible([Stratum(0, ())])


@pytest.mark.parametrize("ticks", [30, 60])
def test_the_interval_covers_the_true_gain(ticks):
    """400 draws of 300 queries, of which 60% differ; the error of the coverage is 1.1 points."""
    draw, wins, losses, truth = np.random.default_rng(ticks), (0.2, 0.3, 0.5), (0.2, 0.25, 0.3), 0.6 * 0.25 / 3
    hit = 0
    for _ in range(400):
        each = np.full(3, draw.binomial(300, 0.6) // 3)
        counts = [round(share * ticks) for share in (0.23, 0.33, 0.44)]
        strata = [
            Stratum(int(size), tuple(draw.choice([1.0, -1.0, 0.0], count, p=[win, loss, 1 - win - loss])))
            for size, count, win, loss in zip(each, counts, wins, losses, strict=True)
        ]
        found = estimate(strata, 300)
        hit += found.low <= 100 * truth <= found.high
    assert 0.92 <= hit / 400 <= 0.985
