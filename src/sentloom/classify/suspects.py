"""Rows whose label is probably wrong, by confident learning (Northcutt, Jiang and Chuang, 2021).

Every row gets probabilities from a classifier that has not learned from it. A row is suspected if some other label is
at least as probable as it is on average for the rows that have that label. The vectors are those of the base: a fitted
encoder has seen the labels, and learns wrong ones too.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sentloom.classify.heads import Kind, Rows, Settings
from sentloom.classify.learning import SEED, Trial, calibrate, outcome_of

FOLDS = 5
MOST_ROWS = 10_000  # that are looked at
SETTINGS = Settings(Kind.LOGISTIC, 10)


@dataclass(frozen=True)
class Suspects:
    """Which rows are suspected, the most suspicious first, and which label is more probable."""

    rows: npt.NDArray[np.int64]
    labels: npt.NDArray[np.int64]
    probabilities: npt.NDArray[np.float64]  # of that label
    looked_at: int

    @property
    def share(self) -> float:
        """Of the rows that were looked at."""
        return len(self.rows) / max(1, self.looked_at)


def find_suspects(rows: Rows) -> Suspects:
    """Suspicious rows among those with one label each."""
    looked_at = np.sort(np.random.default_rng(SEED).permutation(len(rows))[:MOST_ROWS])
    own = rows.where(looked_at)
    folds = _folds(own.marks.argmax(axis=1))
    trials = [Trial(own.where(folds != fold), own.where(folds == fold)) for fold in range(FOLDS)]
    trials = [trial for trial in trials if len(trial.asked) and len(trial.learned)]
    outcome = outcome_of(SETTINGS, trials, several=False)
    probabilities = calibrate(outcome, several=False).probabilities(outcome.scores, several=False)
    order = np.argsort(folds, kind="stable")  # the rows in the order of the outcome
    given = outcome.marks.argmax(axis=1)
    counts = np.maximum(outcome.marks.sum(axis=0), 1)
    usual = (probabilities * outcome.marks).sum(axis=0) / counts  # (l,) of the rows that have the label
    among = np.where((probabilities >= usual) & outcome.marks.any(axis=0), probabilities, 0.0)
    other = among.argmax(axis=1)
    everyone = np.arange(len(given))
    suspected = np.flatnonzero((among.max(axis=1) > 0) & (other != given))
    margins = (probabilities[everyone, other] - probabilities[everyone, given])[suspected]
    suspected = suspected[np.argsort(-margins, kind="stable")]
    return Suspects(
        looked_at[order[suspected]], other[suspected], probabilities[suspected, other[suspected]], len(looked_at)
    )


def _folds(labels: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """The fold of each row: the rows of a label are dealt out evenly."""
    drawn = np.random.default_rng(SEED).permutation(len(labels))
    folds = np.empty(len(labels), np.int64)
    folds[drawn[np.argsort(labels[drawn], kind="stable")]] = np.arange(len(labels)) % FOLDS
    return folds
