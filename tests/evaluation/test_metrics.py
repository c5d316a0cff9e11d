"""Metrics against hand-computed values, naive loops and scipy."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from sentloom.evaluation.metrics import cosine_of_pairs, is_constant, mrr_at, pearson, recall_at, spearman


def test_cosine_against_hand_computed_values():
    left = np.array([[3.0, 4.0], [1.0, 0.0], [2.0, 0.0], [0.0, 0.0]])
    right = np.array([[4.0, 3.0], [0.0, 5.0], [-7.0, 0.0], [1.0, 1.0]])
    assert cosine_of_pairs(left, right) == pytest.approx([24 / 25, 0.0, -1.0, 0.0])


def test_cosine_of_float32_is_computed_in_float64():
    rng = np.random.default_rng(0)
    left, right = rng.normal(size=(2, 20, 384)).astype(np.float32)
    slow = [
        math.fsum(float(a) * float(b) for a, b in zip(x, y, strict=True))
        / math.sqrt(math.fsum(float(a) ** 2 for a in x) * math.fsum(float(b) ** 2 for b in y))
        for x, y in zip(left, right, strict=True)
    ]
    assert cosine_of_pairs(left, right) == pytest.approx(slow, abs=1e-12)


def test_pairs_of_equal_sentences_tie():
    vectors = np.random.default_rng(2).normal(size=(1000, 384)).astype(np.float32)
    assert set(cosine_of_pairs(vectors, vectors)) == {1.0}


def test_spearman_against_hand_computed_values():
    # Rank differences 0, 1, 1, 0: 1 - 6 * 2 / (4 * (16 - 1)) = 0.8.
    assert spearman([1, 2, 3, 4], [10, 30, 20, 40]) == pytest.approx(0.8)


def test_spearman_uses_ranks_and_pearson_values():
    x = [1.0, 2.0, 3.0, 4.0]
    y = [1.0, 2.0, 3.0, 100.0]
    assert spearman(x, y) == pytest.approx(1.0)
    assert pearson(x, y) == pytest.approx(149.0 / math.sqrt(5 * 7205.0))  # sums of products about the means, by hand


def _mean_ranks(values):
    return [sum(v < value for v in values) + (sum(v == value for v in values) + 1) / 2 for value in values]


def _slow_pearson(x, y):
    mean_x, mean_y = math.fsum(x) / len(x), math.fsum(y) / len(y)
    products = math.fsum((a - mean_x) * (b - mean_y) for a, b in zip(x, y, strict=True))
    return products / math.sqrt(math.fsum((a - mean_x) ** 2 for a in x) * math.fsum((b - mean_y) ** 2 for b in y))


pairs = st.lists(st.tuples(st.integers(-5, 5), st.integers(0, 5)), min_size=2, max_size=30).filter(
    lambda rows: len({x for x, _ in rows}) > 1 and len({y for _, y in rows}) > 1
)


@given(pairs)
def test_correlations_equal_plain_loops_with_ties(rows):
    x, y = zip(*rows, strict=True)
    assert spearman(x, y) == pytest.approx(_slow_pearson(_mean_ranks(x), _mean_ranks(y)), abs=1e-9)
    assert pearson(x, y) == pytest.approx(_slow_pearson(x, y), abs=1e-9)


def test_correlations_equal_scipy():
    x, y = np.random.default_rng(1).normal(size=(2, 200))
    assert spearman(x, y) == stats.spearmanr(x, y).statistic
    assert pearson(x, y) == stats.pearsonr(x, y).statistic


@pytest.mark.parametrize(("x", "y"), [([1, 1, 1], [1, 2, 3]), ([1, 2, 3], [0, 0, 0]), ([1.0], [2.0]), ([], [])])
def test_a_constant_side_scores_zero_without_a_warning(x, y, recwarn):
    assert spearman(x, y) == pearson(x, y) == 0.0
    assert not recwarn.list


def test_is_constant():
    assert is_constant([2.0, 2.0])
    assert is_constant([])
    assert not is_constant([2.0, 2.0000001])


RANKS = [np.array([1]), np.array([3]), np.array([11]), np.array([2, 4, 20])]


def test_mrr_against_hand_computed_values():
    assert mrr_at(10, RANKS) == pytest.approx((1 + 1 / 3 + 0 + 1 / 2) / 4)
    assert mrr_at(2, RANKS) == pytest.approx((1 + 0 + 0 + 1 / 2) / 4)


def test_recall_against_hand_computed_values():
    assert recall_at(1, RANKS) == pytest.approx(1 / 4)
    assert recall_at(10, RANKS) == pytest.approx((1 + 1 + 0 + 2 / 3) / 4)
