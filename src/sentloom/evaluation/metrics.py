"""Metrics as pure functions of arrays."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Numbers: TypeAlias = npt.NDArray[np.float64]
Ranks: TypeAlias = Sequence[npt.NDArray[np.int64]]  # per query: ranks of its relevant documents, from 1, ascending


def cosine_of_pairs(left: npt.NDArray[Any], right: npt.NDArray[Any]) -> Numbers:
    """Compute the cosine of corresponding rows of two matrices in float64; 0 if a vector is zero.

    Rounded to 12 digits, so that two pairs of equal sentences tie at cosine 1, whatever the last bit.
    """
    left, right = np.asarray(left, np.float64), np.asarray(right, np.float64)
    products = np.einsum("nd,nd->n", left, right)
    lengths = np.linalg.norm(left, axis=1) * np.linalg.norm(right, axis=1)
    cosines: Numbers = np.divide(products, lengths, out=np.zeros_like(products), where=lengths > 0)
    return cosines.round(12)


def spearman(x: npt.ArrayLike, y: npt.ArrayLike) -> float:
    """Compute the rank correlation, with mean ranks for ties; 0.0 if one side is constant."""
    from scipy import stats

    return 0.0 if is_constant(x) or is_constant(y) else float(stats.spearmanr(x, y).statistic)


def pearson(x: npt.ArrayLike, y: npt.ArrayLike) -> float:
    """Compute the linear correlation; 0.0 if one side is constant."""
    from scipy import stats

    return 0.0 if is_constant(x) or is_constant(y) else float(stats.pearsonr(x, y).statistic)


def is_constant(values: npt.ArrayLike) -> bool:
    """Whether all values are equal, so that no correlation is defined."""
    array = np.asarray(values)
    return array.size < 2 or bool(array.min() == array.max())


def mrr_at(k: int, ranks: Ranks) -> float:
    """Average over queries 1 / rank of the first relevant document, or 0 beyond rank k."""
    return float(np.mean([1 / right[0] if right[0] <= k else 0.0 for right in ranks]))


def recall_at(k: int, ranks: Ranks) -> float:
    """Average over queries the share of relevant documents with rank k or better."""
    return float(np.mean([np.mean(right <= k) for right in ranks]))


def mean_average_precision(ranks: Ranks) -> float:
    """Average over queries the mean precision at the ranks of their relevant documents."""
    return float(np.mean([np.mean(np.arange(1, len(right) + 1) / right) for right in ranks]))


def ndcg_at(k: int, ranks: Ranks, grades: Sequence[Numbers]) -> float:
    """Average over queries the discounted gain of the first k documents, as a share of the best possible one.

    `grades` has the grade of the relevant document at each rank. A grade is its own gain, as in trec_eval.
    """
    return float(np.mean([_gain(k, *own) / _gain(k, *_ideal(own[1])) for own in zip(ranks, grades, strict=True)]))


def _gain(k: int, ranks: npt.NDArray[np.int64], grades: Numbers) -> float:
    return float(np.sum(grades / np.log2(1 + ranks), where=ranks <= k))


def _ideal(grades: Numbers) -> tuple[npt.NDArray[np.int64], Numbers]:
    """The ranks and grades if the highest grades came first."""
    return np.arange(1, len(grades) + 1), -np.sort(-grades)


def accuracy(predicted: npt.NDArray[Any], gold: npt.NDArray[Any]) -> float:
    """Compute the share of correct predictions."""
    return float(np.mean(predicted == gold))


def f1(predicted: npt.NDArray[Any], gold: npt.NDArray[Any]) -> float:
    """Compute the F1 score of class 1; 0.0 if it is neither predicted nor gold."""
    both = int(((predicted == 1) & (gold == 1)).sum())
    either = int((predicted == 1).sum() + (gold == 1).sum())
    return 2 * both / either if either else 0.0


def matthews(predicted: npt.NDArray[Any], gold: npt.NDArray[Any]) -> float:
    """Compute Matthews' correlation of classes 0 and 1, which equals their linear correlation."""
    return pearson(predicted, gold)


def average_precision(scores: npt.NDArray[Any], labels: npt.NDArray[Any]) -> float:
    """Compute the area under the precision-recall curve; equal scores share one threshold."""
    if not labels.any():
        return 0.0
    order = np.argsort(-scores, kind="stable")
    last_of_tie = np.append(np.flatnonzero(np.diff(scores[order])), len(scores) - 1)
    hits = np.cumsum(labels[order])[last_of_tie]
    precision, recall = hits / (last_of_tie + 1), hits / labels.sum()
    return float(np.sum(np.diff(recall, prepend=0.0) * precision))


# The metrics of a Score. Columns of its items (n, c): prediction or score first, gold or label second; `mean` takes
# one column with a value per item (a query's reciprocal rank, whether an answer is correct).
METRICS: Mapping[str, Callable[[Numbers], float]] = {
    "spearman": lambda items: spearman(items[:, 0], items[:, 1]),
    "pearson": lambda items: pearson(items[:, 0], items[:, 1]),
    "accuracy": lambda items: accuracy(items[:, 0], items[:, 1]),
    "f1": lambda items: f1(items[:, 0], items[:, 1]),
    "matthews": lambda items: matthews(items[:, 0], items[:, 1]),
    "average-precision": lambda items: average_precision(items[:, 0], items[:, 1]),
    "mean": lambda items: float(items[:, 0].mean()),
}
CORRELATIONS = ("spearman", "pearson", "matthews")  # from -1 to 1; the others are from 0 to 1
