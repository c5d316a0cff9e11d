"""Bootstrap from counts against plain loops on the same draws, tests against simulation and published values."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from sentloom.errors import InputError
from sentloom.evaluation import significance
from sentloom.evaluation.metrics import METRICS
from sentloom.evaluation.significance import (
    STATISTICS,
    average_interval,
    compare_averages,
    mean_and_deviation,
)
from sentloom.evaluation.task import Score


def interval(score, *arguments, **options):
    return average_interval([score], None, *arguments, **options)


def compare(a, b, **options):
    return compare_averages([a], [b], None, **options)


def random_items(metric, n, seed, ties=True):
    rng = np.random.default_rng(seed)
    gold = rng.integers(0, 2, n) if metric in ("f1", "matthews", "accuracy", "average-precision") else None
    if metric in ("f1", "matthews", "accuracy"):
        return np.stack([np.where(rng.random(n) < 0.7, gold, 1 - gold), gold], axis=1).astype(float)
    x = rng.normal(size=n)
    x = x.round(1) if ties else x
    if metric == "mean":
        return x[:, None]
    second = gold if gold is not None else (x + rng.normal(size=n)).round(0 if ties else 12)
    return np.stack([x, second], axis=1).astype(float)


def plain_replicates(score, resamples, seed, place=0):
    """Slow oracle on the same draws: loop over groups and resamples."""
    rng = np.random.default_rng([seed, place])
    groups = np.zeros(len(score.items), int) if score.groups is None else score.groups
    drawn = []
    for name in np.unique(groups):
        members = np.flatnonzero(groups == name)
        drawn.append(members[rng.integers(0, len(members), (resamples, len(members)))])
    return np.array([score.of(rows) for rows in np.concatenate(drawn, axis=1)])


def plain_interval(replicates, level=0.95):
    return tuple(100 * np.quantile(replicates, [(1 - level) / 2, (1 + level) / 2]))


@pytest.mark.parametrize("ties", [True, False])
@pytest.mark.parametrize("n", [1, 2, 3, 40])
@pytest.mark.parametrize("metric", METRICS)
def test_every_replicate_equals_the_plain_loop(metric, n, ties):
    score = Score(metric, random_items(metric, n, seed=n, ties=ties))
    got = significance._replicates([score], None, 200, 7)
    assert got == pytest.approx(plain_replicates(score, 200, 7), abs=1e-9)


@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("metric", METRICS)
def test_resamples_stay_within_groups(metric, weighted):
    groups = np.random.default_rng(0).permutation(np.repeat([3, 1, 2], [30, 7, 12]))
    score = Score(metric, random_items(metric, 49, seed=1), groups, weighted)
    assert interval(score, resamples=150, seed=3) == pytest.approx(
        plain_interval(plain_replicates(score, 150, 3)), abs=1e-9
    )


@given(
    values=st.lists(st.tuples(st.sampled_from([-3.0, 0.0, 0.1, 2.5]), st.integers(0, 1)), min_size=1, max_size=12),
    metric=st.sampled_from(sorted(METRICS)),
)
def test_few_distinct_values(values, metric):
    score = Score(metric, np.array(values, float))
    got = significance._replicates([score], None, 20, 0)
    assert got == pytest.approx(plain_replicates(score, 20, 0), abs=1e-9)


@pytest.mark.parametrize("metric", METRICS)
def test_results_do_not_depend_on_block_size(metric, monkeypatch):
    score = Score(metric, random_items(metric, 30, seed=2))
    whole = interval(score, resamples=100)
    monkeypatch.setattr(significance, "BLOCK", 30 * 7)
    assert interval(score, resamples=100) == pytest.approx(whole, abs=1e-9)


def test_a_metric_without_a_fast_version_uses_the_loop(monkeypatch):
    score = Score("spearman", random_items("spearman", 30, seed=2))
    fast = interval(score, resamples=50)
    monkeypatch.setattr(significance, "STATISTICS", {})
    assert interval(score, resamples=50) == pytest.approx(fast, abs=1e-9)
    assert set(STATISTICS) == set(METRICS)


def test_the_bootstrap_is_deterministic_given_the_seed():
    score = Score("spearman", random_items("spearman", 100, seed=0))
    assert interval(score) == interval(score)
    assert interval(score) != interval(score, seed=1)


def test_the_interval_of_a_mean_agrees_with_normal_theory():
    # Normal theory: mean ± 1.96 s / sqrt(n), which the bootstrap approximates for n = 2,000.
    values = np.random.default_rng(0).normal(0.5, 0.1, 2000)
    low, high = interval(Score("mean", values[:, None]), resamples=4000)
    half = 196 * values.std() / np.sqrt(2000)
    assert (low, high) == pytest.approx((100 * values.mean() - half, 100 * values.mean() + half), abs=0.03)


def test_a_lower_level_gives_a_narrower_interval():
    score = Score("accuracy", random_items("accuracy", 200, seed=0))
    low, high = interval(score)
    inner_low, inner_high = interval(score, level=0.5)
    assert low < inner_low < score.value < inner_high < high


@pytest.mark.parametrize("level", [0.0, 1.0, 95.0])
def test_an_invalid_level_is_refused(level):
    with pytest.raises(InputError, match="level"):
        interval(Score("mean", np.ones((3, 1))), level=level)


def test_tasks_of_an_average_are_resampled_separately():
    scores = [Score("spearman", random_items("spearman", 40, seed)) for seed in range(3)]
    weights = [0.5, 0.25, 0.25]
    parts = [plain_replicates(score, 200, 5, place) for place, score in enumerate(scores)]
    by_hand = 0.5 * parts[0] + 0.25 * parts[1] + 0.25 * parts[2]
    assert average_interval(scores, weights, resamples=200, seed=5) == pytest.approx(plain_interval(by_hand), abs=1e-9)
    plain = plain_interval(sum(parts) / 3)
    assert average_interval(scores, resamples=200, seed=5) == pytest.approx(plain, abs=1e-9)


def test_an_average_of_many_sets_has_a_narrower_interval():
    scores = [Score("mean", np.random.default_rng(seed).normal(size=(50, 1))) for seed in range(9)]
    low, high = average_interval(scores)
    widths = [np.ptp(interval(score)) for score in scores]
    assert high - low == pytest.approx(np.sqrt(np.square(widths).sum()) / 9, rel=0.1)  # variances add up


def two_models(n, seed, better=0.0, noise=1.0):
    rng = np.random.default_rng(seed)
    gold = rng.normal(size=n)
    shared = rng.normal(size=n)
    a = gold * (1 + better) + shared + noise * rng.normal(size=n)
    b = gold + shared + noise * rng.normal(size=n)
    return [Score("spearman", np.stack([x, gold], axis=1)) for x in (a, b)]


def test_compare_equals_the_plain_loop():
    a, b = two_models(60, 5, better=0.3)
    found = compare(a, b, resamples=300, seed=2)
    differences = plain_replicates(a, 300, 2) - plain_replicates(b, 300, 2)
    assert found.difference == pytest.approx(a.value - b.value)
    assert (found.low, found.high) == pytest.approx(plain_interval(differences), abs=1e-9)
    tail = min((differences <= 0).sum(), (differences >= 0).sum())
    assert found.p == pytest.approx(2 * (tail + 1) / 301)
    other = compare(b, a, resamples=300, seed=2)
    assert (other.difference, other.p) == pytest.approx((-found.difference, found.p))


def test_a_model_does_not_differ_from_itself():
    a, _ = two_models(60, 0)
    found = compare(a, a)
    assert (found.difference, found.low, found.high, found.p) == (0, 0, 0, 1)


def test_a_far_better_model_is_significant():
    a, b = two_models(400, 1, better=2.0)
    assert compare(a, b).p == pytest.approx(2 / 1001)
    assert compare(a, b).low > 0


def test_paired_bootstrap_rejects_a_true_null_about_one_time_in_twenty():
    rejected = sum(compare(*two_models(80, seed), resamples=200).p < 0.05 for seed in range(300))
    assert 4 <= rejected <= 30  # 15 are expected


def test_comparison_of_averages():
    first, second = zip(*(two_models(60, seed, better=0.3) for seed in range(3)), strict=True)
    weights = [0.5, 0.25, 0.25]
    found = compare_averages(first, second, weights, resamples=200)
    parts = [
        plain_replicates(a, 200, 0, place) - plain_replicates(b, 200, 0, place)
        for place, (a, b) in enumerate(zip(first, second, strict=True))
    ]
    by_hand = plain_interval(np.average(parts, axis=0, weights=weights))
    assert (found.low, found.high) == pytest.approx(by_hand, abs=1e-9)
    values = [a.value - b.value for a, b in zip(first, second, strict=True)]
    assert found.difference == pytest.approx(values[0] / 2 + values[1] / 4 + values[2] / 4)


def test_scores_on_different_items_are_refused():
    a, b = two_models(60, 0)
    shorter = Score("spearman", b.items[:-1])
    regrouped = Score("spearman", b.items, np.arange(60) % 2)
    other_gold = Score("spearman", np.stack([b.items[:, 0], b.items[::-1, 1]], axis=1))
    for wrong, message in ((shorter, "and the other 59"), (regrouped, "groups"), (other_gold, "gold of the items")):
        with pytest.raises(InputError, match=message):
            compare(a, wrong)


def williams_p(r12, r13, r23, n):
    """Compute the two-sided p of Williams' t, as recommended by Steiger (1980), for comparison."""
    determinant = 1 - r12**2 - r13**2 - r23**2 + 2 * r12 * r13 * r23
    spread = 2 * (n - 1) / (n - 3) * determinant + ((r12 + r13) / 2) ** 2 * (1 - r23) ** 3
    return 2 * stats.t.sf(abs(r12 - r13) * np.sqrt((n - 1) * (1 + r23) / spread), n - 3)


def test_the_bootstrap_agrees_roughly_with_williams_test():
    # cor_diff(r1 = .20, r2 = .45, n = 100, rcov = .80) of the R package bruceR prints t(97) = -4.56, p = 1e-05.
    assert stats.t.isf(williams_p(0.20, 0.45, 0.80, 100) / 2, 97) == pytest.approx(4.56, abs=0.005)
    a, b = two_models(300, 11, better=0.25)
    x, y, gold = stats.rankdata([a.items[:, 0], b.items[:, 0], a.items[:, 1]], axis=1)
    expected = williams_p(*(np.corrcoef(*pair)[0, 1] for pair in ((x, gold), (y, gold), (x, y))), 300)
    assert compare(a, b, resamples=4000).p == pytest.approx(expected, abs=0.05)


def test_mean_and_deviation_against_hand_computed_values():
    # Squares of distances from 4: 4 + 0 + 4 = 8; 8 / 2 = 4.
    assert mean_and_deviation([2.0, 4.0, 6.0]) == (4.0, 2.0)
    assert mean_and_deviation([3.5]) == (3.5, None)
