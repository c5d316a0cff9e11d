import copy
import math

import numpy as np
import pytest
import torch

from sentloom.writing.judges import by_length, chance_of_true, judge, judging_ids
from tests.writing.oracles import read_to_judge


@torch.no_grad()
def slow(model, pairs):
    """Each pair alone, in float64: the two verdicts' shares of each other's sum in the softmax over all words."""
    exact = copy.deepcopy(model.model).double().eval()
    chances = []
    for premise, hypothesis in pairs:
        ids = torch.tensor([read_to_judge(model, premise, hypothesis)])
        words = exact(input_ids=ids, decoder_input_ids=torch.tensor([[model.start]])).logits[0, 0].softmax(0)
        true, false = (float(words[i]) for i in model.verdict_ids)
        chances.append(true / (true + false))
    return np.array(chances)


@pytest.mark.parametrize("batch", [1, 3, 64])
def test_chances_are_those_of_the_whole_model_in_float64(writer, pairs, batch):
    chances, expected = judge(writer, pairs, batch), slow(writer, pairs)
    np.testing.assert_allclose(chances, expected, atol=1e-5)
    assert np.ptp(expected) > 0.01  # pairs differ, so that a wrong order would show


def test_the_model_reads_what_it_learned_to_read(writer, pairs):
    assert judging_ids(writer, pairs) == [read_to_judge(writer, *pair) for pair in pairs]


def test_nothing_to_judge(writer):
    assert judge(writer, []).shape == (0,)


def test_two_logits_make_a_chance():
    true, false = np.array([math.log(3), 0.0, 1000.0, -1000.0]), np.array([0.0, 0.0, -1000.0, 1000.0])
    np.testing.assert_allclose(chance_of_true(true, false), [0.75, 0.5, 1.0, 0.0])


def test_batches_hold_every_row_once_longest_first():
    ids = [[0] * length for length in (3, 9, 3, 1, 7)]
    assert [rows.tolist() for rows in by_length(ids, 2)] == [[1, 4], [0, 2], [3]]
    assert by_length([], 2) == []
