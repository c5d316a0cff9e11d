"""Intervals over clusters against hand computation, a slow oracle, classical tests and simulation."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from sentloom.errors import InputError
from sentloom.evaluation.metrics import METRICS
from sentloom.evaluation.significance import (
    Comparison,
    average_interval,
    compare_averages,
    corrected_level,
    count_clusters,
    is_within,
    mean_and_deviation,
    smallest_gain,
)
from sentloom.evaluation.task import Score
from tests.evaluation.plain_jackknife import plain_bounds, plain_influences, random_items


def means(values, clusters=None):
    return Score("mean", np.array(values, float)[:, None], clusters=None if clusters is None else np.array(clusters))


def interval(score, **options):
    return average_interval([score], None, **options)


def compare(a, b, **options):
    return compare_averages([a], [b], None, **options)


def two_models(n, seed, better=0.0, noise=1.0):
    rng = np.random.default_rng(seed)
    gold = rng.normal(size=n)
    shared = rng.normal(size=n)
    a = gold * (1 + better) + shared + noise * rng.normal(size=n)
    b = gold + shared + noise * rng.normal(size=n)
    return [Score("spearman", np.stack([x, gold], axis=1)) for x in (a, b)]


# ---------------------------------------------------------------- by hand and against an oracle


def test_symmetric_values_have_the_interval_of_students_t():
    # 21 values, -10 to 10: no skewness, variance 770 / 20 = 38.5, error sqrt(38.5 / 21), t(20) = 2.086.
    low, high = interval(means(range(-10, 11)))
    assert (low, high) == pytest.approx((-100 * 2.086 * np.sqrt(38.5 / 21), 100 * 2.086 * np.sqrt(38.5 / 21)), rel=1e-4)


def test_equal_values_within_clusters_count_once():
    values = np.arange(-10.0, 11.0)
    repeated = means(np.repeat(values, 6), np.repeat(np.arange(21), 6))
    assert interval(repeated) == pytest.approx(interval(means(values)))


def test_a_bound_is_wider_where_the_scores_are_skewed():
    # One 2 among ten 0s: the mean and its error are both 2/11. From the mean they are 20/11 and ten times -2/11, the sum
    # of squares is 440/121 and of cubes 7920/1331, so the skewness is 7920/1331 / (440/121)^1.5 = 0.8581. t(10) = 2.2281.
    # Of that, 0.3 is corrected for: 1 + 0.3 (-2.2281 - 0.05) = 0.31656, whose cube root is 0.68152.
    t, upper = 2.22814, 3 / 0.3 * (0.68152 - 1)
    low, high = interval(means([2.0, *[0.0] * 10]))  # 2 is beyond 1, so that nothing is cut off
    assert (low, high) == pytest.approx((200 / 11 * (1 - t), 200 / 11 * (1 - upper)), rel=1e-4)


@pytest.mark.parametrize("metric", METRICS)
def test_the_interval_equals_the_plain_loop(metric):
    score = Score(metric, random_items(metric, 60, 3), clusters=np.arange(60) // 3)
    least, most = (-100, 100) if metric in ("spearman", "pearson", "matthews") else (0, 100)
    least, most = (-np.inf, np.inf) if metric == "mean" else (least, most)
    low, high = plain_bounds(score.value, plain_influences([score]), freedom=19)
    assert interval(score) == pytest.approx((max(low, least), min(high, most)), abs=1e-6)


def test_unequal_clusters_have_fewer_degrees_of_freedom():
    # Sizes 1, 1, 1, 3: Kish's effective number is 36 / 12 = 3.
    score = means([0.0, 1.0, 2.5, 3.0, 4.0, 6.0], [0, 1, 2, 3, 3, 3])
    low, high = plain_bounds(score.value, plain_influences([score]), freedom=2)
    assert interval(score) == pytest.approx((low, high))
    found = compare(score, means([0.5] * 6, score.clusters))
    assert (found.clusters, found.effective) == (4, 3)


def test_the_smaller_task_of_an_average_decides_how_many_clusters_count():
    few, many = means(np.arange(20) * 5.0 % 7), means(np.arange(400) % 7)
    found = compare_averages([few, many], [means(np.zeros(20)), means(np.zeros(400))])
    assert found.clusters == 420
    assert 20 < found.effective < 25


def test_the_difference_equals_the_plain_loop_and_turns_around():
    a, b = two_models(60, 5, better=0.3)
    found = compare(a, b)
    assert found.difference == pytest.approx(a.value - b.value)
    added = plain_influences([a]) - plain_influences([b])
    assert (found.low, found.high) == pytest.approx(plain_bounds(a.value - b.value, added, 59), abs=1e-6)
    other = compare(b, a)
    assert (other.low, other.high, other.p) == pytest.approx((-found.high, -found.low, found.p))


def test_without_skewness_a_comparison_is_the_paired_t_test():
    half = np.random.default_rng(0).normal(size=25)
    change = 0.2 + np.concatenate([half, -half])  # symmetric about 0.2
    base = np.random.default_rng(1).normal(size=50)
    found = compare(means(base + change), means(base))
    expected = stats.ttest_rel(base + change, base)
    assert found.p == pytest.approx(expected.pvalue)
    low, high = expected.confidence_interval(0.95)
    assert (found.low, found.high) == pytest.approx((100 * low, 100 * high))


# ---------------------------------------------------------------- averages over tasks


def test_each_item_as_its_own_cluster_is_the_same_as_no_clusters():
    a, b = two_models(50, 2)
    numbers = np.random.default_rng(0).permutation(50) * 3 - 40
    clustered = [Score("spearman", one.items, clusters=numbers) for one in (a, b)]
    plain, other = compare(a, b), compare(*clustered)
    assert list(vars(other).values()) == pytest.approx(list(vars(plain).values()))


def test_two_identical_tasks_on_the_same_rows_have_the_interval_of_one():
    score = Score("spearman", random_items("spearman", 60, 1), clusters=np.arange(60) // 2)
    assert average_interval([score, score]) == pytest.approx(interval(score))
    assert count_clusters([score, score]) == 30
    apart = Score("spearman", score.items, clusters=score.clusters + 100)
    low, high = average_interval([score, apart])
    assert high - low < 0.8 * np.ptp(interval(score)), "other rows add information"
    assert count_clusters([score, apart]) == 60


def test_an_average_equals_the_plain_loop():
    scores = [Score("spearman", random_items("spearman", 40, seed), clusters=np.arange(40) // 2) for seed in range(3)]
    weights = [0.5, 0.25, 0.25]
    value = np.average([score.value for score in scores], weights=weights)
    expected = plain_bounds(value, plain_influences(scores, weights), freedom=19)
    assert average_interval(scores, weights) == pytest.approx(expected, abs=1e-6)
    guesses = np.random.default_rng(0).normal(size=(3, 40))
    others = [
        Score("spearman", np.stack([guess, score.items[:, 1]], axis=1), clusters=score.clusters)
        for guess, score in zip(guesses, scores, strict=True)
    ]
    found = compare_averages(scores, others, weights)
    added = plain_influences(scores, weights) - plain_influences(others, weights)
    difference = np.average([a.value - b.value for a, b in zip(scores, others, strict=True)], weights=weights)
    assert found.difference == pytest.approx(difference)
    assert (found.low, found.high) == pytest.approx(plain_bounds(difference, added, 19), abs=1e-6)


def test_an_average_of_many_sets_has_a_narrower_interval():
    scores = [Score("mean", np.random.default_rng(seed).normal(size=(50, 1))) for seed in range(9)]
    low, high = average_interval(scores)
    widths = [np.ptp(interval(score)) for score in scores]
    assert high - low == pytest.approx(np.sqrt(np.square(widths).sum()) / 9, rel=0.1)  # variances add up


# ---------------------------------------------------------------- what p and the interval promise


@given(
    values=st.lists(st.sampled_from([-1.0, -0.37, 0.0, 0.0, 0.37, 0.5, 1.0]), min_size=3, max_size=40),
    level=st.sampled_from([0.5, 0.8, 0.9, 0.95, 0.99]),
    clusters=st.integers(2, 40),
)
def test_p_is_below_one_minus_level_exactly_if_the_interval_excludes_zero(values, level, clusters):
    numbers = np.arange(len(values)) % clusters
    found = compare(means(values, numbers), means(np.zeros(len(values)), numbers), level=level)
    assert 0 <= found.p <= 1
    assert found.low <= found.difference <= found.high
    if min(abs(found.low), abs(found.high)) > 1e-9:  # rounding decides on the bound itself
        assert (found.p < 1 - level) == (found.low > 0 or found.high < 0)


def test_a_lower_level_gives_a_narrower_interval():
    score = Score("accuracy", random_items("accuracy", 200, seed=0))
    low, high = interval(score)
    inner_low, inner_high = interval(score, level=0.5)
    assert low < inner_low < score.value < inner_high < high


@pytest.mark.parametrize("level", [0.0, 1.0, 95.0])
def test_an_invalid_level_is_refused(level):
    with pytest.raises(InputError, match="level"):
        interval(Score("mean", np.ones((3, 1))), level=level)


def test_the_same_input_gives_the_same_bits():
    a, b = (means(np.random.default_rng(seed).normal(size=1200)) for seed in (0, 1))  # clusters are merged at random
    assert compare(a, b) == compare(a, b)
    assert interval(a) == interval(a)


def test_the_order_of_items_does_not_matter():
    a, b = two_models(80, 3)
    order = np.random.default_rng(0).permutation(80)
    turned = compare(*(Score("spearman", one.items[order]) for one in (a, b)))
    assert list(vars(turned).values()) == pytest.approx(list(vars(compare(a, b)).values()))


def test_scores_that_do_not_vary_are_not_certain():
    # 20 of 20 right: 0.05^(1/20) = 0.8609 is the lowest share with which that happens in 5% of cases.
    assert interval(means([1.0] * 20)) == pytest.approx((86.09, 100), abs=0.01)
    assert interval(means([0.0] * 20)) == pytest.approx((0, 13.91), abs=0.01)
    assert interval(means([0.5] * 20)) == pytest.approx((50 * 0.8609, 50 + 50 * 0.1391), abs=0.01)


def test_an_interval_stays_within_the_range_of_its_metric():
    low, high = interval(means([1.0] * 19 + [0.9]))
    assert low < 99.5 < high == 100
    assert interval(Score("accuracy", np.array([[0.0, 1.0]] * 3 + [[1.0, 1.0]])))[0] == 0
    nearly = Score("pearson", np.stack([np.arange(8), np.arange(8) ** 1.1], axis=1))
    assert interval(nearly)[1] <= 100


# ---------------------------------------------------------------- where nothing varies, or nothing is known


def test_a_model_does_not_differ_from_itself():
    a, _ = two_models(60, 0)
    assert compare(a, a) == Comparison(0, 0, 0, 1, 60, 60)


def test_equal_gains_everywhere_are_certain():
    found = compare(means([0.75] * 30), means([0.5] * 30))
    assert (found.difference, found.low, found.high, found.p) == (25, 25, 25, 0)


def test_a_single_cluster_shows_nothing():
    one = np.zeros(5, np.int64)
    assert interval(means([1, 0, 1, 1, 0], one)) == (0, 100)
    found = compare(means([1, 0, 1, 1, 0], one), means([0] * 5, one))
    assert (found.low, found.high, found.p, found.clusters, found.effective) == (-np.inf, np.inf, 1, 1, 1)
    assert not is_within([means([1, 0], [0, 0])], [means([1, 0], [0, 0])], margin=50)


def test_a_group_of_a_single_cluster_shows_nothing():
    """Its share of the variance is unknown, not 0."""
    score = Score("mean", np.array([[0.0], [1.0], [0.5]]), groups=np.array([0, 0, 1]))
    assert interval(score) == (0, 100)


@pytest.mark.parametrize("metric", ["pearson", "spearman", "matthews"])
def test_constant_columns_score_0_for_certain(metric):
    score = Score(metric, np.stack([np.ones(30), np.arange(30) % 2], axis=1))
    assert interval(score) == (0, 0)


def test_scores_on_different_items_are_refused():
    a, b = two_models(60, 0)
    shorter = Score("spearman", b.items[:-1])
    regrouped = Score("spearman", b.items, np.arange(60) % 2)
    reclustered = Score("spearman", b.items, clusters=np.arange(60) // 2)
    other_gold = Score("spearman", np.stack([b.items[:, 0], b.items[::-1, 1]], axis=1))
    cases = ((shorter, "and the other 59"), (regrouped, "groups"), (reclustered, "clusters"), (other_gold, "gold of"))
    for score, message in cases:
        with pytest.raises(InputError, match=message):
            compare(a, score)


# ---------------------------------------------------------------- simulation


def clustered_rankings(rng, clusters, rows, gain=0.0):
    """A base and a tuned model's nDCG: many 0s and 1s, rows of a cluster alike, the tuned one better by a shift."""

    def noise():
        return 0.6 * np.repeat(rng.normal(size=clusters), rows) + 0.8 * rng.normal(size=clusters * rows)

    common, change, numbers = 1.6 * noise(), 0.5 * noise(), np.repeat(np.arange(clusters), rows)
    ranks = [
        np.floor(np.exp(np.clip(0.2 + common + way * change - shift, -1, 9))) + 1 for way, shift in ((1, 0), (-1, gain))
    ]
    return [[means(np.where(rank <= 10, 1 / np.log2(1 + rank), 0), numbers)] for rank in ranks]


