"""Uncertainty of scores: intervals, paired comparisons, equivalence, power, deviations over seeds.

Items of one cluster (rows that share a text, a customer, a document) are not independent, so clusters are what is
random: the spread of a mean of scores comes from leaving out one cluster at a time, in all scores at once. A bound is
the wider of two: Student's t, and the same with Hall's correction for skewness. docs/statistics.md shows by simulation
how often these are wrong.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

import numpy as np
import numpy.typing as npt
from scipy.special import stdtr, stdtrit  # Student's t and its quantiles, much faster than scipy.stats.t

from sentloom.errors import InputError
from sentloom.evaluation.jackknife import MEANS, Influences, influences, joint_clusters
from sentloom.evaluation.metrics import CORRELATIONS
from sentloom.evaluation.task import Score

MOST_SKEWNESS = 0.3  # that is corrected for: the correction is an expansion, and explodes beyond
LEAST_CLUSTERS = 20  # see `are_enough`
LEVEL = 0.95  # of intervals and tests, unless another is given
LEAST_P = 0.001  # smaller ones are printed as "p < 0.001"
CORRELATION = 0.8  # of a base and a tuned model over clusters; docs/statistics.md has what was measured
ROUNDING = 1e-9  # less is 0


@dataclass(frozen=True)
class Comparison:
    """The difference of the first score and the second, times 100, with an interval and a two-sided p.

    p is below 1 - level exactly if the interval excludes 0. `effective` is the number of clusters of equal size that
    would be as informative: the degrees of freedom plus 1, at most 1,000.
    """

    difference: float
    low: float
    high: float
    p: float
    clusters: int
    effective: float


def average_interval(
    scores: Sequence[Score], weights: Sequence[float] | None = None, level: float = LEVEL
) -> tuple[float, float]:
    """Compute an interval over clusters, times 100, for a mean of scores.

    A mean of means is a weighted mean, for example 1/2, 1/4, 1/4 for one set and a pair of sets.
    """
    value, spread = _average([score.value for score in scores], weights), _spread(influences(scores, weights))
    low, high = _bounds(value, spread, level)
    least, most = (_average(ends, weights) for ends in zip(*map(_range, scores), strict=True))
    if spread.deviation == 0 and all(score.metric in MEANS for score in scores):
        unseen = _unseen(spread.effective, level)
        low, high = low - unseen * (value - least), high + unseen * (most - value)
    return max(low, least), min(high, most)


def compare_averages(
    a: Sequence[Score], b: Sequence[Score], weights: Sequence[float] | None = None, level: float = LEVEL
) -> Comparison:
    """Compare two means over the same sets, paired: each cluster is left out of both."""
    for score, other in zip(a, b, strict=True):
        _check_pair(score, other)
    first, second = influences(a, weights), influences(b, weights)
    spread = _spread(Influences(first.values - second.values, first.shares))
    difference = _average([score.value - other.value for score, other in zip(a, b, strict=True)], weights)
    low, high = _bounds(difference, spread, level)
    return Comparison(difference, low, high, _chance(difference, spread), count_clusters(a), spread.effective)


def is_within(a: Sequence[Score], b: Sequence[Score], margin: float = 0.5) -> bool:
    """Whether two means are equivalent: two one-sided 95% tests show that they differ by less than the margin (points).

    This holds if the 90% interval lies within the margin. If no cluster differs at all, there must be enough clusters
    that those that were not seen cannot make a difference of the margin.
    """
    comparison = compare_averages(a, b, level=2 * LEVEL - 1)
    unseen = 0.0
    if comparison.low == comparison.high:
        least, most = (_average(ends, None) for ends in zip(*map(_range, a), strict=True))
        unseen = _unseen(comparison.effective, LEVEL) * (most - least)
    return -margin < comparison.low - unseen and comparison.high + unseen < margin


def smallest_gain(
    base: Sequence[Score], *, level: float = LEVEL, power: float = 0.8, correlation: float = CORRELATION
) -> float | None:
    """Compute the smallest gain (points) that these items show with this power, before any model is trained.

    The tuned model is assumed to vary over clusters as much as the base, with this correlation between the two. Where
    the base does not vary at all, the tuned model is assumed to vary as much as scores within their range can. None if
    that is unknown too, or if no gain is possible because the base has the highest score already.
    """
    spread = _spread(influences(base))
    quantiles = float(stdtrit(spread.freedom, (1 + level) / 2) + stdtrit(spread.freedom, power))
    worst = [1 / len(base) * _most_error(score, quantiles) for score in base if _is_constant(score)]
    error = np.hypot(spread.deviation * np.sqrt(2 * (1 - correlation)), sum(worst))
    gain = max(quantiles * error, _least_gain(base, quantiles))
    return float(gain) if 0 < gain < np.inf else None


def _is_constant(score: Score) -> bool:
    return _spread(influences([score])).deviation == 0


def _most_error(score: Score, quantiles: float) -> float:
    """The largest standard error of a gain over a constant base, where the gain is `quantiles` times as large.

    By the inequality of Bhatia and Davis, scores between 0 and 100 with the mean m have a variance of at most
    m (100 - m), which hits and misses reach. Here m is the base's score plus the gain, and the equation for the gain is
    quadratic. Infinite for a score that is not a mean over items or has no range.
    """
    least, most = _range(score)
    if score.metric not in MEANS or not np.isfinite(most):
        return 0.0 if score.value >= most else np.inf
    ratio = quantiles**2 / _spread(influences([score])).effective
    below, above = score.value - least, max(most - score.value, 0.0)
    middle, product = ratio * (above - below), 4 * (1 + ratio) * ratio * above * below
    return float((middle + np.sqrt(middle**2 + product)) / (2 * (1 + ratio))) / quantiles


def _least_gain(base: Sequence[Score], quantiles: float) -> float:
    """The smallest gain of scores that are hits or misses, whatever the correlation; 0 for other scores.

    To gain g%, at least g% of the items must change, so the variance of the gain is at least g (1 - g) per item.
    """
    (first, *others) = base
    if others or first.groups is not None or first.metric not in MEANS:
        return 0.0
    values = MEANS[first.metric](first.items)
    hits = bool(np.isin(values, (0.0, 1.0)).all()) and first.value < 100
    return 100 * quantiles**2 / (len(values) + quantiles**2) if hits else 0.0


def are_enough(clusters: float) -> bool:
    """Whether coverage is claimed for this effective number of clusters: with fewer, no difference is."""
    return clusters >= LEAST_CLUSTERS


def corrected_level(uses: int, level: float = LEVEL) -> float:
    """Return the level for the k-th use of the same test rows: 1 - 2 (1 - level) / (k (k + 1)).

    The first use keeps the level. As 2 / (k (k + 1)) adds up to 2 over all k, any number of uses together errs at most
    twice as often as the first use alone.
    """
    if uses < 1:
        raise InputError("uses", f"{uses} is out of range", "a whole number from 1", "count this use too")
    return 1 - 2 * (1 - level) / (uses * (uses + 1))


def joint_level(comparisons: int, level: float = LEVEL) -> float:
    """Return the level of each of several intervals that hold all together with this level (Bonferroni)."""
    return 1 - (1 - level) / max(1, comparisons)


def count_clusters(scores: Sequence[Score]) -> int:
    """Count the distinct clusters of all scores."""
    return len(np.unique(np.concatenate(joint_clusters(scores))))


def effective_clusters(scores: Sequence[Score]) -> float:
    """Compute Kish's effective number of clusters: how many of equal size would be as informative, at most 1,000."""
    return _spread(influences(scores)).effective


