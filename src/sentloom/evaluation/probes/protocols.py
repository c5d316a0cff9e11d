"""Probes by SentEval's protocols: how well a small classifier does on frozen vectors.

The linear probe has SentEval's objective, folds and choice of weight decay. SentEval stops Adam early; the problem is
convex, and here it is solved to its optimum, so that a score does not depend on optimizer, seed or patience.
"""

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
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
Scale = tuple[int, int]  # the lowest and the highest score
Split = tuple[Rows, Rows | None]  # training rows and held-out rows, None for a final model


@dataclass(frozen=True)
class Probe:
    """Probe options: SentEval's preset for papers or its fast one. With `hidden` units, a perceptron."""

    preset: Literal["paper", "fast"] = "paper"
    hidden: int = 0
    seed: int = SEED  # of the folds, and of a perceptron's weights and batches

    def __post_init__(self) -> None:
        if self.preset not in FOLDS:
            problem = f"{self.preset!r} is unknown"
            raise InputError("probe preset", problem, " or ".join(FOLDS), "choose one of them")
        if self.hidden < 0:
            expected = "0 for a linear probe, or a number of units"
            raise InputError("probe hidden", f"{self.hidden} is negative", expected, "choose another number")

    @property
    def folds(self) -> int:
        """The number of folds of the training rows."""
        return FOLDS[self.preset]


def cross_validated(features: Vectors, labels: Labels, probe: Probe) -> Numbers:
    """Run nested k-fold (MR, CR, SUBJ, MPQA); return the predicted and gold class (n, 2) of every row, in order.

    Each fold is predicted by a model trained on the other rows, with the weight decay that is best in k-fold on those
    rows.
    """
    names = _names(labels, "labels")
    gold = _numbers(labels, names, "labels")
    _check(features, gold, "features")
    outer = _folds(gold, probe.folds, probe.seed)
    inner = [
        [(train[fit], train[held]) for fit, held in _folds(gold[train], probe.folds, probe.seed)] for train, _ in outer
    ]
    splits: list[Split] = [split for own in inner for split in own] + [(train, None) for train, _ in outer]
    answers = _classes(features, gold, splits, probe)
    predicted = np.empty_like(gold)
    for number, (_, test) in enumerate(outer):
        own = slice(number * probe.folds, (number + 1) * probe.folds)
        best = _best([_accuracies(of_penalty[own], gold, inner[number]) for of_penalty in answers])
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
    """Train a probe and return the predicted and gold class (m, 2) of the test rows.

    The weight decay is chosen by k-fold on the training rows (TREC, MRPC), or on dev rows if given (SST-2).
    """
    names = _names(labels, "training labels")
    parts = [(train, labels, "training"), *([(*dev, "dev")] if dev else []), (test, test_labels, "test")]
    numbers = [_numbers(own_labels, names, f"{part} labels") for _, own_labels, part in parts]
    for (vectors, _, part), gold in zip(parts, numbers, strict=True):
        _check(vectors, gold, f"{part} features")
    features, gold = np.concatenate([vectors for vectors, _, _ in parts]), np.concatenate(numbers)
    known, last = np.arange(len(train)), np.arange(len(gold) - len(test), len(gold))
    chosen_on = [(known, np.arange(len(train), last[0]))] if dev else _folds(numbers[0], probe.folds, probe.seed)
    splits: list[Split] = [*chosen_on] if dev else [*chosen_on, (known, None)]
    answers = _classes(features, gold, splits, probe)
    best = _best([_accuracies(of_penalty, gold, chosen_on) for of_penalty in answers])
    return _items(answers[best, -1, last], numbers[-1])


def regress(
    train: Vectors,
    gold: Sequence[float] | Numbers,
    test: Vectors,
    test_gold: Sequence[float] | Numbers,
    probe: Probe,
    scale: Scale,
) -> Numbers:
    """Return predicted and gold scores (m, 2) of test rows, as SentEval does for SICK-R and STS-B except for the loss.

    A score between two integers is distributed over them: a softmax over low ... high learns the distribution with
    cross-entropy, where SentEval has squared errors, and the expected value is the prediction. The weight decay is
    chosen by Pearson's correlation in k-fold on the training rows. There is no hidden layer, as in SentEval.
    """
    (low, high), scores, test_scores = scale, np.asarray(gold, np.float64), np.asarray(test_gold, np.float64)
    _check(train, scores, "training features")
    _check(test, test_scores, "test features")
    _check_scores(scores, low, high)
    chosen_on = _plain_folds(len(scores), probe.folds)
    targets = np.concatenate([_shares(scores, low, high), np.zeros((len(test_scores), high - low + 1), np.float32)])
    splits: list[Split] = [*chosen_on, (np.arange(len(scores)), None)]
    values = torch.arange(low, high + 1, dtype=torch.float64)
    logits = _logits(np.concatenate([train, test]), targets, splits)
    expected = np.stack([(own.softmax(dim=2).double() @ values).numpy() for own in logits])  # (penalties, n, splits)
    best = _best([[pearson(own[held, at], scores[held]) for at, (_, held) in enumerate(chosen_on)] for own in expected])
    return np.stack([expected[best, len(scores) :, -1], test_scores], axis=1)


