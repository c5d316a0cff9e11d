"""Heads: what gives every label a score."""

import numpy as np
import pytest
from scipy.special import softmax
from sklearn.linear_model import LogisticRegression

from sentloom.classify.heads import UNSEEN, Kind, Rows, Settings, learn
from tests.classify.rows import blobs, pairs_of_labels

EVERY = [Settings(Kind.LOGISTIC, 10), Settings(Kind.PROTOTYPES), Settings(Kind.NEIGHBOURS, 5)]


@pytest.mark.parametrize("settings", EVERY, ids=str)
def test_texts_near_the_rows_of_a_label_get_it(settings):
    asked = blobs(30, seed=1)
    scores = learn(settings, blobs(30), several=False).scores(asked.vectors)
    assert (scores.argmax(axis=1) == asked.marks.argmax(axis=1)).mean() > 0.9


def test_a_prototype_is_the_mean_direction_of_a_label():
    rows = Rows(np.array([[1, 0], [0, 1], [0, -1]], np.float32), np.array([[1, 0], [1, 0], [0, 1]], bool))
    scores = learn(Settings(Kind.PROTOTYPES), rows, several=False).scores(np.array([[1, 0]], np.float32))
    assert scores[0].tolist() == pytest.approx([np.sqrt(0.5), 0.0])


def test_one_neighbour_gives_nearly_all_votes_to_its_label():
    rows = Rows(np.eye(3, dtype=np.float32), np.eye(3, dtype=bool))
    (scores,) = learn(Settings(Kind.NEIGHBOURS, 1), rows, several=False).scores(np.eye(3, dtype=np.float32)[:1])
    # one vote and half a vote shared by three labels
    assert softmax(scores).tolist() == pytest.approx([(1 + 0.5 / 3) / 1.5, 0.5 / 4.5, 0.5 / 4.5])


@pytest.mark.parametrize("labels", [2, 3])
def test_a_regression_has_the_probabilities_of_scikit_learn(labels):
    rows, asked = blobs(20, labels), blobs(5, labels, seed=3)
    theirs = LogisticRegression(C=1, tol=1e-3, max_iter=300).fit(rows.vectors, rows.marks.argmax(axis=1))
    ours = softmax(learn(Settings(Kind.LOGISTIC, 1), rows, several=False).scores(asked.vectors), axis=1)
    np.testing.assert_allclose(ours, theirs.predict_proba(asked.vectors), atol=1e-4)


def test_a_label_without_rows_is_never_given():
    rows = blobs(10)
    kept = rows.where(~rows.marks[:, 2])
    head = learn(Settings(Kind.LOGISTIC, 1), kept, several=False)
    assert head.scores(rows.vectors)[:, 2].max() <= UNSEEN + 1e-3


def test_a_single_label_is_always_given():
    rows = Rows(np.eye(2, 4, dtype=np.float32), np.array([[False, True], [False, True]]))
    assert (learn(Settings(Kind.LOGISTIC, 1), rows, several=False).scores(rows.vectors).argmax(axis=1) == 1).all()


@pytest.mark.parametrize("settings", [EVERY[0], EVERY[2]], ids=str)
def test_texts_with_two_labels_have_a_positive_score_for_both(settings):
    asked = pairs_of_labels(40, seed=1)
    scores = learn(settings, pairs_of_labels(80), several=True).scores(asked.vectors)
    assert ((scores > 0) == asked.marks).mean() > 0.9
