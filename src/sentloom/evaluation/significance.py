"""Uncertainty of scores: bootstrap intervals, paired comparisons, deviations over seeds.

A resample draws as many items as there are, with replacement, within each group if there are groups. It is stored as
counts of how often each item was drawn, and each metric is computed from counts for many resamples at once.
Shapes: n items, r resamples of a block, u distinct values.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

import numpy as np
import numpy.typing as npt

from sentloom.errors import InputError
from sentloom.evaluation.metrics import METRICS, Numbers
from sentloom.evaluation.task import Score

RESAMPLES = 1000
LEAST_P = 2 / (RESAMPLES + 1)  # the smallest p of the bootstrap: no resample beyond 0
BLOCK = 1 << 19  # counts in memory at once


@dataclass(frozen=True)
class Comparison:
    """The difference of the first score and the second, times 100, with an interval and a two-sided p."""

    difference: float
    low: float
    high: float
    p: float


def average_interval(
    scores: Sequence[Score],
    weights: Sequence[float] | None = None,
    level: float = 0.95,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> tuple[float, float]:
    """Compute a percentile bootstrap interval, times 100, for a mean of scores, each resampled separately.

    A mean of means is a weighted mean, for example 1/2, 1/4, 1/4 for one set and a pair of sets.
    """
    low, high = _percentiles(_replicates(scores, weights, resamples, seed), level)
    return 100 * low, 100 * high


def compare_averages(
    a: Sequence[Score],
    b: Sequence[Score],
    weights: Sequence[float] | None = None,
    level: float = 0.95,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Comparison:
    """Compare two means over the same sets by a paired bootstrap, on the same draws of the same items.

    p is at least 2 / (resamples + 1), `LEAST_P`.
    """
    for one, other in zip(a, b, strict=True):
        _check_pair(one, other)
    differences = _replicates(a, weights, resamples, seed) - _replicates(b, weights, resamples, seed)
    low, high = _percentiles(differences, level)
    tail = min(np.count_nonzero(differences <= 0), np.count_nonzero(differences >= 0))
    p = min(1.0, 2 * (int(tail) + 1) / (resamples + 1))
    values = [one.value - other.value for one, other in zip(a, b, strict=True)]
    return Comparison(float(np.average(values, weights=weights)), 100 * low, 100 * high, p)


def mean_and_deviation(values: Sequence[float]) -> tuple[float, float | None]:
    """Return the mean over seeds and the sample standard deviation (n - 1), None for a single seed."""
    return fmean(values), stdev(values) if len(values) > 1 else None


def _check_pair(a: Score, b: Score) -> None:
    """Refuse scores that cannot be paired because their items, groups or gold differ."""
    if len(a.items) != len(b.items):
        problem = f"one score has {len(a.items):,} items and the other {len(b.items):,}"
    elif not np.array_equal(_groups(a), _groups(b)):
        problem = "the groups of the items differ"
    elif a.items.shape[1] == b.items.shape[1] == 2 and not np.array_equal(a.items[:, 1], b.items[:, 1]):
        problem = "the gold of the items differs"
    else:
        return
    raise InputError("comparison", problem, "two scores on the same items", "score both models on the same set")


def _percentiles(replicates: Numbers, level: float) -> tuple[float, float]:
    if not 0 < level < 1:
        raise InputError("level", f"{level} is out of range", "a number between 0 and 1", "use 0.95, for example")
    low, high = np.quantile(replicates, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def _replicates(scores: Sequence[Score], weights: Sequence[float] | None, resamples: int, seed: int) -> Numbers:
    """Compute the weighted mean of the scores on each resample (resamples,), not times 100.

    The draws depend only on the seed, the index in the list and the group sizes, so two models that are scored on the
    same items get the same draws.
    """
    values = [_of_score(score, resamples, np.random.default_rng([seed, place])) for place, score in enumerate(scores)]
    mean: Numbers = np.average(values, axis=0, weights=weights)
    return mean


def _of_score(score: Score, resamples: int, rng: np.random.Generator) -> Numbers:
    groups = _groups(score)
    names, sizes = np.unique(groups, return_counts=True)
    values = [_of_items(score.metric, score.items[groups == name], resamples, rng) for name in names]
    mean: Numbers = np.average(values, axis=0, weights=sizes if score.weighted else None)
    return mean


def _groups(score: Score) -> npt.NDArray[np.int64]:
    return np.zeros(len(score.items), np.int64) if score.groups is None else score.groups


def _of_items(metric: str, items: Numbers, resamples: int, rng: np.random.Generator) -> Numbers:
    statistic = STATISTICS.get(metric, _plain(METRICS[metric]))
    return np.concatenate([statistic(items, counts) for counts in _counts(len(items), resamples, rng)])


def _counts(n: int, resamples: int, rng: np.random.Generator) -> Iterator[Numbers]:
    """Yield how often each item is drawn (n, r), block by block."""
    size = max(1, BLOCK // n)
    for start in range(0, resamples, size):
        r = min(size, resamples - start)
        drawn = rng.integers(0, n, (r, n))
        places = drawn * r + np.arange(r)[:, None]
        yield np.bincount(places.ravel(), minlength=n * r).reshape(n, r).astype(np.float64)


Statistic = Callable[[Numbers, Numbers], Numbers]  # items (n, c), counts (n, r) -> (r,)


def _plain(metric: Callable[[Numbers], float]) -> Statistic:
    """Compute any metric resample by resample."""

    def loop(items: Numbers, counts: Numbers) -> Numbers:
        return np.array([metric(np.repeat(items, column.astype(np.int64), axis=0)) for column in counts.T])

    return loop


def _mean(items: Numbers, counts: Numbers) -> Numbers:
    return items[:, 0] @ counts / len(items)


def _accuracy(items: Numbers, counts: Numbers) -> Numbers:
    return (items[:, 0] == items[:, 1]) @ counts / len(items)


def _f1(items: Numbers, counts: Numbers) -> Numbers:
    hits = items == 1
    return _ratio(2 * (hits.all(axis=1) @ counts), hits.sum(axis=1) @ counts)


def _pearson(items: Numbers, counts: Numbers) -> Numbers:
    x, y = items.T - items.mean(axis=0)[:, None]  # centred first, so that the differences below lose no precision
    n = len(items)
    means = x @ counts / n, y @ counts / n
    covariance = (x * y) @ counts / n - means[0] * means[1]
    variances = (x * x) @ counts / n - means[0] ** 2, (y * y) @ counts / n - means[1] ** 2
    varied = ~(_is_constant(x, counts) | _is_constant(y, counts))
    return _ratio(covariance * varied, np.sqrt(np.prod(variances, axis=0) * varied))


def _is_constant(values: Numbers, counts: Numbers) -> npt.NDArray[np.bool_]:
    """Whether all drawn values of each resample are equal, exactly: the minimum is the maximum."""
    order = np.argsort(values)
    drawn = counts[order] > 0
    rising = values[order]
    constant: npt.NDArray[np.bool_] = (
        rising[drawn.argmax(axis=0)] == rising[len(values) - 1 - drawn[::-1].argmax(axis=0)]
    )
    return constant


def _spearman(items: Numbers, counts: Numbers) -> Numbers:
    (x, variance_x), (y, variance_y) = (_centred_ranks(column, counts) for column in items.T)
    return _ratio(np.einsum("nr,nr,nr->r", counts, x, y), np.sqrt(variance_x * variance_y))


def _centred_ranks(values: Numbers, counts: Numbers) -> tuple[Numbers, Numbers]:
    """Return each item's mean rank in each resample, centred (n, r), and their sum of squares (r,)."""
    order = np.argsort(values, kind="stable")
    starts = np.flatnonzero(np.append(True, np.diff(values[order]) != 0))
    tied = np.add.reduceat(counts[order], starts, axis=0)  # (u, r)
    ranks = np.cumsum(tied, axis=0) - (tied - 1) / 2 - (len(values) + 1) / 2
    place = np.empty(len(values), np.int64)
    place[order] = np.repeat(np.arange(len(starts)), np.diff(np.append(starts, len(values))))
    return ranks[place], np.einsum("ur,ur,ur->r", tied, ranks, ranks)


def _average_precision(items: Numbers, counts: Numbers) -> Numbers:
    order = np.argsort(-items[:, 0], kind="stable")
    scores, labels = items[order].T
    last_of_tie = np.append(np.flatnonzero(np.diff(scores)), len(scores) - 1)
    seen = np.cumsum(counts[order], axis=0)[last_of_tie]  # (u, r)
    found = np.cumsum(counts[order] * labels[:, None], axis=0)[last_of_tie]
    gained = np.diff(found, axis=0, prepend=0.0)
    return _ratio((gained * _ratio(found, seen)).sum(axis=0), found[-1])


def _ratio(above: Numbers, below: Numbers) -> Numbers:
    """Divide, with 0 for a zero denominator, as in the metrics."""
    ratio: Numbers = np.divide(above, below, out=np.zeros(np.shape(below)), where=below > 0)
    return ratio


STATISTICS: Mapping[str, Statistic] = {
    "mean": _mean,
    "accuracy": _accuracy,
    "f1": _f1,
    "pearson": _pearson,
    "matthews": _pearson,
    "spearman": _spearman,
    "average-precision": _average_precision,
}
