"""Random items of every metric, and a slow float64 oracle of the jackknife: loops over parts and clusters."""

import numpy as np
from scipy import stats

from sentloom.evaluation.metrics import METRICS


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


def named_clusters(place, score):
    """A name for the cluster of each item, the same in all scores that number their clusters."""
    if score.clusters is None:
        return [f"{place} {item}" for item in range(len(score.items))]
    return [int(number) for number in score.clusters]


def plain_influences(scores, weights=None):
    """What each cluster adds to the mean of scores, in the order numbered clusters, then the others."""
    weights = np.ones(len(scores)) if weights is None else np.array(weights)
    names = [named_clusters(place, score) for place, score in enumerate(scores)]
    numbered = sorted({name for some in names for name in some if isinstance(name, int)})
    added = dict.fromkeys([*numbered, *(one for some in names for one in some if isinstance(one, str))], 0.0)
    for score, own, weight in zip(scores, names, weights / weights.sum(), strict=True):
        groups = np.zeros(len(own), int) if score.groups is None else score.groups
        for group in np.unique(groups):
            rows = [row for row in range(len(own)) if groups[row] == group]
            share = len(rows) / len(own) if score.weighted else 1 / len(np.unique(groups))
            clusters = {own[row] for row in rows}
            if len(clusters) < 2:
                continue
            left = {
                name: METRICS[score.metric](score.items[[row for row in rows if own[row] != name]]) for name in clusters
            }
            k, middle = len(left), np.mean(list(left.values()))
            for name, value in left.items():
                added[name] += weight * share * np.sqrt((k - 1) / k) * (middle - value)
    return np.array(list(added.values()))


def plain_bounds(value, added, freedom, level=0.95):
    """The interval from what clusters add, times 100, solving Hall's cubic by bisection."""
    error = 100 * np.sqrt((added**2).sum())
    skewness = min(max(1e6 * (added**3).sum() / error**3, -0.3), 0.3)
    t = stats.t.ppf((1 + level) / 2, freedom)

    def solved(wanted):
        low, high = -1e4, 1e4
        for _ in range(200):
            x = (low + high) / 2
            y = x + skewness * x**2 / 3 + skewness**2 * x**3 / 27 + skewness / 6
            low, high = (x, high) if y < wanted else (low, x)
        return low

    return value - error * max(t, solved(t)), value - error * min(-t, solved(-t))