def test_two_models_that_are_equal_are_called_different_about_one_time_in_twenty():
    """Of 400, 20 are expected, with deviation 4.4; half of them "better". Over rows it would be about 110."""
    rng = np.random.default_rng(0)
    pairs = [clustered_rankings(rng, 20, 8) for _ in range(400)]
    found = [compare_averages(tuned, base) for base, tuned in pairs]
    assert 7 <= sum(one.p < 0.05 for one in found) <= 33
    assert sum(one.low > 0 for one in found) <= 20
    rows = [compare(*(Score("mean", one.items) for (one,) in pair)).p < 0.05 for pair in pairs]
    assert sum(rows) > 50


def test_the_interval_of_a_skewed_score_covers_the_true_value():
    """nDCG with a mean of 91.6, 20 clusters: of 500 intervals, 475 are expected to cover it, with deviation 4.9."""
    rng = np.random.default_rng(1)
    rank = np.floor(np.exp(np.clip(-1.6 + np.sqrt(1.6**2 + 0.5**2) * rng.normal(size=(500, 20, 8)), -1, 9))) + 1
    values = np.where(rank <= 10, 1 / np.log2(1 + rank), 0)
    found = [interval(means(one.ravel(), np.repeat(np.arange(20), 8))) for one in values]
    assert 455 <= sum(low <= 91.58 <= high for low, high in found) <= 495


