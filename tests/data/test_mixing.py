"""Mixed batches have one source each and the requested shares, and are a pure function of the step."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sentloom.data.batches import MixedBatches, MixedLabelBatches
from sentloom.data.readers import join
from sentloom.data.shapes import Shape
from sentloom.errors import InputError
from tests.small_data import build_dataset


def mixture(sizes, size, mix=1.0, seed=0):
    sets = [build_dataset(Shape.TEXTS, [(f"{number}-{i}",) for i in range(n)]) for number, n in enumerate(sizes)]
    return MixedBatches(join(sets), size, seed, mix)


def source_of(text):
    return int(text.split("-")[0])


@settings(max_examples=40)
@given(
    sizes=st.lists(st.integers(3, 40), min_size=2, max_size=4),
    size=st.integers(1, 3),
    temperature=st.sampled_from([1.0, 2.0, 100.0]),
    seed=st.integers(0, 5),
)
def test_each_batch_has_one_source_and_every_source_goes_through_its_rows(sizes, size, temperature, seed):
    batches = mixture(sizes, size, temperature, seed)
    seen = {number: [] for number in range(len(sizes))}
    for step in range(3 * batches.per_epoch):
        texts = batches.batch(step).first
        (source,) = {source_of(text) for text in texts}
        assert len(set(texts)) == size
        seen[source].append(texts)
    for number, n in enumerate(sizes):
        whole = n // size
        for start in range(0, len(seen[number]) - whole + 1, whole):  # no row repeats within an epoch of its source
            epoch = [text for texts in seen[number][start : start + whole] for text in texts]
            assert len(set(epoch)) == len(epoch)


def test_shares_are_proportional_even_or_given():
    assert mixture([80, 20], 2).counts.tolist() == [40, 10]
    assert mixture([80, 20], 2, mix=1e9).counts.tolist() == [25, 25]
    assert mixture([80, 20], 2, mix=2.0).counts.tolist() == [33, 17]  # sqrt: 8.94 to 4.47, of 50
    assert mixture([80, 20], 2, mix=(1.0, 3.0)).counts.tolist() == [13, 37]  # 12.5 and 37.5: the first remainder wins
    assert mixture([80, 20, 4], 2, mix=(1.0, 1.0, 0.001)).counts.tolist() == [26, 26, 1]  # at least one
    assert mixture([80, 20, 4], 2, mix=(1.0, 1.0, 0.0)).counts.tolist() == [26, 26, 0]


def test_a_step_gives_the_same_rows_in_any_order_of_calls():
    first, again = mixture([9, 12], 3, seed=4), mixture([9, 12], 3, seed=4)
    steps = np.random.default_rng(0).permutation(30)
    forwards = [first.rows(step).tolist() for step in range(30)]
    assert [again.rows(int(step)).tolist() for step in steps] == [forwards[step] for step in steps]
    assert [mixture([9, 12], 3, seed=5).rows(step).tolist() for step in range(30)] != forwards


def test_too_small_a_source_and_a_wrong_number_of_weights_are_refused():
    with pytest.raises(InputError, match="in source 2"):
        mixture([5, 2], 3)
    with pytest.raises(InputError, match="3 weights for 2 sources"):
        mixture([5, 5], 2, mix=(1.0, 1.0, 1.0))
    with pytest.raises(InputError, match="not all 0"):
        mixture([5, 5], 2, mix=(0.0, 0.0))


def test_label_columns_are_mixed_batch_by_batch_and_balanced_within():
    """Two label columns of the same texts: in the second, one label has 3 of 24 rows and comes twice as often."""
    texts = [f"text {number}" for number in range(24)]
    even = build_dataset(Shape.CLASSIFICATION, [(text, "ab"[at % 2]) for at, text in enumerate(texts)])
    rare = build_dataset(Shape.CLASSIFICATION, [(text, "x" if at < 3 else "y") for at, text in enumerate(texts)])
    batches = MixedLabelBatches(join([even, rare]), 4, 1, 1.0, 2)
    seen: dict[int, list[str]] = {0: [], 1: []}
    for step in range(4 * batches.per_epoch):
        batch = batches.batch(step)
        (source,) = {int(row) // 24 for row in batch.rows}
        assert set(batch.labels) <= set(("ab", "xy")[source])
        seen[source] += batch.first
    assert all(set(own) == set(texts) for own in seen.values())
    share = sum(text in texts[:3] for text in seen[1]) / len(seen[1])
    assert 0.25 < share < 0.35  # 9 of 30 rows per epoch: 6 groups in place of 2
    again = MixedLabelBatches(join([even, rare]), 4, 1, 1.0, 2)
    assert all(again.rows(step).tolist() == batches.rows(step).tolist() for step in (7, 3, 0))
