"""Batches are a pure function of (seed, step)."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sentloom.data.batches import Batch, Batches
from sentloom.data.shapes import Shape
from sentloom.errors import InputError
from tests.small_data import build_dataset


def texts(count):
    return build_dataset(Shape.TEXTS, [(f"sentence {i}",) for i in range(count)])


def by_hand(*columns, places=None, key=(0, 0)):
    n = len(columns[0])
    names = ("anchor", "positive") if len(columns) == 2 else ("text",)
    at = np.arange(n) if places is None else np.array(places)
    return Batch(dict(zip(names, columns, strict=True)), np.arange(n), at, key)


@settings(max_examples=50)
@given(st.integers(1, 40), st.integers(1, 10), st.integers(0, 2**40), st.integers(0, 5))
def test_an_epoch_is_a_permutation_without_the_last_incomplete_batch(rows, size, seed, epoch):
    size = min(size, rows)
    batches = Batches(texts(rows), size, seed)
    assert batches.per_epoch == rows // size
    steps = range(epoch * batches.per_epoch, (epoch + 1) * batches.per_epoch)
    seen = [batches.rows(step).tolist() for step in steps]
    assert all(len(batch) == size for batch in seen)
    flat = [row for batch in seen for row in batch]
    assert len(set(flat)) == len(flat) == rows // size * size
    assert set(flat) <= set(range(rows))


def test_every_row_is_left_out_in_some_epoch_and_not_in_another():
    batches = Batches(texts(7), 3, seed=1)
    left_out = [set(range(7)) - {r for step in (2 * e, 2 * e + 1) for r in batches.rows(step)} for e in range(60)]
    assert all(len(left) == 1 for left in left_out)
    assert set.union(*left_out) == set(range(7))


def test_any_order_of_calls_and_a_new_object_give_the_same_rows():
    first = Batches(texts(23), 4, seed=7)
    forwards = [first.rows(step).tolist() for step in range(30)]
    order = np.random.default_rng(0).permutation(np.repeat(np.arange(30), 2))
    for step in order:
        assert first.rows(step).tolist() == forwards[step]
        assert Batches(texts(23), 4, seed=7).rows(int(step)).tolist() == forwards[step]


def test_changing_returned_rows_changes_no_later_batch():
    batches = Batches(texts(8), 4, seed=3)
    before = batches.rows(0).tolist()
    with pytest.raises(ValueError):
        batches.rows(0)[:] = 0
    assert batches.rows(0).tolist() == before


def test_seeds_and_epochs_have_different_orders():
    orders = {
        tuple(np.concatenate([Batches(texts(20), 5, seed).rows(4 * epoch + i) for i in range(4)]).tolist())
        for seed in range(5)
        for epoch in range(5)
    }
    assert len(orders) == 25


def test_each_row_is_equally_likely_at_each_place():
    counts = np.zeros((5, 5), int)
    for seed in range(2000):
        rows = Batches(texts_of_five, 5, seed).rows(0)
        counts[np.arange(5), rows] += 1
    assert abs(counts - 400).max() < 5 * (2000 * 0.2 * 0.8) ** 0.5


texts_of_five = texts(5)


def test_a_batch_contains_the_texts_of_its_rows():
    data = build_dataset(Shape.PAIRS, [(f"a{i}", f"b{i}") for i in range(11)])
    batch = Batches(data, 4, seed=5).batch(6)
    assert batch.rows.tolist() == Batches(data, 4, seed=5).rows(6).tolist()
    assert batch.first == [f"a{row}" for row in batch.rows]
    assert batch.second == [f"b{row}" for row in batch.rows]
    assert batch.places.tolist() == [0, 1, 2, 3]
    assert batch.key == (5, 6)
    assert len(batch) == 4


def test_scores_and_labels_are_not_texts():
    data = build_dataset(Shape.SCORED_PAIRS, [(f"a{i}", f"b{i}", 0.5) for i in range(4)])
    assert list(Batches(data, 2, seed=0).batch(0).texts) == ["sentence1", "sentence2"]


def test_the_second_view_of_plain_texts_is_the_sentence_itself():
    batch = Batches(texts(4), 2, seed=0).batch(0)
    assert batch.second == batch.first


@settings(max_examples=50)
@given(st.integers(1, 9), st.data())
def test_parts_are_slices_of_the_batch(n, data):
    whole = by_hand([f"a{i}" for i in range(n)], [f"b{i}" for i in range(n)], key=(3, 4))
    start = data.draw(st.integers(0, n))
    stop = data.draw(st.integers(start, n))
    part = whole.part(start, stop)
    assert part.first == whole.first[start:stop]
    assert part.second == whole.second[start:stop]
    assert part.rows.tolist() == part.places.tolist() == list(range(start, stop))
    inner = data.draw(st.integers(0, stop - start))
    assert part.part(inner, stop - start).places.tolist() == list(range(start + inner, stop))  # of a part too


def test_the_draws_of_a_row_do_not_depend_on_how_the_batch_is_split():
    whole = Batches(texts(12), 6, seed=2).batch(1)
    expected = [whole.random(place).random(3).tolist() for place in whole.places]
    for size in (1, 2, 4, 6):
        parts = [whole.part(start, start + size) for start in range(0, 6, size)]
        assert [part.random(place).random(3).tolist() for part in parts for place in part.places] == expected


def test_places_steps_and_seeds_draw_independently_of_each_other_and_of_the_order():
    def draw(seed, step, place):
        return by_hand(["a"], key=(seed, step)).random(place).random()

    drawn = [draw(seed, step, place) for seed in range(4) for step in range(4) for place in range(4)]
    assert len(set(drawn)) == len(drawn)
    for epoch in range(4):  # an epoch's order uses the same seed, but its stream must differ from that of every row
        order = Batches(texts(20), 20, seed=3).rows(epoch).tolist()
        for place in range(4):
            assert by_hand(["a"], key=(3, epoch)).random(place).permutation(20).tolist() != order


def plain(text):
    """Remove case and spacing, letter by letter."""
    words, word = [], ""
    for letter in text.lower() + " ":
        if letter in " \t\n":
            words, word = ([*words, word] if word else words), ""
        else:
            word += letter
    return words


words = st.text("aB \t", max_size=4)


@settings(max_examples=30)
@given(st.lists(st.tuples(words, words), min_size=1, max_size=7), st.booleans())
def test_equal_rows_share_a_text_in_any_column(rows, pairs):
    columns = [list(column) for column in zip(*rows, strict=True)][: 2 if pairs else 1]
    equal = by_hand(*columns).equal()
    for i in range(len(rows)):
        for j in range(len(rows)):
            shared = any(plain(left[i]) == plain(right[j]) for left in columns for right in columns)
            assert equal[i, j] == (shared and i != j)


def test_equality_by_hand():
    batch = by_hand(["A man  sings.", "x", "y", "Straße"], ["z", "a man\tSINGS. ", "y", "STRASSE"])
    expected = np.zeros((4, 4), bool)
    expected[0, 1] = expected[1, 0] = True  # across columns; a row is not a duplicate of itself
    assert np.array_equal(batch.equal(), expected)


def test_a_part_finds_its_own_duplicates():
    whole = by_hand(["a", "b", "A", "b"])
    assert np.array_equal(whole.part(1, 4).equal(), whole.equal()[1:4, 1:4])
    assert whole.equal()[1, 3]


def test_too_little_data_is_refused():
    with pytest.raises(InputError, match=r"data\.tsv: 3 rows are fewer than one batch of 4"):
        Batches(texts(3), 4, seed=0)
    assert Batches(texts(4), 4, seed=0).per_epoch == 1
