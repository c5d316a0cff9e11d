"""Proving: what a classifier does on rows that it has not learned from.

Intervals are over clusters of rows that belong together: those of mean agreement as for every other score
(`evaluation.significance`), that of macro F1, which is no mean over texts, by drawing clusters again and again.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from sentloom.classify.heads import Marks, Settings
from sentloom.classify.learning import (
    Abstention,
    Calibration,
    Choice,
    Numbers,
    Outcome,
    Trial,
    agreement,
    confidence,
    decide,
    outcome_of,
    without_labels,
)
from sentloom.evaluation.significance import LEVEL, average_interval
from sentloom.evaluation.task import Score

DRAWS = 1_000
BINS = 10  # of probabilities
GROUPS = 4  # of labels that are held out in turn
FEWEST_LABELS = 4  # to hold some of them out
SEED = 0

Places = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Estimate:
    """A score in percent with its 95% interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class LabelScore:
    """One label on the rows that prove: of the texts that get it so many are right, and so many that have it get it."""

    label: str
    rows: int
    precision: float  # percent
    recall: float


@dataclass(frozen=True)
class ProbabilityBin:
    """Answers with probabilities between `low` and `high`: their mean probability, and how many are right."""

    low: float
    high: float
    probability: float  # percent, as the next
    right: float
    texts: int


@dataclass(frozen=True)
class Reliability:
    """Whether probabilities mean what they say; the error is the mean distance of probability and share, in points."""

    bins: tuple[ProbabilityBin, ...]
    error: float
    error_before: float  # of the probabilities that the head gave before they were calibrated


@dataclass(frozen=True)
class Answered:
    """What abstaining does, in percent."""

    asked: float  # of answers to be right; 0: nothing was asked for
    answered: float  # of texts with known labels
    right: float  # of the answers


@dataclass(frozen=True)
class Unknown:
    """Texts whose label was held out from the classifier, in percent. The encoder has seen them."""

    texts: int
    left: float  # of these texts are left to people
    known_answered: float  # of the other texts get an answer
    separation: float  # AUROC: a text of a known label looks more familiar than one of an unknown label


@dataclass(frozen=True)
class Proof:
    """What is known about a classifier from rows that it has not learned from."""

    texts: int
    agreement: Estimate  # accuracy, or the mean F1 of a text with several labels
    macro_f1: Estimate
    by_label: tuple[LabelScore, ...]
    confusions: tuple[tuple[int, ...], ...]  # texts, by their label and the given one; () with several labels
    reliability: Reliability
    abstaining: Answered


def prove(outcome: Outcome, choice: Choice, labels: Sequence[str], several: bool, clusters: Places) -> Proof:
    """What a classifier does on the rows of an outcome."""
    probabilities = choice.calibration.probabilities(outcome.scores, several)
    given, marks = decide(probabilities, several), outcome.marks
    right, sure = agreement(given, marks), confidence(probabilities, given)
    score = score_of(right, clusters)
    return Proof(
        len(marks),
        Estimate(100 * float(right.mean()), *average_interval([score])),
        macro_f1(given, marks, clusters),
        tuple(_by_label(given, marks, labels)),
        () if several else _confusions(given, marks),
        _reliability(outcome, choice.calibration, several),
        _answered(choice.abstention, sure, outcome.cosines, right),
    )


def score_of(right: Numbers, clusters: Places) -> Score:
    """The agreement of texts as a score."""
    return Score("mean", right[:, None], clusters=clusters)


