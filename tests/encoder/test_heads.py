"""Projections and normalisation against hand-computed values."""

import math

import pytest
import torch

from sentloom.encoder.heads import Projection, normalize


@pytest.mark.parametrize(("activation", "expected"), [("identity", [5.5]), ("tanh", [math.tanh(5.5)])])
def test_a_projection_is_a_linear_layer_and_an_activation(activation, expected):
    head = Projection(2, 1, activation=activation)
    head.load_state_dict({"linear.weight": torch.tensor([[1.0, 2.0]]), "linear.bias": torch.tensor([0.5])})
    assert head(torch.tensor([[1.0, 2.0]])).tolist() == [pytest.approx(expected)]


def test_a_projection_may_have_no_bias():
    assert list(Projection(2, 3, bias=False).state_dict()) == ["linear.weight"]


def test_rows_get_unit_length_and_zero_stays_zero():
    assert normalize(torch.tensor([[3.0, 4.0], [0.0, 0.0]])).tolist() == [pytest.approx([0.6, 0.8]), [0, 0]]
