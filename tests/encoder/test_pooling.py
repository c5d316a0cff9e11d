"""Pooling: parsing of names, and hand-computed vectors."""

import pytest
import torch

from sentloom.encoder.packing import PackedRun
from sentloom.encoder.pooling import Pooling, pool
from sentloom.errors import InputError

# Two sentences of two tokens, one of one token, d = 2.
STATES = torch.tensor([[1.0, 8.0], [3.0, 2.0], [0.0, 0.0], [4.0, -6.0], [7.0, 7.0]])
RUNS = (PackedRun(0, 2, 2), PackedRun(4, 1, 1))


@pytest.mark.parametrize(
    ("how", "expected"),
    [
        ("first", [[1, 8], [0, 0], [7, 7]]),
        ("mean", [[2, 5], [2, -3], [7, 7]]),
        ("max", [[3, 8], [4, 0], [7, 7]]),
    ],
)
def test_hand_computed_vectors(how, expected):
    assert pool(how, STATES, RUNS).tolist() == expected


@pytest.mark.parametrize(
    ("text", "pooling"),
    [
        ("mean", Pooling("mean", (-1,))),
        ("cls", Pooling("first", (-1,))),
        ("first@3", Pooling("first", (3,))),
        ("cls@0,2", Pooling("first", (0, 2))),
        ("first-last", Pooling("mean", (1, -1))),
        ("last-two", Pooling("mean", (-2, -1))),
        ("decoder-first", Pooling("decoder-first", (-1,))),
    ],
)
def test_names(text, pooling):
    assert Pooling.parse(text) == pooling
    assert Pooling.parse(str(pooling)) == pooling


@pytest.mark.parametrize("text", ["", "average", "mean@", "mean@x", "mean@1,", "first-last@2", "decoder-first@1", "@1"])
def test_the_error_about_a_wrong_name_lists_the_valid_ones(text):
    with pytest.raises(InputError, match="decoder-first"):
        Pooling.parse(text)
