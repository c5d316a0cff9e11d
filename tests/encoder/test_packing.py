"""Packing: the layout, and conversion to a padded batch."""

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from sentloom.encoder.packing import PackedRun, pack, pad, plan, plan_side_by_side

LENGTHS = st.lists(st.integers(1, 40), min_size=1, max_size=60)


@given(LENGTHS, st.integers(1, 100), st.sampled_from([0.0, 0.8]))
def test_a_plan_has_every_sentence_once_within_budget_and_length_ratio(lengths, budget, shortest):
    lengths = np.array(lengths)
    packs = plan(lengths, budget, shortest)
    assert sorted(np.concatenate(packs).tolist()) == list(range(len(lengths)))
    for rows in packs:
        tokens = lengths[rows]
        assert tokens.sum() <= budget or len(rows) == 1
        assert list(tokens) == sorted(tokens, reverse=True)
        assert tokens.min() >= shortest * tokens.max()


@given(LENGTHS, st.integers(1, 100))
def test_packs_that_run_side_by_side_have_about_the_same_size(lengths, budget):
    lengths = np.array(lengths)
    packs = plan_side_by_side(lengths, budget)
    assert sorted(np.concatenate(packs).tolist()) == list(range(len(lengths)))
    for rows in packs:
        tokens = lengths[rows]
        assert tokens.sum() < budget + lengths.max()
        assert list(tokens) == sorted(tokens, reverse=True)
    if lengths.max() < budget / 4:  # no sentence is a pack of its own
        sizes = [lengths[rows].sum() for rows in packs]
        assert len(packs) == 1 or len(packs) % 2 == 0
        assert max(sizes) - min(sizes) < 2 * lengths.max()


def test_half_a_pack_is_worth_a_second_worker():
    assert [len(rows) for rows in plan_side_by_side(np.full(60, 10), 2048)] == [30, 30]
    assert [len(rows) for rows in plan_side_by_side(np.full(51, 10), 2048)] == [51]
    assert [len(rows) for rows in plan_side_by_side(np.full(600, 10), 2048)] == [150] * 4  # three would be enough


def test_no_sentences_give_no_packs():
    assert plan(np.array([], dtype=np.int64), 10) == []
    assert plan_side_by_side(np.array([], dtype=np.int64), 10) == []


def test_pack_against_hand_computed_values():
    ids = [[1, 2], [3, 4, 5], [6, 7]]
    packed = pack(ids, np.array([1, 0, 2]))
    assert packed.ids.tolist() == [[3, 4, 5, 1, 2, 6, 7]]
    assert packed.positions.tolist() == [[0, 1, 2, 0, 1, 0, 1]]
    assert packed.runs == (PackedRun(0, 1, 3), PackedRun(3, 2, 2))
    assert packed.lengths == [3, 2, 2]


def test_padding_against_hand_computed_values():
    packed = pack([[1, 2], [3, 4, 5]], np.array([1, 0]))
    ids, mask = pad(packed.ids[0], packed, value=9)
    assert ids.tolist() == [[3, 4, 5], [1, 2, 9]]
    assert mask.tolist() == [[True, True, True], [True, True, False]]


@given(LENGTHS)
def test_masking_inverts_padding(lengths):
    ids = [list(range(length)) for length in sorted(lengths, reverse=True)]
    packed = pack(ids, np.arange(len(ids)))
    states = torch.arange(packed.ids.shape[1] * 2.0).view(-1, 2)
    padded, mask = pad(states, packed)
    assert torch.equal(padded[mask], states)
