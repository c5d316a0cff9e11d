"""Rows whose label is probably wrong."""

import numpy as np

from sentloom.classify.heads import Rows
from sentloom.classify.suspects import find_suspects
from tests.classify.rows import blobs


def test_wrong_labels_are_found_and_few_others():
    rows = blobs(100, spread=0.15)
    wrong = np.random.default_rng(0).choice(len(rows), 20, replace=False)
    marks = rows.marks.copy()
    marks[wrong] = np.roll(marks[wrong], 1, axis=1)
    suspects = find_suspects(Rows(rows.vectors, marks))
    assert len({*wrong.tolist()} & {*suspects.rows.tolist()}) >= 18
    assert len(suspects.rows) <= 24
    assert suspects.looked_at == 400
    right = dict(zip(suspects.rows.tolist(), suspects.labels.tolist(), strict=True))
    assert all(right[row] == rows.marks[row].argmax() for row in wrong if row in right)


def test_nothing_is_suspected_where_all_labels_are_right():
    assert find_suspects(blobs(50, spread=0.05)).share == 0
