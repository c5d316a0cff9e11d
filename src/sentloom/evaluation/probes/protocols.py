"""Probes: how well a small classifier does on vectors that stay as they are, by SentEval's protocols.

The linear probe has SentEval's objective, folds and choice of weight decay. SentEval stops Adam early; the problem is
convex, and here it is solved to its optimum, so that a score does not hang on an optimizer, a seed or patience.
"""

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import torch

from sentloom.errors import InputError
from sentloom.evaluation.metrics import Numbers, accuracy, pearson
from sentloom.evaluation.probes import logistic, perceptron
from sentloom.search.vectors import Vectors

PENALTIES = (1e-5, 1e-4, 1e-3, 1e-2)
FOLDS = {"paper": 10, "fast": 5}
TRAINING = {
    "paper": perceptron.Training("adam", batch=64, epochs=4, tenacity=5),
    "fast": perceptron.Training("rmsprop", batch=128, epochs=2, tenacity=3),
}
SEED = 1111

Labels = Sequence[str | int] | npt.NDArray[Any]
Rows = npt.NDArray[np.int64]
Split = tuple[Rows, Rows | None]  # rows to train on; rows held out, None for a final model


@dataclass(frozen=True)
class Probe:
    """SentEval's two sets of options: the one of papers and the quick one. With `hidden` units, a perceptron."""

    preset: Literal["paper", "fast"] = "paper"
    hidden: int = 0

    def __post_init__(self) -> None:
        if self.preset not in FOLDS:
            raise InputError("probe preset", repr(self.preset), " or ".join(FOLDS), "choose one of them")
        if self.hidden < 0:
            raise InputError("probe hidden", f"{self.hidden}", "0 for a linear probe, or a number of units", "give one")

    @property
    def folds(self) -> int:
        """Parts that training rows are divided into, each held out once."""
        return FOLDS[self.preset]


def cross_validated(features: Vectors, labels: Labels, probe: Probe) -> Numbers:
    """Nested k-fold (MR, CR, SUBJ, MPQA): the predicted and the gold class (n, 2) of every row, in row order.

    Each of k folds is predicted by a model trained on the other rows, with the weight decay that does best in k-fold
    on those rows.
    """
    names = _names(labels, "labels")
    gold = _numbers(labels, names, "labels")
    _check(features, gold, "features")
    outer = _folds(gold, probe.folds)
    inner = [[(train[fit], train[held]) for fit, held in _folds(gold[train], probe.folds)] for train, _ in outer]
    splits: list[Split] = [split for own in inner for split in own] + [(train, None) for train, _ in outer]
    answers = _classes(features, gold, splits, probe)
    predicted = np.empty_like(gold)
    for number, (_, test) in enumerate(outer):
        own = slice(number * probe.folds, (number + 1) * probe.folds)
        best = _best([_accuracies(each[own], gold, inner[number]) for each in answers])
        predicted[test] = answers[best, len(outer) * probe.folds + number, test]
    return _items(predicted, gold)


def train_and_test(
    train: Vectors,
    labels: Labels,
    test: Vectors,
    test_labels: Labels,
    probe: Probe,
    dev: tuple[Vectors, Labels] | None = None,
) -> Numbers:
    """The predicted and the gold class (m, 2) of test rows.

    The weight decay is chosen by k-fold on the training rows (TREC, MRPC), or on dev rows where they are given (SST-2).
    """
    names = _names(labels, "training labels")
    parts = [(train, labels, "training"), *([(*dev, "dev")] if dev else []), (test, test_labels, "test")]
    numbers = [_numbers(given, names, f"{part} labels") for _, given, part in parts]
    for (vectors, _, part), gold in zip(parts, numbers, strict=True):
        _check(vectors, gold, f"{part} features")
    features, gold = np.concatenate([vectors for vectors, _, _ in parts]), np.concatenate(numbers)
    known, last = np.arange(len(train)), np.arange(len(gold) - len(test), len(gold))
    chosen_on = [(known, np.arange(len(train), last[0]))] if dev else _folds(numbers[0], probe.folds)
    splits: list[Split] = [*chosen_on] if dev else [*chosen_on, (known, None)]
    answers = _classes(features, gold, splits, probe)
    best = _best([_accuracies(each, gold, chosen_on) for each in answers])
    return _items(answers[best, -1, last], numbers[-1])


def regress(
    train: Vectors,
    gold: Sequence[float] | Numbers,
    test: Vectors,
    test_gold: Sequence[float] | Numbers,
    probe: Probe,
    low: int,
    high: int,
) -> Numbers:
    """Predicted and gold scores (m, 2) of test rows, in SentEval's way for SICK-R and STS-B but for the loss.

    A score between two whole numbers is shared among them: softmax over low ... high learns the shares, by
    cross-entropy where SentEval has squared errors, and the expected value is the prediction. Weight decay by k-fold
    on the training rows, by Pearson's correlation. There is no hidden layer, as there is none in SentEval.
    """
    scores, wanted = np.asarray(gold, np.float64), np.asarray(test_gold, np.float64)
    _check(train, scores, "training features")
    _check(test, wanted, "test features")
    _check_scores(scores, low, high)
    chosen_on = _plain_folds(len(scores), probe.folds)
    targets = np.concatenate([_shares(scores, low, high), np.zeros((len(wanted), high - low + 1), np.float32)])
    splits: list[Split] = [*chosen_on, (np.arange(len(scores)), None)]
    values = torch.arange(low, high + 1, dtype=torch.float64)
    logits = _logits(np.concatenate([train, test]), targets, splits)
    expected = np.stack([(each.softmax(dim=2).double() @ values).numpy() for each in logits])  # (penalties, n, splits)
    best = _best(
        [[pearson(each[held, at], scores[held]) for at, (_, held) in enumerate(chosen_on)] for each in expected]
    )
    return np.stack([expected[best, len(scores) :, -1], wanted], axis=1)


