"""Batches of labelled texts are balanced over labels, and every row comes in every epoch."""

from collections import Counter
from itertools import groupby

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sentloom.data.batches import Batches, LabelBatches, MixedBatches, make_batches
from sentloom.data.shapes import Shape
from sentloom.errors import InputError
from tests.small_data import build_dataset


def labelled(*counts):
    """So many rows of each label, in an order in which labels are mixed."""
    labels = [f"label {number}" for number, count in enumerate(counts) for _ in range(count)]
    order = np.random.default_rng(0).permutation(len(labels))
    return build_dataset(Shape.CLASSIFICATION, [(f"text {i}", labels[at]) for i, at in enumerate(order)])


def epoch(batches, number=0):
    return [batches.rows(number * batches.per_epoch + step) for step in range(batches.per_epoch)]


def labels_in(batches, rows):
    return Counter(batches.data.take(rows)["label"])


@settings(max_examples=60)
@given(st.lists(st.integers(1, 30), min_size=1, max_size=12), st.integers(1, 8), st.integers(1, 6), st.integers(0, 3))
def test_every_row_comes_in_every_epoch_whatever_the_labels(counts, size, rows_per_label, number):
    size = min(size, sum(counts))
    batches = LabelBatches(labelled(*counts), size, 7, rows_per_label)
    drawn = epoch(batches, number)
    assert all(len(rows) == size for rows in drawn)
    assert set(np.concatenate(drawn).tolist()) == set(range(sum(counts)))
    once = sum(-(-count // rows_per_label) * rows_per_label for count in counts)
    assert batches.per_epoch * size <= 2 * once + len(counts) * rows_per_label + size  # repeats at most double an epoch


def test_equal_labels_give_batches_of_p_labels_with_k_rows_each():
    batches = LabelBatches(labelled(*[8] * 10), 16, seed=1, rows_per_label=4)
    assert batches.per_epoch == 5
    for number in range(3):
        drawn = epoch(batches, number)
        assert sorted(np.concatenate(drawn).tolist()) == list(range(80))  # once each
        counts = [labels_in(batches, rows) for rows in drawn]
        assert all(rows % 4 == 0 for count in counts for rows in count.values())
        assert np.mean([len(count) for count in counts]) > 3.5  # of at most 4


def test_a_label_that_has_most_rows_is_spread_evenly_and_rare_ones_come_with_it():
    batches = LabelBatches(labelled(900, *[2] * 20, *[1] * 20), 32, seed=1, rows_per_label=4)
    counts = [labels_in(batches, rows) for rows in epoch(batches)]
    assert np.std([count["label 0"] for count in counts]) < 4  # of 25 in a batch
    assert min(len(count) for count in counts) > 1  # there are negatives in every batch
    seen = sum(counts, Counter())
    assert seen["label 0"] in range(900, 933)  # once, and in what fills the last batch
    mean = round((225 + 20 + 20) / 41)
    assert all(2 * mean <= seen[f"label {n}"] <= 2 * mean + 2 for n in range(1, 21))
    assert all(1 <= seen[f"label {n}"] <= 2 for n in range(21, 41))  # a single row is nobody's positive


def test_thousands_of_labels_with_two_rows_each_keep_them_together():
    batches = LabelBatches(labelled(*[2] * 3000), 64, seed=1, rows_per_label=4)
    assert batches.per_epoch == 94
    assert all(set(labels_in(batches, rows).values()) == {2} for rows in epoch(batches)[:-1])


def test_a_rest_of_one_row_is_not_left_alone():
    batches = LabelBatches(labelled(5, 5), 10, seed=3, rows_per_label=4)
    (rows,) = epoch(batches)
    labels = batches.data.take(rows)["label"]
    assert min(len(list(run)) for _, run in groupby(labels)) >= 2  # groups of 3 and 2, not of 4 and 1


def test_any_order_of_calls_and_a_new_object_give_the_same_rows():
    data = labelled(9, 4, 1, 7)
    first = LabelBatches(data, 4, seed=7, rows_per_label=3)
    forwards = [first.rows(step).tolist() for step in range(40)]
    for step in np.random.default_rng(0).permutation(40):
        assert first.rows(int(step)).tolist() == forwards[step]
        assert LabelBatches(data, 4, seed=7, rows_per_label=3).rows(int(step)).tolist() == forwards[step]
    assert [LabelBatches(data, 4, seed=8, rows_per_label=3).rows(step).tolist() for step in range(40)] != forwards
    assert len({tuple(rows) for rows in forwards}) > 30  # epochs differ


def test_a_batch_has_its_labels():
    batches = LabelBatches(labelled(6, 6), 4, seed=1, rows_per_label=2)
    batch = batches.batch(5)
    assert batch.key == (1, 5)
    assert batch.labels == batches.data.take(batch.rows)["label"]
    assert batch.part(1, 3).labels == batch.labels[1:3]


def test_too_few_rows_are_refused():
    with pytest.raises(InputError, match="3 rows are fewer than one batch of 4"):
        LabelBatches(labelled(2, 1), 4, seed=1, rows_per_label=2)


def test_labelled_texts_are_balanced_unless_files_are_mixed():
    data = labelled(4, 4)
    assert isinstance(make_batches(data, 4, 1, None, 2), LabelBatches)
    assert isinstance(make_batches(data, 4, 1, 1.0, 2), MixedBatches)
    texts = build_dataset(Shape.TEXTS, [("a",), ("b",)])
    assert type(make_batches(texts, 2, 1, None, 2)) is Batches