def mean_and_deviation(values: Sequence[float]) -> tuple[float, float | None]:
    """Return the mean over seeds and the sample standard deviation (n - 1), None for a single seed."""
    return fmean(values), stdev(values) if len(values) > 1 else None


@dataclass(frozen=True)
class _Spread:
    """How a mean of scores, times 100, varies over clusters."""

    deviation: float  # the standard error; infinite if some part has a single cluster
    skewness: float  # of the mean, between -1 and 1
    effective: float

    @property
    def freedom(self) -> float:
        return max(self.effective - 1, 1e-9)


def _spread(influence: Influences) -> _Spread:
    total = 100 * influence.values.sum(axis=0)
    deviation = float(np.sqrt(np.square(total).sum()))
    if (np.count_nonzero(influence.shares, axis=1) == 1).any():
        return _Spread(np.inf, 0.0, _effective(influence))
    if deviation < ROUNDING:
        return _Spread(0.0, 0.0, _effective(influence))
    skewness = float(((total / deviation) ** 3).sum())
    return _Spread(deviation, float(np.clip(skewness, -MOST_SKEWNESS, MOST_SKEWNESS)), _effective(influence))


def _effective(influence: Influences) -> float:
    """Kish's effective number of clusters, where a part counts by its share of the variance."""
    variances = np.square(influence.values).sum(axis=1)
    expected = (variances if variances.any() else np.ones(len(variances))) @ influence.shares
    return round(float(expected.sum() ** 2 / np.square(expected).sum()), 6)


