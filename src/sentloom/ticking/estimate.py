"""How far people agree who answered the same questions."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from math import sqrt
from statistics import fmean

import numpy as np
from scipy.special import stdtr, stdtrit

from sentloom.evaluation.significance import LEVEL
from sentloom.fitting.result import Agreement
from sentloom.ticking.answers import Answers

AGREEMENT_LEVEL = 0.95


def agreement(people: Sequence[Answers]) -> Agreement | None:
    """Over all queries that two or more people answered; None if there are none. Skipping is no answer.

    For more than two people, both figures are means over pairs of people; the interval counts queries.
    """
    from scipy.stats import binomtest

    pairs = [_both(one, other) for one, other in combinations(people, 2)]
    answered = [pair for pair in pairs if pair]
    if not answered:
        return None
    queries = len(set().union(*answered))
    share = fmean(fmean(one == other for one, other in pair.values()) for pair in answered)
    bounds = binomtest(round(share * queries), queries).proportion_ci(AGREEMENT_LEVEL, "wilson")
    kappas = [kappa for pair in answered if (kappa := _kappa(list(pair.values()))) is not None]
    return Agreement(queries, 100 * share, 100 * bounds.low, 100 * bounds.high, fmean(kappas) if kappas else None)


def _both(one: Answers, other: Answers) -> dict[str, tuple[str, str]]:
    """The answers of two people to the queries that both answered."""
    left, right = one.latest, other.latest
    found = {query: (left[query].answer, right[query].answer) for query in left if query in right}
    return {query: said for query, said in found.items() if "skip" not in said}


def _kappa(said: Sequence[tuple[str, str]]) -> float | None:
    """Cohen's kappa; None where chance alone explains complete agreement, because nobody ever said anything else."""
    from sklearn.metrics import cohen_kappa_score

    if len({answer for both in said for answer in both}) == 1:
        return None
    kappa = float(cohen_kappa_score(*zip(*said, strict=True)))
    return kappa if math.isfinite(kappa) else None


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
    return any(one.size for one in strata) and all(
        len(one.values) >= min(LEAST_ANSWERS, one.size) for one in strata if one.size
    )


def estimate(strata: Sequence[Stratum], total: int, level: float = LEVEL) -> Estimate:
    """The mean over `total` queries, of which those outside the strata count 0."""
    used = [one for one in strata if one.size]
    shares, means = [one.size / total for one in used], [float(np.mean(one.values)) for one in used]
    value = sum(share * mean for share, mean in zip(shares, means, strict=True))
    within = sum(share**2 * _variance(one) / len(one.values) for share, one in zip(shares, used, strict=True))
    between = sum(share * (mean - value) ** 2 for share, mean in zip(shares, means, strict=True))
    error = sqrt(within + (between + (1 - sum(shares)) * value**2) / total)
    effective = sum(shares) ** 2 / sum(share**2 / len(one.values) for share, one in zip(shares, used, strict=True))
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
