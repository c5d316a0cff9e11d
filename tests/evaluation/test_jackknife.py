"""Leaving out clusters, from counts, against plain loops that drop the rows."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sentloom.evaluation.jackknife import MEANS, STATISTICS, influences, joint_clusters, merged
from sentloom.evaluation.metrics import METRICS
from sentloom.evaluation.task import Score
from tests.evaluation.plain_jackknife import plain_influences, random_items


def test_every_metric_can_be_computed_without_a_cluster():
    assert {*MEANS, *STATISTICS} == set(METRICS)


@pytest.mark.parametrize("ties", [True, False])
@pytest.mark.parametrize("n", [1, 2, 3, 40])
@pytest.mark.parametrize("metric", STATISTICS)
def test_a_metric_from_counts_equals_the_metric_of_the_repeated_rows(metric, n, ties):
    items = random_items(metric, n, seed=n, ties=ties)
    drawn = np.random.default_rng(n).integers(0, n, (60, n - n // 4))  # columns of equal or fewer rows
    counts = np.stack([np.bincount(rows, minlength=n) for rows in drawn], axis=1).astype(float)
    plain = [METRICS[metric](items[np.sort(rows)]) for rows in drawn]
    assert STATISTICS[metric](items, counts) == pytest.approx(plain, abs=1e-9)


@given(
    values=st.lists(st.tuples(st.sampled_from([-3.0, 0.0, 0.1, 2.5]), st.integers(0, 1)), min_size=2, max_size=12),
    metric=st.sampled_from(sorted(METRICS)),
)
def test_few_distinct_values(values, metric):
    score = Score(metric, np.array(values, float))
    assert influences([score]).values.sum(axis=0) == pytest.approx(plain_influences([score]), abs=1e-9)


def test_a_cluster_adds_to_a_mean_by_hand():
    # Clusters (0, 0), (1, 1), (2): left out, the mean is 4/3, 2/3 and 1/2, on average 5/6; times sqrt(2/3).
    score = Score("mean", np.array([[0.0], [1.0], [0.0], [1.0], [2.0]]), clusters=np.array([7, 4, 7, 4, 9]))
    expected = np.sqrt(2 / 3) * np.array([5 / 6 - 2 / 3, 5 / 6 - 4 / 3, 5 / 6 - 1 / 2])  # in the order 4, 7, 9
    found = influences([score])
    assert found.values == pytest.approx(expected[None])
    assert found.shares == pytest.approx(np.array([[0.4, 0.4, 0.2]]))


@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("metric", METRICS)
def test_clusters_that_cross_groups_and_scores_equal_the_plain_loop(metric, weighted):
    rng = np.random.default_rng(4)
    groups = rng.permutation(np.repeat([3, 1, 2], [30, 7, 12]))
    clusters = rng.integers(0, 11, 49)
    first = Score(metric, random_items(metric, 49, seed=1), groups, weighted, clusters)
    second = Score("mean", random_items("mean", 20, seed=2), clusters=rng.integers(5, 14, 20))
    third = Score("accuracy", random_items("accuracy", 9, seed=3))
    scores, weights = [first, second, third], [0.5, 0.3, 0.2]
    found = influences(scores, weights).values.sum(axis=0)
    assert found == pytest.approx(plain_influences(scores, weights), abs=1e-9)


def test_scores_without_clusters_have_clusters_of_their_own():
    items = np.zeros((2, 1))
    given = Score("mean", np.zeros((3, 1)), clusters=np.array([40, -2, 40]))
    other = Score("mean", np.zeros((2, 1)), clusters=np.array([40, 7]))
    found = joint_clusters([Score("mean", items), given, other, Score("mean", items)])
    assert [each.tolist() for each in found] == [[3, 4], [2, 0, 2], [2, 1], [5, 6]]


@pytest.mark.parametrize("metric", STATISTICS)
def test_results_do_not_depend_on_block_size(metric):
    score = Score(metric, random_items(metric, 30, seed=2))
    whole = influences([score]).values
    assert influences([score], block=30 * 7).values == pytest.approx(whole, abs=1e-12)


def test_many_clusters_are_merged_evenly_and_keep_the_variance():
    (few,) = merged([np.arange(1000)])
    assert few.tolist() == list(range(1000))
    many, again = merged([np.arange(5000), np.arange(5000)])
    assert np.array_equal(many, again), "a cluster is merged in the same way in every score"
    assert np.bincount(many).tolist() == [5] * 1000
    (large,) = merged([np.arange(60_000)])
    assert np.bincount(large).tolist() == [300] * 200
    values = np.random.default_rng(0).normal(size=5000)
    found = influences([Score("mean", values[:, None])]).values[0]
    assert np.square(found).sum() == pytest.approx(values.var(ddof=1) / 5000, rel=0.15)


def test_merging_does_not_follow_the_order_of_the_rows():
    """Rows that come sorted would give too small a variance if every thousandth were merged."""
    values = np.sort(np.random.default_rng(0).normal(size=5000))
    found = influences([Score("mean", values[:, None])]).values[0]
    assert np.square(found).sum() == pytest.approx(values.var(ddof=1) / 5000, rel=0.15)


def test_a_single_cluster_adds_nothing_known():
    found = influences([Score("mean", np.ones((3, 1)), clusters=np.zeros(3, np.int64))])
    assert (found.values.tolist(), found.shares.tolist()) == ([[0.0]], [[1.0]])
