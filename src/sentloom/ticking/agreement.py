"""How far people agree who answered the same questions."""

import math
from collections.abc import Sequence
from itertools import combinations
from statistics import fmean

from sentloom.fitting.result import Agreement
from sentloom.ticking.answers import Answers

LEVEL = 0.95


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
    bounds = binomtest(round(share * queries), queries).proportion_ci(LEVEL, "wilson")
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