def williams_p(r12, r13, r23, n):
    """Compute the two-sided p of Williams' t, as recommended by Steiger (1980), for comparison."""
    determinant = 1 - r12**2 - r13**2 - r23**2 + 2 * r12 * r13 * r23
    spread = 2 * (n - 1) / (n - 3) * determinant + ((r12 + r13) / 2) ** 2 * (1 - r23) ** 3
    return 2 * stats.t.sf(abs(r12 - r13) * np.sqrt((n - 1) * (1 + r23) / spread), n - 3)


def test_p_agrees_roughly_with_williams_test():
    # cor_diff(r1 = .20, r2 = .45, n = 100, rcov = .80) of the R package bruceR prints t(97) = -4.56, p = 1e-05.
    assert stats.t.isf(williams_p(0.20, 0.45, 0.80, 100) / 2, 97) == pytest.approx(4.56, abs=0.005)
    a, b = two_models(300, 11, better=0.25)
    x, y, gold = stats.rankdata([a.items[:, 0], b.items[:, 0], a.items[:, 1]], axis=1)
    expected = williams_p(*(np.corrcoef(*pair)[0, 1] for pair in ((x, gold), (y, gold), (x, y))), 300)
    assert compare(a, b).p == pytest.approx(expected, abs=0.05)


# ---------------------------------------------------------------- equivalence, power, reuse, seeds


