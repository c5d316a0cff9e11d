"""Heads: what gives every label a score, from a vector of unit length.

Shapes: n texts, d dimensions, l labels. `marks` (n, l) says which labels a text has. If texts have one label each, the
softmax of their scores are probabilities, otherwise the sigmoid of each score is.
"""

import warnings
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
import numpy.typing as npt

from sentloom.search.nearest import top_k
from sentloom.search.vectors import Vectors

Marks = npt.NDArray[np.bool_]
Scores = npt.NDArray[np.float64]

NEARNESS = 0.05  # difference of cosines that makes the vote of a neighbour e times as large
PRIOR = 0.5  # votes that all labels share, so that none is impossible
UNSEEN = -30.0  # the score of a label that no row has


class Kind(StrEnum):
    """A family of heads."""

    LOGISTIC = "logistic regression"
    NEIGHBOURS = "nearest neighbours"
    PROTOTYPES = "prototypes"


@dataclass(frozen=True)
class Settings:
    """What is learned: a regression of this inverse regularisation, or the votes of this many neighbours."""

    kind: Kind
    strength: float = 1.0

    def __str__(self) -> str:
        match self.kind:
            case Kind.LOGISTIC:
                return f"{self.kind} with C = {self.strength:g}"
            case Kind.NEIGHBOURS:
                return f"{self.kind}, {self.strength:g} of them"
            case _:
                return f"{self.kind}, the mean vector of each label"


@dataclass(frozen=True)
class Rows:
    """Vectors of unit length (n, d) and which labels each has (n, l)."""

    vectors: Vectors
    marks: Marks

    def __len__(self) -> int:
        return len(self.vectors)

    def where(self, keep: npt.NDArray[np.bool_] | npt.NDArray[np.int64]) -> "Rows":
        """Some of the rows."""
        return Rows(self.vectors[keep], self.marks[keep])


@dataclass(frozen=True)
class Linear:
    """A score is a linear function of the vector."""

    weight: npt.NDArray[np.float32]  # (d, l)
    bias: npt.NDArray[np.float32]  # (l,)

    def scores(self, vectors: Vectors) -> Scores:
        """Scores (n, l)."""
        return (vectors @ self.weight + self.bias).astype(np.float64)


@dataclass(frozen=True)
class Neighbours:
    """A score is the log of the votes that the nearest rows give to a label; nearer ones count for more."""

    rows: Rows
    count: int
    several: bool

    def scores(self, vectors: Vectors) -> Scores:
        """Scores (n, l)."""
        numbers, cosines = top_k(vectors, self.rows.vectors, self.count)
        weights = np.exp((cosines - cosines[:, :1]) / NEARNESS)
        votes = np.zeros((len(vectors), self.rows.marks.shape[1]))
        for own, places in zip(weights.T, numbers.T, strict=True):  # one neighbour of every text at a time
            votes += own[:, None] * self.rows.marks[places]
        total = weights.sum(axis=1, keepdims=True)
        if self.several:
            return np.log(votes + PRIOR) - np.log(total - votes + PRIOR)
        return np.log((votes + PRIOR / votes.shape[1]) / (total + PRIOR))


Head = Linear | Neighbours


def learn(settings: Settings, rows: Rows, several: bool) -> Head:
    """Learn a head; `several` says whether a text may have any number of labels."""
    match settings.kind:
        case Kind.NEIGHBOURS:
            return Neighbours(rows, int(settings.strength), several)
        case Kind.PROTOTYPES:
            return _prototypes(rows)
        case _:
            return _one_by_one(settings, rows) if several else _regression(settings, rows)


def _prototypes(rows: Rows) -> Linear:
    sums = rows.vectors.T @ rows.marks.astype(np.float32)  # (d, l)
    lengths = np.linalg.norm(sums, axis=0)
    bias = np.where(lengths > 0, 0.0, UNSEEN)
    return Linear(sums / np.maximum(lengths, 1e-12), bias.astype(np.float32))


def _regression(settings: Settings, rows: Rows) -> Linear:
    """One softmax over all labels that a row has; scikit-learn has one score for two labels."""
    numbers = rows.marks.argmax(axis=1)
    seen = np.unique(numbers)
    weight = np.zeros((rows.vectors.shape[1], rows.marks.shape[1]), np.float32)
    bias = np.full(rows.marks.shape[1], UNSEEN, np.float32)
    if len(seen) == 1:
        bias[seen] = 0.0
        return Linear(weight, bias)
    coefficients, intercepts = _fitted(settings, rows.vectors, numbers)
    if len(seen) == 2:
        coefficients, intercepts = np.vstack([-coefficients, coefficients]) / 2, np.r_[-intercepts, intercepts] / 2
    weight[:, seen], bias[seen] = coefficients.T, intercepts
    return Linear(weight, bias)


def _one_by_one(settings: Settings, rows: Rows) -> Linear:
    """A regression for each label, since a text may have any number of them."""
    weight = np.zeros((rows.vectors.shape[1], rows.marks.shape[1]), np.float32)
    bias = np.where(rows.marks.all(axis=0), -UNSEEN, UNSEEN).astype(np.float32)
    for label in np.flatnonzero(rows.marks.any(axis=0) & ~rows.marks.all(axis=0)):
        coefficients, intercepts = _fitted(settings, rows.vectors, rows.marks[:, label])
        weight[:, label], bias[label] = coefficients[0], intercepts[0]
    return Linear(weight, bias)


def _fitted(
    settings: Settings, vectors: Vectors, targets: npt.NDArray[np.generic]
) -> tuple[npt.NDArray[np.floating], npt.NDArray[np.floating]]:
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # after so many steps, predictions hardly change
        model = LogisticRegression(C=settings.strength, tol=1e-3, max_iter=300).fit(vectors, targets)
    return model.coef_, model.intercept_
