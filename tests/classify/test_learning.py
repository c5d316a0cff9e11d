"""Learning: the choice of a head, probabilities, and when to abstain."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sentloom.classify.heads import Kind, Rows, Settings
from sentloom.classify.learning import (
    ASKED,
    Abstention,
    Calibration,
    Outcome,
    Trial,
    abstention_of,
    agreement,
    calibrate,
    choose,
    confidence,
    decide,
    hits,
    loss,
    sampled,
    without_labels,
)
from sentloom.search.vectors import normalised
from tests.classify.rows import blobs, pairs_of_labels


def two_rings(count, seed):
    """A label inside, another one outside along the same directions: only neighbours tell them apart."""
    draw = np.random.default_rng(seed)
    angle, label = draw.uniform(0, 2 * np.pi, count), draw.integers(0, 8, count)
    place = 2 * np.pi * label / 8 + 0.05 * np.sin(angle)
    return Rows(normalised(np.column_stack([np.cos(place), np.sin(place)])), np.eye(2, dtype=bool)[label % 2])


def test_neighbours_are_chosen_where_no_line_divides_the_labels():
    learned = choose([Trial(two_rings(200, 0), two_rings(100, 1))], several=False)
    assert learned.choice.settings.kind is Kind.NEIGHBOURS
    assert hits(learned.outcome, learned.choice.calibration, several=False).mean() == 1.0


def test_an_outcome_has_the_rows_of_all_trials_in_their_order():
    trials = [Trial(blobs(5), blobs(2, seed=1)), Trial(blobs(5), blobs(3, seed=2))]
    outcome = choose(trials, several=False).outcome
    np.testing.assert_array_equal(outcome.marks, np.vstack([trial.asked.marks for trial in trials]))


def noisy_outcome(scale, count=4000, labels=3):
    """Scores whose softmax, times `scale`, are the true probabilities."""
    draw = np.random.default_rng(0)
    logits = 2 * draw.normal(size=(count, labels))
    true = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    numbers = (true.cumsum(axis=1) < draw.uniform(size=(count, 1))).sum(axis=1).clip(max=labels - 1)
    return Outcome(logits / scale, np.eye(labels, dtype=bool)[numbers], np.ones(count))


@pytest.mark.parametrize("scale", [0.2, 1.0, 5.0])
def test_calibration_finds_the_scale_of_probabilities(scale):
    assert calibrate(noisy_outcome(scale), several=False).scale == pytest.approx(scale, rel=0.1)


def test_calibration_never_raises_the_loss():
    outcome = noisy_outcome(3.0, 200)
    assert loss(outcome, calibrate(outcome, several=False), several=False) <= loss(
        outcome, Calibration(), several=False
    )


def test_the_threshold_answers_as_many_as_have_the_share_of_right_answers():
    probabilities = np.linspace(0.99, 0.51, 100)
    right = np.r_[np.ones(80), np.zeros(20)].astype(bool)
    scores = np.log(np.column_stack([probabilities, 1 - probabilities]))
    marks = np.column_stack([right, ~right])
    abstention = abstention_of(Outcome(scores, marks, np.ones(100)), Calibration(), several=False)
    answered = ~abstention.abstains(probabilities, np.ones(100))
    # 80 right ones and 8 wrong ones are 90.9% right; with one more they would be 89.9%
    assert abstention.asked == ASKED[0]
    assert answered.sum() == 88


def test_texts_far_from_all_rows_are_left_to_people():
    abstention = Abstention(probability=0.5, cosine=0.4)
    assert abstention.abstains(np.array([0.9, 0.9, 0.3]), np.array([0.8, 0.2, 0.8])).tolist() == [False, True, True]


def test_several_labels_are_given_above_a_half_and_one_always():
    probabilities = np.array([[0.9, 0.6, 0.1], [0.2, 0.3, 0.1]])
    marks = decide(probabilities, several=True)
    assert marks.tolist() == [[True, True, False], [False, True, False]]
    assert confidence(probabilities, marks).tolist() == [0.6, 0.3]


def test_agreement_is_the_f1_of_labels():
    given_marks = np.array([[True, True, False], [True, False, False]])
    marks = np.array([[True, False, True], [True, False, False]])
    assert agreement(given_marks, marks).tolist() == [0.5, 1.0]


@given(st.integers(4, 60), st.integers(0, 5))
def test_a_sample_has_every_label(most, seed):
    kept = sampled(blobs(40, labels=4, seed=seed), most)
    assert len(kept) == most
    assert kept.marks.any(axis=0).all()


def test_labels_that_are_held_out_are_not_learned_from():
    trial = Trial(blobs(5), blobs(3, seed=1))
    for held_out, known in without_labels(trial, 2):
        assert not (held_out.learned.marks.any(axis=0) & trial.asked.marks[~known].any(axis=0)).any()
    assert sum((~known).sum() for _, known in without_labels(trial, 2)) == len(trial.asked)


def test_several_labels_are_learned():
    learned = choose(
        [Trial(pairs_of_labels(80), pairs_of_labels(40, seed=1))], several=True, choices=[Settings(Kind.LOGISTIC, 100)]
    )
    assert hits(learned.outcome, learned.choice.calibration, several=True).mean() > 0.95