def test_equivalence_is_the_90_percent_interval_within_the_margin():
    half = np.tile([0.001, -0.001], 20)
    a, b = means(0.5 + half), means([0.5] * 40)
    reach = compare(a, b, level=0.9).high
    assert is_within([a], [b], margin=reach * 1.001)
    assert not is_within([a], [b], margin=reach * 0.999)
    assert is_within([a], [b], margin=compare(a, b).high * 0.9), "the 95% interval may reach beyond"
    assert not is_within([means(0.6 + half)], [b])


def test_no_difference_in_few_clusters_is_no_equivalence():
    # If 1 cluster in 200 changed from a miss to a hit, none of 597 would with a probability of 0.995^597 = 5.02%.
    for clusters, shown in ((20, False), (597, False), (598, True)):
        same = [means(np.arange(clusters) % 2)]
        assert is_within(same, same, margin=0.5) is shown


def test_the_smallest_gain_by_hand():
    # Error 1 point: 100 items of deviation 0.1 (n - 1). t(99): 1.9842 for 95%, 0.8453 for a power of 80%.
    values = np.tile([1.0, -1.0], 50) * 0.1 * np.sqrt(99 / 100)
    base = [means(values)]
    assert smallest_gain(base, correlation=0.5) == pytest.approx(1.9842 + 0.8453, abs=2e-4)
    assert smallest_gain(base, correlation=0.875) == pytest.approx((1.9842 + 0.8453) / 2, abs=2e-4)


