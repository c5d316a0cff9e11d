"""What answers to some of the questions say about all queries: a stratified estimate with an interval.

Every query counts 1 if the first result of the fitted model is preferred, -1 if that of the base is, and 0 if both or
neither are right; without a single answer it is known to be 0 where the two are the same. N queries were drawn from all
that users ask; W_h of them are in stratum h, of which n_h were answered, with mean m_h and variance s_h^2. The gain is
the sum of W_h m_h, and its variance that of sampling in two phases (Cochran 1977, section 12.2), in which the share of
a stratum that was answered cancels out:

    sum of W_h^2 s_h^2 / n_h  +  sum of W_h (m_h - gain)^2 / N

The second sum includes the queries with equal first results. docs/ticks.md has the coverage, by simulation.

How far people agree who answered the same questions is at the end.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from math import isfinite, sqrt
from statistics import fmean

import numpy as np
from scipy.special import stdtr, stdtrit

from sentloom.evaluation.significance import LEVEL
from sentloom.fitting.result import Agreement
from sentloom.ticking.answers import Answers

AGREEMENT_LEVEL = 0.95
LEAST_ANSWERS = 2  # in every stratum, for a variance
UNSEEN = 0.5  # answers of either kind that are added where all answers of a stratum are the same


@dataclass(frozen=True)
class Stratum:
    """How many queries a stratum has, and the values of those that were answered."""

    size: int
    values: tuple[float, ...]  # between -1 and 1


@dataclass(frozen=True)
class Estimate:
    """A mean over all queries, times 100. `effective` is Kish's number of answers of equal weight."""

    value: float
    low: float
    high: float
    p: float
    effective: float


def is_possible(strata: Sequence[Stratum]) -> bool:
    """Whether there are enough answers in every stratum."""
    return any(stratum.size for stratum in strata) and all(
        len(stratum.values) >= min(LEAST_ANSWERS, stratum.size) for stratum in strata if stratum.size
    )


def estimate(strata: Sequence[Stratum], total: int, level: float = LEVEL) -> Estimate:
    """The mean over `total` queries, of which those outside the strata count 0."""
    used = [stratum for stratum in strata if stratum.size]
    shares, means = [stratum.size / total for stratum in used], [float(np.mean(stratum.values)) for stratum in used]
    counts = [len(stratum.values) for stratum in used]
    value = sum(share * mean for share, mean in zip(shares, means, strict=True))
    within = sum(share**2 * _variance(stratum) / n for share, stratum, n in zip(shares, used, counts, strict=True))
    between = sum(share * (mean - value) ** 2 for share, mean in zip(shares, means, strict=True))
    error = sqrt(within + (between + (1 - sum(shares)) * value**2) / total)
    effective = sum(shares) ** 2 / sum(share**2 / n for share, n in zip(shares, counts, strict=True))
    half = float(stdtrit(max(effective - 1, 1e-9), (1 + level) / 2)) * error
    p = min(1.0, float(2 * stdtr(max(effective - 1, 1e-9), -abs(value) / error)))
    low, high = max(value - half, -sum(shares)), min(value + half, sum(shares))
    return Estimate(100 * value, 100 * low, 100 * high, p, round(effective, 6))


def _variance(stratum: Stratum) -> float:
    """Of the values of a stratum. Where all of them are equal, as if half an answer of each extreme had been seen."""
    values = stratum.values
    if len(set(values)) > 1:
        return float(np.var(values, ddof=1))
    count, mean = len(values) + 2 * UNSEEN, len(values) * values[0] / (len(values) + 2 * UNSEEN)
    squares = len(values) * (values[0] - mean) ** 2 + UNSEEN * ((1 - mean) ** 2 + (-1 - mean) ** 2)
    return squares / (count - 1)


def agreement(people: Sequence[Answers]) -> Agreement | None:
    """Over all queries that two or more people answered; None if there are none. Skipping is no answer.

    For more than two people, both figures are means over pairs of people; the interval counts queries.
    """
    from scipy.stats import binomtest

    pairs = [_both(first, second) for first, second in combinations(people, 2)]
    answered = [pair for pair in pairs if pair]
    if not answered:
        return None
    queries = len(set().union(*answered))
    share = fmean(fmean(left == right for left, right in pair.values()) for pair in answered)
    bounds = binomtest(round(share * queries), queries).proportion_ci(AGREEMENT_LEVEL, "wilson")
    kappas = [kappa for pair in answered if (kappa := _kappa(list(pair.values()))) is not None]
    return Agreement(queries, 100 * share, 100 * bounds.low, 100 * bounds.high, fmean(kappas) if kappas else None)


def _both(first: Answers, second: Answers) -> dict[str, tuple[str, str]]:
    """The answers of two people to the queries that both answered."""
    left, right = first.latest, second.latest
    shared = {query: (left[query].answer, right[query].answer) for query in left if query in right}
    return {query: said for query, said in shared.items() if "skip" not in said}


def _kappa(said: Sequence[tuple[str, str]]) -> float | None:
    """Cohen's kappa; None where chance alone explains complete agreement, because nobody ever said anything else."""
    from sklearn.metrics import cohen_kappa_score

    if len({answer for both in said for answer in both}) == 1:
        return None
    kappa = float(cohen_kappa_score(*zip(*said, strict=True)))
    return kappa if isfinite(kappa) else None
