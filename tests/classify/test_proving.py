"""Proving: what a classifier does on rows that it has not learned from."""

import numpy as np
import pytest
from sklearn.metrics import f1_score

from sentloom.classify.heads import Kind, Settings
from sentloom.classify.learning import Abstention, Choice, Outcome, Trial, choose
from sentloom.classify.proving import macro_f1, prove, unknown_labels
from tests.classify.rows import blobs

CHOICE = Choice(Settings(Kind.LOGISTIC, 1))


def outcome_of_labels(given, truth, labels):
    """Texts that get a label with a probability near 1."""
    return Outcome(20.0 * np.eye(labels)[given], np.eye(labels, dtype=bool)[truth], np.ones(len(given)))


def test_scores_of_labels_by_hand():
    outcome = outcome_of_labels([0, 0, 1, 1, 1, 2], [0, 0, 0, 1, 1, 2], 3)
    proof = prove(outcome, CHOICE, ["a", "b", "c"], several=False, clusters=np.arange(6))
    assert proof.agreement.value == pytest.approx(100 * 5 / 6)
    assert [(score.rows, round(score.precision), round(score.recall)) for score in proof.by_label] == [
        (3, 100, 67),
        (2, 67, 100),
        (1, 100, 100),
    ]
    assert proof.confusions == ((2, 1, 0), (0, 2, 0), (0, 0, 1))


def test_macro_f1_is_that_of_scikit_learn_within_its_interval():
    draw = np.random.default_rng(0)
    truth, given = draw.integers(0, 4, 300), draw.integers(0, 4, 300)
    given = np.where(draw.uniform(size=300) < 0.7, truth, given)
    estimate = macro_f1(np.eye(4, dtype=bool)[given], np.eye(4, dtype=bool)[truth], np.arange(300))
    assert estimate.value == pytest.approx(100 * f1_score(truth, given, average="macro"))
    assert estimate.low < estimate.value < estimate.high


def test_clusters_widen_the_interval_of_macro_f1():
    truth = np.repeat([0, 1], 100)
    given = np.where(np.arange(200) // 20 % 3 == 0, 1 - truth, truth)  # right or wrong by whole blocks
    marks = [np.eye(2, dtype=bool)[numbers] for numbers in (given, truth)]
    alone, together = (macro_f1(*marks, clusters) for clusters in (np.arange(200), np.arange(200) // 20))
    assert together.high - together.low > 2 * (alone.high - alone.low)


def test_the_calibration_error_by_hand():
    # ten texts with probability 0.8, of which six are right: 20 points off
    scores = np.log(np.tile([[0.8, 0.2]], (10, 1)))
    marks = np.eye(2, dtype=bool)[[0] * 6 + [1] * 4]
    proof = prove(Outcome(scores, marks, np.ones(10)), CHOICE, ["a", "b"], several=False, clusters=np.arange(10))
    (own,) = proof.reliability.bins
    assert (own.probability, own.right) == pytest.approx((80, 60))
    assert proof.reliability.error == pytest.approx(20)


def test_answers_are_counted_without_those_left_to_people():
    scores = np.log([[0.9, 0.1], [0.9, 0.1], [0.6, 0.4], [0.6, 0.4]])
    outcome = Outcome(scores, np.eye(2, dtype=bool)[[0, 0, 1, 0]], np.ones(4))
    choice = Choice(CHOICE.settings, abstention=Abstention(probability=0.7, asked=0.9))
    abstaining = prove(outcome, choice, ["a", "b"], several=False, clusters=np.arange(4)).abstaining
    assert (abstaining.answered, abstaining.right) == (50, 100)


def test_texts_of_unknown_labels_are_recognised():
    trial = Trial(blobs(40, labels=8, spread=0.1), blobs(20, labels=8, spread=0.1, seed=1))
    learned = choose([trial], several=False)
    unknown = unknown_labels([trial], learned.choice, several=False)
    assert unknown.texts == len(trial.asked)
    assert unknown.separation > 95
    assert unknown.left > 90
    assert unknown.known_answered > 90


def test_three_labels_are_too_few_to_hold_some_out():
    trial = Trial(blobs(5, labels=3), blobs(5, labels=3))
    assert unknown_labels([trial], CHOICE, several=False) is None