def _unseen(effective: float, level: float) -> float:
    """The share of all clusters that may differ from those seen, if these are all alike: the rule of three, exactly."""
    return float(1 - (1 - level) ** (1 / effective))


def _bounds(value: float, spread: _Spread, level: float) -> tuple[float, float]:
    if not 0 < level < 1:
        raise InputError("level", f"{level} is out of range", "a number between 0 and 1", "use 0.95, for example")
    if spread.deviation in (0, np.inf):
        return value - spread.deviation, value + spread.deviation
    t = float(stdtrit(spread.freedom, (1 + level) / 2))
    below, above = max(t, _from_symmetric(t, spread.skewness)), min(-t, _from_symmetric(-t, spread.skewness))
    return value - spread.deviation * below, value - spread.deviation * above


def _chance(value: float, spread: _Spread) -> float:
    """The two-sided p of 0, from the same two bounds."""
    if spread.deviation in (0, np.inf) or value == 0:
        return 0.0 if value and not spread.deviation else 1.0
    t = value / spread.deviation
    strength = min(abs(t), float(np.sign(t)) * _to_symmetric(t, spread.skewness))
    return min(1.0, float(2 * stdtr(spread.freedom, -strength)))


def _to_symmetric(t: float, skewness: float) -> float:
    """Hall's (1992) cubic, after which a ratio of a mean to its standard error is no longer skewed."""
    return t + skewness * t**2 / 3 + skewness**2 * t**3 / 27 + skewness / 6


def _from_symmetric(t: float, skewness: float) -> float:
    if abs(skewness) < ROUNDING:
        return t
    return float(3 / skewness * (np.cbrt(1 + skewness * (t - skewness / 6)) - 1))


def _range(score: Score) -> tuple[float, float]:
    """The least and the greatest possible value of a score, times 100."""
    if score.metric in CORRELATIONS:
        return -100.0, 100.0
    if score.metric == "mean" and not ((score.items >= 0) & (score.items <= 1)).all():
        return -np.inf, np.inf
    return 0.0, 100.0


def _average(values: Sequence[float], weights: Sequence[float] | None) -> float:
    return float(np.average(values, weights=weights))


def _check_pair(a: Score, b: Score) -> None:
    """Refuse scores that cannot be paired because their items, groups, clusters or gold differ."""
    if len(a.items) != len(b.items):
        problem = f"one score has {len(a.items):,} items and the other {len(b.items):,}"
    elif not _equal(a.groups, b.groups):
        problem = "the groups of the items differ"
    elif not _equal(a.clusters, b.clusters):
        problem = "the clusters of the items differ"
    elif a.items.shape[1] == b.items.shape[1] == 2 and not np.array_equal(a.items[:, 1], b.items[:, 1]):
        problem = "the gold of the items differs"
    else:
        return
    raise InputError("comparison", problem, "two scores on the same items", "score both models on the same set")


def _equal(a: npt.NDArray[np.int64] | None, b: npt.NDArray[np.int64] | None) -> bool:
    return a is b or (a is not None and b is not None and np.array_equal(a, b))