def macro_f1(given: Marks, marks: Marks, clusters: Places) -> Estimate:
    """The mean F1 of the labels that occur, with an interval."""
    _, numbers = np.unique(clusters, return_inverse=True)
    occurs = marks.any(axis=0)
    sums = [np.zeros((numbers.max() + 1, occurs.sum())) for _ in range(2)]
    both, either = given[:, occurs] & marks[:, occurs], given[:, occurs].astype(float) + marks[:, occurs]
    for total, values in zip(sums, (both.astype(float), either), strict=True):
        np.add.at(total, numbers, values)
    drawn = np.random.default_rng(SEED).multinomial(len(sums[0]), np.full(len(sums[0]), 1 / len(sums[0])), DRAWS)
    hits, sizes = (drawn @ total for total in sums)  # (draws, labels)
    there = sizes > 0
    means = np.where(there, 2 * hits / np.maximum(sizes, 1), 0.0).sum(axis=1) / np.maximum(there.sum(axis=1), 1)
    low, high = np.quantile(means, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    value = (2 * sums[0].sum(axis=0) / np.maximum(sums[1].sum(axis=0), 1)).mean()
    return Estimate(100 * float(value), 100 * float(low), 100 * float(high))


def _by_label(given: Marks, marks: Marks, labels: Sequence[str]) -> list[LabelScore]:
    both, times_given, times_true = (given & marks).sum(axis=0), given.sum(axis=0), marks.sum(axis=0)
    return [
        LabelScore(
            label,
            int(times_true[at]),
            100 * float(both[at] / max(1, times_given[at])),
            100 * float(both[at] / max(1, times_true[at])),
        )
        for at, label in enumerate(labels)
    ]


def _confusions(given: Marks, marks: Marks) -> tuple[tuple[int, ...], ...]:
    counts = marks.T.astype(np.int64) @ given.astype(np.int64)
    return tuple(tuple(map(int, row)) for row in counts)


def _reliability(outcome: Outcome, calibration: Calibration, several: bool) -> Reliability:
    bins, error = _bins(outcome, calibration, several)
    return Reliability(bins, error, _bins(outcome, Calibration(), several)[1])


def _bins(outcome: Outcome, calibration: Calibration, several: bool) -> tuple[tuple[ProbabilityBin, ...], float]:
    """Answers by their probabilities, and the expected calibration error in points."""
    probabilities = calibration.probabilities(outcome.scores, several)
    given = decide(probabilities, several)
    # With several labels, every label that is given is an answer of its own.
    sure, right = probabilities[given], outcome.marks[given].astype(float)
    edges, bins = np.linspace(0, 1, BINS + 1), list[ProbabilityBin]()
    for low, high in pairwise(edges.tolist()):
        inside = (sure >= low) & ((sure < high) | (high == 1))
        if inside.any():
            means = 100 * float(sure[inside].mean()), 100 * float(right[inside].mean())
            bins.append(ProbabilityBin(low, high, *means, int(inside.sum())))
    error = sum(own.texts * abs(own.probability - own.right) for own in bins) / max(1, len(sure))
    return tuple(bins), error


def _answered(abstention: Abstention, sure: Numbers, cosines: Numbers, right: Numbers) -> Answered:
    answered = ~abstention.abstains(sure, cosines)
    return Answered(
        100 * abstention.asked,
        100 * float(answered.mean()),
        100 * float(right[answered].mean()) if answered.any() else 0.0,
    )


def unknown_labels(trials: Sequence[Trial], choice: Choice, several: bool) -> Unknown | None:
    """What happens to texts of labels that the classifier does not know: each group of labels is held out in turn."""
    if not trials or trials[0].learned.marks.shape[1] < FEWEST_LABELS:
        return None
    parts = [
        (*_familiar(held_out, choice, several), known)
        for trial in trials
        for held_out, known in without_labels(trial, GROUPS)
    ]
    if not parts:
        return None
    sure, cosines, known = map(np.concatenate, zip(*parts, strict=True))
    left = choice.abstention.abstains(sure, cosines)
    return Unknown(
        int((~known).sum()),
        100 * float(left[~known].mean()),
        100 * float((~left)[known].mean()),
        100 * _separation(sure * (1 + cosines), known.astype(bool)),
    )


def _familiar(trial: Trial, choice: Choice, several: bool) -> tuple[Numbers, Numbers]:
    outcome = outcome_of(choice.settings, [trial], several)
    probabilities = choice.calibration.probabilities(outcome.scores, several)
    return confidence(probabilities, decide(probabilities, several)), outcome.cosines


def _separation(values: Numbers, known: npt.NDArray[np.bool_]) -> float:
    from sklearn.metrics import roc_auc_score

    return float(roc_auc_score(known, values))


def described(settings: Settings, labels: int, several: bool) -> str:
    """A classifier in words."""
    return f"{settings}, {labels:,} labels" + (", several for a text" if several else "")
