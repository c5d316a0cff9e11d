"""How much each cluster of items contributes to a mean of scores: the jackknife, leaving out one cluster at a time.

A score is computed within parts: each group of its items, or all of them. A mean over items is recomputed from the
sums of the other clusters. Every other metric is computed from counts of how often an item is used, here 0 for the
cluster that is left out and 1 for the rest, for many clusters at once.
Shapes: n items of a part, k clusters of all scores, r clusters left out in a block, u distinct values, p parts.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sentloom.evaluation.metrics import Numbers
from sentloom.evaluation.task import Score

Clusters = npt.NDArray[np.int64]
# More clusters are merged at random into at most this many, or fewer if there are many items, which bounds the time.
MOST_CLUSTERS = 1000
ENOUGH_CLUSTERS = 200
COUNTS = 10**7  # aimed at for a score
BLOCK = 1 << 20


@dataclass(frozen=True)
class Influences:
    """What each cluster adds to a mean of scores; the squares of a sum over parts add up to its variance."""

    values: Numbers  # (p, k)
    shares: Numbers  # (p, k): of the items of a part


def influences(scores: Sequence[Score], weights: Sequence[float] | None = None, *, block: int = BLOCK) -> Influences:
    """Leave out each cluster, from all scores at once, and see how the weighted mean changes; not times 100.

    Groups are fixed: a cluster is left out within each group, and a group keeps its weight. `block` is the number of
    counts in memory at once.
    """
    clusters = merged(joint_clusters(scores))
    k = 1 + max(int(numbers.max()) for numbers in clusters)
    share = np.full(len(scores), 1 / len(scores)) if weights is None else np.array(weights) / np.sum(weights)
    of_parts = [
        (share[place] * weight * _of_part(score.metric, items, own, k, block), np.bincount(own, minlength=k) / len(own))
        for place, score in enumerate(scores)
        for weight, items, own in _parts(score, clusters[place])
    ]
    values, shares = zip(*of_parts, strict=True)
    return Influences(np.array(values), np.array(shares))


def joint_clusters(scores: Sequence[Score]) -> list[Clusters]:
    """Number the clusters of all scores from 0. An equal number in two scores is one cluster."""
    stated = [score.clusters for score in scores if score.clusters is not None]
    names = np.unique(np.concatenate(stated)) if stated else np.empty(0, np.int64)
    numbered, free = [], len(names)
    for score in scores:
        if score.clusters is None:
            numbered.append(np.arange(free, free + len(score.items)))
            free += len(score.items)
        else:
            numbered.append(np.searchsorted(names, score.clusters))
    return numbered


def merged(clusters: Sequence[Clusters]) -> list[Clusters]:
    """Merge clusters into at most MOST_CLUSTERS, at random, but always in the same way."""
    k = 1 + max(int(numbers.max()) for numbers in clusters)
    most = min(MOST_CLUSTERS, max(ENOUGH_CLUSTERS, COUNTS // max(map(len, clusters))))
    if k <= most:
        return list(clusters)
    bundle = np.random.default_rng(k).permutation(k) % most
    return [bundle[numbers] for numbers in clusters]


def _parts(score: Score, clusters: Clusters) -> Iterator[tuple[float, Numbers, Clusters]]:
    """Yield the weight, the items and the clusters of each group."""
    if score.groups is None:
        yield 1.0, score.items, clusters
        return
    names, sizes = np.unique(score.groups, return_counts=True)
    for name, size in zip(names, sizes, strict=True):
        chosen = score.groups == name
        yield float(size / len(chosen) if score.weighted else 1 / len(names)), score.items[chosen], clusters[chosen]


def _of_part(metric: str, items: Numbers, clusters: Clusters, k: int, block: int) -> Numbers:
    """Compute what each cluster adds to the metric (k,): 0 for clusters without items, and if there is only one."""
    names = np.unique(clusters)
    values = np.zeros(k)
    if len(names) > 1:
        left = _without_each(metric, items, clusters, names, block)
        values[names] = (left.mean() - left) * np.sqrt((len(names) - 1) / len(names))
    return values


def _without_each(metric: str, items: Numbers, clusters: Clusters, names: Clusters, block: int) -> Numbers:
    """Compute the metric without each of the named clusters."""
    if metric in MEANS:
        values = MEANS[metric](items)
        others = values.sum() - np.bincount(clusters, values)[names]
        return others / (len(clusters) - np.bincount(clusters)[names])
    return np.concatenate([STATISTICS[metric](items, counts) for counts in _all_but_one(clusters, names, block)])


def _all_but_one(clusters: Clusters, names: Clusters, block: int) -> Iterator[Numbers]:
    """Yield counts (n, r): 0 for the items of the cluster that is left out, 1 for the rest."""
    size = max(1, block // len(clusters))
    for start in range(0, len(names), size):
        yield (clusters[:, None] != names[start : start + size]).astype(np.float64)


Statistic = Callable[[Numbers, Numbers], Numbers]  # items (n, c), counts (n, r) -> (r,)


def _f1(items: Numbers, counts: Numbers) -> Numbers:
    hits = items == 1
    return _ratio(2 * (hits.all(axis=1) @ counts), hits.sum(axis=1) @ counts)


def _pearson(items: Numbers, counts: Numbers) -> Numbers:
    x, y = items.T - items.mean(axis=0)[:, None]  # centred first, so that the differences below lose no precision
    n = counts.sum(axis=0)
    means = x @ counts / n, y @ counts / n
    covariance = (x * y) @ counts / n - means[0] * means[1]
    variances = (x * x) @ counts / n - means[0] ** 2, (y * y) @ counts / n - means[1] ** 2
    varied = ~(_is_constant(x, counts) | _is_constant(y, counts))
    return _ratio(covariance * varied, np.sqrt(np.prod(variances, axis=0) * varied))


def _is_constant(values: Numbers, counts: Numbers) -> npt.NDArray[np.bool_]:
    """Whether all used values are equal, exactly: the minimum is the maximum."""
    order = np.argsort(values)
    used = counts[order] > 0
    rising = values[order]
    constant: npt.NDArray[np.bool_] = rising[used.argmax(axis=0)] == rising[len(values) - 1 - used[::-1].argmax(axis=0)]
    return constant


def _spearman(items: Numbers, counts: Numbers) -> Numbers:
    (x, variance_x), (y, variance_y) = (_centred_ranks(column, counts) for column in items.T)
    return _ratio(np.einsum("nr,nr,nr->r", counts, x, y), np.sqrt(variance_x * variance_y))


def _centred_ranks(values: Numbers, counts: Numbers) -> tuple[Numbers, Numbers]:
    """Return each item's mean rank for each column of counts, centred (n, r), and their sum of squares (r,)."""
    order = np.argsort(values, kind="stable")
    starts = np.flatnonzero(np.append(True, np.diff(values[order]) != 0))
    tied = np.add.reduceat(counts[order], starts, axis=0)  # (u, r)
    ranks = np.cumsum(tied, axis=0) - (tied - 1) / 2 - (counts.sum(axis=0) + 1) / 2
    place = np.empty(len(values), np.int64)
    place[order] = np.repeat(np.arange(len(starts)), np.diff(np.append(starts, len(values))))
    return ranks[place], np.einsum("ur,ur,ur->r", tied, ranks, ranks)