def pair_features(
    u: Vectors, v: Vectors, kind: Literal["difference-product", "both-difference-product"] = "difference-product"
) -> Vectors:
    """What a probe sees of two sentences: |u - v| and u * v, with u and v themselves before them if both are asked."""
    if u.shape != v.shape:
        raise InputError("pairs", f"vectors of shapes {u.shape} and {v.shape}", "one shape", "give a vector a sentence")
    both = {"difference-product": (), "both-difference-product": (u, v)}
    if kind not in both:
        raise InputError("pair features", repr(kind), " or ".join(both), "choose one of them")
    return np.concatenate([*both[kind], np.abs(u - v), u * v], axis=1, dtype=np.float32)


def _classes(features: Vectors, gold: Rows, splits: Sequence[Split], probe: Probe) -> Rows:
    """The class (penalties, splits, n) that each model says of every row."""
    if probe.hidden:
        matrix, classes = torch.from_numpy(np.asarray(features, np.float32)), torch.from_numpy(gold)
        return perceptron.predict(matrix, classes, splits, PENALTIES, probe.hidden, TRAINING[probe.preset])
    targets = np.eye(gold.max() + 1, dtype=np.float32)[gold]
    return np.stack([logits.argmax(dim=2).T.numpy() for logits in _logits(features, targets, splits)])


def _logits(features: Vectors, targets: npt.NDArray[np.float32], splits: Sequence[Split]) -> Iterator[torch.Tensor]:
    """(n, splits, classes) of linear models, for each weight decay."""
    matrix = torch.from_numpy(np.asarray(features, np.float32))
    training = torch.zeros(len(matrix), len(splits), dtype=torch.bool)
    for number, (rows, _) in enumerate(splits):
        training[rows, number] = True
    weights = logistic.fit(matrix, torch.from_numpy(targets), training, PENALTIES)
    return (logistic.logits(matrix, each) for each in weights)


def _best(scores: Sequence[Sequence[float]]) -> int:
    """The place of the weight decay with the best mean over folds; the first of those that share two decimals.

    So does SentEval, from the smallest weight decay up: differences that small are chance.
    """
    return int(np.argmax([round(100 * float(np.mean(of_folds)), 2) for of_folds in scores]))


def _accuracies(answers: Rows, gold: Rows, folds: Sequence[tuple[Rows, Rows]]) -> list[float]:
    """On the held-out rows of each fold; answers (models, n)."""
    return [accuracy(answers[at, held], gold[held]) for at, (_, held) in enumerate(folds)]


def _folds(gold: Rows, folds: int) -> list[tuple[Rows, Rows]]:
    """Training and held-out rows of each fold, as SentEval draws them: every class in every fold if it can be."""
    from sklearn.model_selection import StratifiedKFold

    largest = np.bincount(gold).max()
    if largest < folds:
        raise InputError(
            "rows to divide", f"{largest} of the largest class", f"at least {folds}, one a fold", "give more rows"
        )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # a class may be rarer than folds: some folds go without it
        return list(StratifiedKFold(folds, shuffle=True, random_state=SEED).split(np.zeros(len(gold)), gold))


def _plain_folds(rows: int, folds: int) -> list[tuple[Rows, Rows]]:
    """The same for scores, which have no classes."""
    from sklearn.model_selection import KFold

    if rows < 2 * folds:
        raise InputError("rows to divide", f"{rows}", f"at least {2 * folds}, two a fold", "give more rows")
    return list(KFold(folds, shuffle=True, random_state=SEED).split(np.zeros(rows)))


def _shares(scores: Numbers, low: int, high: int) -> npt.NDArray[np.float32]:
    """(n, high - low + 1): 3.7 is 0.3 of a 3 and 0.7 of a 4."""
    return np.maximum(0, 1 - np.abs(scores[:, None] - np.arange(low, high + 1))).astype(np.float32)


def _names(labels: Labels, where: str) -> dict[str | int, int]:
    """The number of each class: its place in the sorted labels."""
    distinct = sorted(set(np.asarray(labels, object).tolist()), key=lambda label: (isinstance(label, str), label))
    if len(distinct) < 2:
        raise InputError(where, f"only {distinct}", "two classes at least", "give rows of several classes")
    return {label: number for number, label in enumerate(distinct)}


def _numbers(labels: Labels, names: dict[str | int, int], where: str) -> Rows:
    unknown = {label for label in labels if label not in names}
    if unknown:
        raise InputError(
            where, f"{sorted(map(str, unknown))[:5]}", f"labels of training rows: {[*names][:20]}", "mend the labels"
        )
    return np.array([names[label] for label in labels], np.int64)


def _check(features: Vectors, gold: npt.NDArray[Any], where: str) -> None:
    if features.ndim != 2 or len(features) != len(gold) or not len(gold):
        raise InputError(where, f"shape {features.shape}", f"({len(gold)}, f), a row a label", "give one row a label")
    if not np.isfinite(features).all():
        raise InputError(where, "NaN or infinity", "finite numbers", "check the encoder")


def _check_scores(scores: Numbers, low: int, high: int) -> None:
    if not ((scores >= low) & (scores <= high)).all():
        raise InputError("gold scores", f"{scores.min()} to {scores.max()}", f"{low} to {high}", "give the right range")


def _items(predicted: Rows, gold: Rows) -> Numbers:
    return np.stack([predicted, gold], axis=1).astype(np.float64)