def pair_features(
    u: Vectors, v: Vectors, kind: Literal["difference-product", "both-difference-product"] = "difference-product"
) -> Vectors:
    """Combine the vectors of two sentences into probe features: |u - v| and u * v, optionally after u and v."""
    both = {"difference-product": (), "both-difference-product": (u, v)}
    return np.concatenate([*both[kind], np.abs(u - v), u * v], axis=1, dtype=np.float32)


def _classes(features: Vectors, gold: Rows, splits: Sequence[Split], probe: Probe) -> Rows:
    """Predict the class of every row with each model (penalties, splits, n)."""
    if probe.hidden:
        matrix, classes = torch.from_numpy(np.asarray(features, np.float32)), torch.from_numpy(gold)
        return perceptron.predict(
            matrix, classes, splits, PENALTIES, replace(TRAINING[probe.preset], hidden=probe.hidden, seed=probe.seed)
        )
    targets = np.eye(gold.max() + 1, dtype=np.float32)[gold]
    return np.stack([logits.argmax(dim=2).T.numpy() for logits in _logits(features, targets, splits)])


def _logits(features: Vectors, targets: npt.NDArray[np.float32], splits: Sequence[Split]) -> Iterator[torch.Tensor]:
    """Yield the logits (n, splits, classes) of linear models for each weight decay."""
    matrix = torch.from_numpy(np.asarray(features, np.float32))
    training = torch.zeros(len(matrix), len(splits), dtype=torch.bool)
    for number, (rows, _) in enumerate(splits):
        training[rows, number] = True
    weights = logistic.fit(matrix, torch.from_numpy(targets), training, PENALTIES)
    return (logistic.logits(matrix, of_penalty) for of_penalty in weights)


def _best(scores: Sequence[Sequence[float]]) -> int:
    """Return the index of the weight decay with the best mean over folds; the first one if two decimals are equal.

    SentEval does the same, starting from the smallest weight decay: smaller differences are noise.
    """
    return int(np.argmax([round(100 * float(np.mean(of_folds)), 2) for of_folds in scores]))


def _accuracies(answers: Rows, gold: Rows, folds: Sequence[tuple[Rows, Rows]]) -> list[float]:
    """Compute the accuracy on the held-out rows of each fold; answers are (models, n)."""
    return [accuracy(answers[at, held], gold[held]) for at, (_, held) in enumerate(folds)]


def _folds(gold: Rows, folds: int, seed: int = SEED) -> list[tuple[Rows, Rows]]:
    """Split rows into folds as SentEval does, stratified by class; return training and held-out rows of each fold."""
    from sklearn.model_selection import StratifiedKFold

    largest = np.bincount(gold).max()
    if largest < folds:
        raise InputError(
            "folds", f"the largest class has only {largest} rows", f"at least {folds}, one per fold", "give more rows"
        )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # a class may have fewer rows than there are folds
        return list(StratifiedKFold(folds, shuffle=True, random_state=seed).split(np.zeros(len(gold)), gold))


def _plain_folds(rows: int, folds: int) -> list[tuple[Rows, Rows]]:
    """Split rows with scores into folds, without stratification."""
    from sklearn.model_selection import KFold

    if rows < 2 * folds:
        raise InputError(
            "folds", f"there are only {rows} rows", f"at least {2 * folds}, two per fold", "give more rows"
        )
    return list(KFold(folds, shuffle=True, random_state=SEED).split(np.zeros(rows)))


def _shares(scores: Numbers, low: int, high: int) -> npt.NDArray[np.float32]:
    """Distribute scores over integers (n, high - low + 1): 3.7 becomes 0.3 at 3 and 0.7 at 4."""
    return np.maximum(0, 1 - np.abs(scores[:, None] - np.arange(low, high + 1))).astype(np.float32)


def _names(labels: Labels, where: str) -> dict[str | int, int]:
    """Number the classes by their position in the sorted labels."""
    distinct = sorted(set(np.asarray(labels, object).tolist()), key=lambda label: (isinstance(label, str), label))
    if len(distinct) < 2:
        raise InputError(where, f"the only label is {distinct}", "at least two classes", "give rows of several classes")
    return {label: number for number, label in enumerate(distinct)}


def _numbers(labels: Labels, names: dict[str | int, int], where: str) -> Rows:
    unknown = {label for label in labels if label not in names}
    if unknown:
        raise InputError(
            where,
            f"the labels {sorted(map(str, unknown))[:5]} do not appear in the training rows",
            f"{[*names][:20]}",
            "correct the labels",
        )
    return np.array([names[label] for label in labels], np.int64)


def _check(features: Vectors, gold: npt.NDArray[Any], where: str) -> None:
    if features.ndim != 2 or len(features) != len(gold) or not len(gold):
        problem = f"the shape is {features.shape}"
        raise InputError(where, problem, f"({len(gold)}, f), one row per label", "give one row per label")
    if not np.isfinite(features).all():
        raise InputError(where, "there are NaN or infinite values", "finite numbers", "check the encoder")


def _check_scores(scores: Numbers, low: int, high: int) -> None:
    if not ((scores >= low) & (scores <= high)).all():
        problem = f"the scores range from {scores.min()} to {scores.max()}"
        raise InputError("gold scores", problem, f"{low} to {high}", "give the right range")


def _items(predicted: Rows, gold: Rows) -> Numbers:
    return np.stack([predicted, gold], axis=1).astype(np.float64)
