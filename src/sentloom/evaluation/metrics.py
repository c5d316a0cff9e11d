"""Scores as pure functions of numbers."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Numbers: TypeAlias = npt.NDArray[np.float64]
Ranks: TypeAlias = Sequence[npt.NDArray[np.int64]]  # a query each: the ranks of its relevant documents, from 1, rising


def cosine_of_pairs(left: npt.NDArray[Any], right: npt.NDArray[Any]) -> Numbers:
    """The cosine of each row of one matrix with the same row of the other, in float64; 0 where a vector is zero.

    Rounded to 12 digits: two pairs of equal sentences both have cosine 1, and tie, whatever the last bit says.
    """
    left, right = np.asarray(left, np.float64), np.asarray(right, np.float64)
    products = np.einsum("nd,nd->n", left, right)
    lengths = np.linalg.norm(left, axis=1) * np.linalg.norm(right, axis=1)
    cosines: Numbers = np.divide(products, lengths, out=np.zeros_like(products), where=lengths > 0)
    return cosines.round(12)


def spearman(x: npt.ArrayLike, y: npt.ArrayLike) -> float:
    """Rank correlation, ties by their mean rank; 0.0 where a side is constant, since it orders nothing."""
    from scipy import stats

    return 0.0 if is_constant(x) or is_constant(y) else float(stats.spearmanr(x, y).statistic)


def pearson(x: npt.ArrayLike, y: npt.ArrayLike) -> float:
    """Linear correlation; 0.0 where a side is constant."""
    from scipy import stats

    return 0.0 if is_constant(x) or is_constant(y) else float(stats.pearsonr(x, y).statistic)


def is_constant(values: npt.ArrayLike) -> bool:
    """Whether there are no two different values: no correlation is defined then."""
    array = np.asarray(values)
    return array.size < 2 or bool(array.min() == array.max())


def mrr_at(k: int, ranks: Ranks) -> float:
    """Mean over queries of 1 / rank of the first relevant document, counted as 0 beyond rank k."""
    return float(np.mean([1 / found[0] if found[0] <= k else 0.0 for found in ranks]))


def recall_at(k: int, ranks: Ranks) -> float:
    """Mean over queries of the share of relevant documents with rank k or better."""
    return float(np.mean([np.mean(found <= k) for found in ranks]))


def accuracy(predicted: npt.NDArray[Any], gold: npt.NDArray[Any]) -> float:
    """The share of right answers."""
    return float(np.mean(predicted == gold))


def f1(predicted: npt.NDArray[Any], gold: npt.NDArray[Any]) -> float:
    """Of the class 1: the harmonic mean of precision and recall; 0.0 where neither side has any."""
    both = int(((predicted == 1) & (gold == 1)).sum())
    either = int((predicted == 1).sum() + (gold == 1).sum())
    return 2 * both / either if either else 0.0


def matthews(predicted: npt.NDArray[Any], gold: npt.NDArray[Any]) -> float:
    """Matthews' correlation of two classes, 0 and 1: the linear correlation of predicted and gold."""
    return pearson(predicted, gold)


def average_precision(scores: npt.NDArray[Any], labels: npt.NDArray[Any]) -> float:
    """Area under precision over recall when pairs are ordered by score; equal scores share one threshold."""
    if not labels.any():
        return 0.0
    order = np.argsort(-scores, kind="stable")
    last_of_tie = np.append(np.flatnonzero(np.diff(scores[order])), len(scores) - 1)
    found = np.cumsum(labels[order])[last_of_tie]
    precision, recall = found / (last_of_tie + 1), found / labels.sum()
    return float(np.sum(np.diff(recall, prepend=0.0) * precision))


# What a Score is computed with. The columns of its items (n, c): prediction or score first, gold or label second;
# `mean` takes one column, a finished value an item (a query's reciprocal rank, whether an answer is right).
METRICS: Mapping[str, Callable[[Numbers], float]] = {
    "spearman": lambda items: spearman(items[:, 0], items[:, 1]),
    "pearson": lambda items: pearson(items[:, 0], items[:, 1]),
    "accuracy": lambda items: accuracy(items[:, 0], items[:, 1]),
    "f1": lambda items: f1(items[:, 0], items[:, 1]),
    "matthews": lambda items: matthews(items[:, 0], items[:, 1]),
    "average-precision": lambda items: average_precision(items[:, 0], items[:, 1]),
    "mean": lambda items: float(items[:, 0].mean()),
}