def test_the_smallest_gain_falls_with_correlation_and_rows_and_rises_with_power_and_level():
    base = [Score("mean", np.random.default_rng(0).random((80, 1)), clusters=np.arange(80) // 2)]
    more = [Score("mean", np.tile(base[0].items, (4, 1)), clusters=np.arange(320) // 2)]
    gain = smallest_gain(base)
    assert smallest_gain(base, correlation=0.95) < gain < smallest_gain(base, correlation=0.3)
    assert smallest_gain(base, power=0.5) < gain < smallest_gain(base, power=0.9)
    assert smallest_gain(base, level=0.9) < gain < smallest_gain(base, level=corrected_level(3))
    assert smallest_gain(more) == pytest.approx(gain / 2, rel=0.05)


def test_a_base_that_does_not_vary_gets_the_gain_of_hits_and_misses():
    # Nothing is found in 30 clusters. t(29): 2.0452 for 95%, 0.8542 for a power of 80%, together 2.8994. A model that is
    # right g of the time has an error of sqrt(g (1 - g) / 30), so g = 2.8994^2 / (30 + 2.8994^2) = 8.4065 / 38.4065.
    assert smallest_gain([means([0.0] * 30)]) == pytest.approx(100 * 8.4065 / 38.4065, abs=0.01)
    assert smallest_gain([means([0.0] * 300)]) < 3
    assert smallest_gain([means([1.0] * 30)]) is None, "no gain is possible"
    # From one half: g = 2.8994 sqrt((1/2 + g) (1/2 - g) / 30), so g^2 = 0.28022 (1/4 - g^2), g = sqrt(0.070054 / 1.28022)
    assert smallest_gain([means([0.5] * 30)]) == pytest.approx(100 * np.sqrt(0.070054 / 1.28022), abs=0.01)
    unbounded = Score("spearman", np.stack([np.ones(30), np.arange(30.0)], axis=1))
    assert smallest_gain([unbounded]) is None


def test_a_gain_of_that_size_over_a_base_at_0_is_called_better_at_least_four_times_in_five():
    """More often, because a sample with few hits also has a small error."""
    rng, base = np.random.default_rng(0), means([0.0] * 40)
    gain = smallest_gain([base]) / 100
    found = [compare(means(rng.random(40) < gain), base).low > 0 for _ in range(1000)]
    assert 0.8 < np.mean(found) < 0.97


def test_a_task_that_does_not_vary_does_not_hide_in_an_average():
    varied, constant = means(np.tile([0.25, 0.75], 20)), means([0.0] * 40)
    both = smallest_gain([varied, constant])
    assert both > smallest_gain([constant]) / 2 > 0
    assert both > smallest_gain([varied]) / 2


def test_hits_must_change_to_gain():
    # 2 misses in 100: the base hardly varies, but to gain g% of the items, g% must change: 2.8295^2 / (100 + 2.8295^2).
    assert smallest_gain([means([*[1.0] * 98, 0.0, 0.0])], correlation=0.99) == pytest.approx(7.41, abs=0.01)


def test_a_gain_of_that_size_is_called_better_four_times_in_five():
    rng = np.random.default_rng(3)
    pairs = [clustered_rankings(rng, 60, 3, gain=0.29) for _ in range(300)]
    gain = np.mean([tuned[0].value - base[0].value for base, tuned in pairs])
    values = np.array([[base[0].value, tuned[0].value] for base, tuned in pairs])
    correlation = np.corrcoef(values.T)[0, 1]
    promised = np.mean([smallest_gain(base, correlation=correlation) for base, _ in pairs])
    power = np.mean([compare_averages(tuned, base).low > 0 for base, tuned in pairs])
    size = gain / promised  # the power of a gain of another size, by normal theory
    expected = stats.norm.cdf(size * 2.8016 - 1.96)
    assert 0.5 < expected < 0.97
    assert power == pytest.approx(expected, abs=0.1)


def test_reused_test_rows_spend_twice_the_error_of_one_use_at_most():
    assert corrected_level(1) == pytest.approx(0.95)
    assert corrected_level(2) == pytest.approx(1 - 0.05 / 3)
    assert corrected_level(3, level=0.9) == pytest.approx(1 - 0.1 / 6)
    spent = [1 - corrected_level(uses) for uses in range(1, 5000)]
    assert all(one > other for one, other in pairwise(spent))
    assert 0.0999 < sum(spent) < 0.1
    with pytest.raises(InputError, match="uses"):
        corrected_level(0)


def test_mean_and_deviation_against_hand_computed_values():
    # Squares of distances from 4: 4 + 0 + 4 = 8; 8 / 2 = 4.
    assert mean_and_deviation([2.0, 4.0, 6.0]) == (4.0, 2.0)
    assert mean_and_deviation([3.5]) == (3.5, None)
