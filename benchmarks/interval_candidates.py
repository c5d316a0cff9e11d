"""Which interval over clusters to use: candidates on the same simulated gains of nDCG.

    python -m benchmarks.interval_candidates [--simulations 1000]

The clusters are those of interval_coverage.py. All simulations of a design are computed at once; each method gets what
every cluster adds to the gain, or to the score of one model. Printed: for each kind, the range of coverage over all
designs, and the mean and the worst rate of intervals above the true value (for a gain of 0, false "better"). Minutes
of one core.
"""

import argparse
from functools import cache

import numpy as np
from scipy import stats

from benchmarks.interval_coverage import LOSE, WIN, Rows, ndcg, sizes_of

RESAMPLES = 2000
DESIGNS = [Rows(20), Rows(20, "8", 0.3), Rows(20, "50", 0.3), Rows(20, "50", 0.8), Rows(40), Rows(40, "8", 0.3)]
DESIGNS += [Rows(40, "1-50", 0.3), Rows(40, "1-50", 0.8), Rows(100, "1-50", 0.3), Rows(100, "1-50", 0.8)]
DESIGNS += [Rows(210, "half in 10", 0.3), Rows(210, "half in 10", 0.8)]
SCORE = "one score, mean 92"
KINDS = {SCORE: -1.6, "nDCG, mean 67": 0.2, "nDCG, mean 92": -1.6, "nDCG, 88% unchanged": 0.2, "lopsided": None}


def gains(rng, kind, rows, times):
    """The sum of the gains of each cluster (times, clusters), with a true mean of 0."""
    sizes = sizes_of(rows.clusters, rows.sizes)
    numbers = np.repeat(np.arange(rows.clusters), sizes)

    def noise():
        shared = rng.normal(size=(times, rows.clusters))[:, numbers]
        return np.sqrt(rows.likeness) * shared + np.sqrt(1 - rows.likeness) * rng.normal(size=(times, len(numbers)))

    change = noise()
    if kind == "lopsided":
        values = np.where(change < LOSE, -1.0, np.where(change > WIN, 0.37, 0.0))
    else:
        step = 1.5 * np.where(np.abs(change) > 1.555, change, 0.0) if "unchanged" in kind else 0.5 * change
        latent = KINDS[kind] + 1.6 * noise()
        values = ndcg(latent - step) - (mean_score() if kind == SCORE else ndcg(latent + step))
    return np.add.reduceat(values, np.cumsum(sizes) - sizes, axis=1), sizes


@cache
def mean_score():
    """The true score, to be subtracted from its sample."""
    normal = np.random.default_rng(0).normal(size=(2, 5_000_000))
    return ndcg(KINDS[SCORE] + 1.6 * normal[0] - 0.5 * normal[1]).mean()


def intervals(sums, sizes):
    """The 95% interval (low, high) of every simulation, by each candidate."""
    k, n = len(sizes), sizes.sum()
    value = sums.sum(axis=1) / n
    left = (sums.sum(axis=1, keepdims=True) - sums) / (n - sizes)
    added = (left.mean(axis=1, keepdims=True) - left) * np.sqrt((k - 1) / k)
    error = np.sqrt(np.square(added).sum(axis=1))
    skewness = ((added / np.maximum(error, 1e-12)[:, None]) ** 3).sum(axis=1)
    freedom = n**2 / np.square(sizes).sum() - 1
    t = stats.t.ppf(0.975, freedom)
    plain, hall = (value - error * t, value + error * t), [value - error * from_symmetric(w, skewness) for w in (t, -t)]
    drawn, ratios = resampled(sums, sizes, value)
    wide = stats.norm.cdf(t * np.sqrt((freedom + 1) / freedom))
    low, high = np.quantile(ratios, [0.025, 0.975], axis=0)
    return {
        "t": plain,
        "t with Hall's correction": hall,
        "the wider of both": (np.minimum(plain[0], hall[0]), np.maximum(plain[1], hall[1])),
        "percentile bootstrap": np.quantile(drawn, [0.025, 0.975], axis=0),
        "percentile, expanded": np.quantile(drawn, [1 - wide, wide], axis=0),
        "BCa": corrected_percentiles(drawn, value, skewness),
        "bootstrap-t": (value - high * error, value - low * error),
    }


def from_symmetric(t, skewness):
    safe = np.where(np.abs(skewness) < 1e-9, 1, skewness)
    return np.where(np.abs(skewness) < 1e-9, t, 3 / safe * (np.cbrt(1 + safe * (t - safe / 6)) - 1))


def resampled(sums, sizes, value):
    """The mean gain of each resample of clusters, and its ratio to the resample's own standard error."""
    k, rng = len(sizes), np.random.default_rng(0)
    drawn = rng.integers(0, k, (RESAMPLES, k)) + k * np.arange(RESAMPLES)[:, None]
    counts = np.bincount(drawn.ravel(), minlength=k * RESAMPLES).reshape(RESAMPLES, k).astype(float)
    rows = (counts @ sizes)[:, None]
    means = counts @ sums.T / rows
    squares = counts @ (sums**2).T - 2 * means * (counts @ (sums * sizes).T) + means**2 * (counts @ sizes**2.0)[:, None]
    errors = np.sqrt(np.maximum(squares, 0) * k / (k - 1)) / rows
    ratios = np.divide(means - value, errors, out=1e3 * np.sign(means - value), where=errors > 1e-12)
    return means, ratios


def corrected_percentiles(drawn, value, skewness):
    below = (np.mean(drawn < value, axis=0) + np.mean(drawn <= value, axis=0)) / 2
    bias = stats.norm.ppf(np.clip(below, 0.001, 0.999))
    ordered, found = np.sort(drawn, axis=0), []
    for share in (0.025, 0.975):
        z = bias + stats.norm.ppf(share)
        place = stats.norm.cdf(bias + z / (1 - skewness / 6 * z)) * (RESAMPLES - 1)
        found.append(ordered[place.round().astype(int), np.arange(len(value))])
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--simulations", type=int, default=1000)
    times = parser.parse_args().simulations
    print("| kind | method | coverage over the designs | too high, mean | worst |\n|---|---|---|---:|---:|")
    for kind in KINDS:
        found = {}
        for number, rows in enumerate(DESIGNS):
            sums, sizes = gains(np.random.default_rng(number), kind, rows, times)
            for method, (low, high) in intervals(sums, sizes).items():
                shares = np.mean((low <= 1e-12) & (high >= -1e-12)), np.mean(low > 1e-12)
                found.setdefault(method, []).append(shares)
        for method, shares in found.items():
            covered, better = 100 * np.array(shares).T
            figures = f"{better.mean():.1f} | {better.max():.1f}"
            print(f"| {kind} | {method} | {covered.min():.1f} to {covered.max():.1f} | {figures} |", flush=True)


if __name__ == "__main__":
    main()