def _average_precision(items: Numbers, counts: Numbers) -> Numbers:
    order = np.argsort(-items[:, 0], kind="stable")
    scores, labels = items[order].T
    last_of_tie = np.append(np.flatnonzero(np.diff(scores)), len(scores) - 1)
    seen = np.cumsum(counts[order], axis=0)[last_of_tie]  # (u, r)
    hits = np.cumsum(counts[order] * labels[:, None], axis=0)[last_of_tie]
    gained = np.diff(hits, axis=0, prepend=0.0)
    return _ratio((gained * _ratio(hits, seen)).sum(axis=0), hits[-1])


def _ratio(above: Numbers, below: Numbers) -> Numbers:
    """Divide, with 0 for a zero denominator, as in the metrics."""
    ratio: Numbers = np.divide(above, below, out=np.zeros(np.shape(below)), where=below > 0)
    return ratio


MEANS: Mapping[str, Callable[[Numbers], Numbers]] = {  # items (n, c) -> what the metric is the mean of (n,)
    "mean": lambda items: items[:, 0],
    "accuracy": lambda items: (items[:, 0] == items[:, 1]).astype(np.float64),
}
STATISTICS: Mapping[str, Statistic] = {
    "f1": _f1,
    "pearson": _pearson,
    "matthews": _pearson,
    "spearman": _spearman,
    "average-precision": _average_precision,
}
