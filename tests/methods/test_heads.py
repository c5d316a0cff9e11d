"""Heads between widths, and which of them stay part of the encoder."""

import pytest
import torch
from torch import nn

from sentloom.encoder import Encoder
from sentloom.encoder.heads import Projection
from sentloom.errors import InputError
from sentloom.methods.method import attach_head, build_head
from tests.encoder.small_models import build_model_folder


def test_a_head_joins_different_widths():
    assert build_head("m", "none", 4, 4) is None
    head = build_head("m", "linear-tanh", 4, 6)
    assert (head.linear.in_features, head.linear.out_features, head.activation_name) == (4, 6, "tanh")
    with pytest.raises(InputError, match="m: the encoder has width 4 and the source has width 6"):
        build_head("m", "none", 4, 6)


def test_a_head_starts_as_the_identity_so_that_cosines_are_those_without_it():
    vectors = torch.tensor([[3.0, 4.0], [1.0, 0.0]])
    assert build_head("m", "linear", 2, 2)(vectors).tolist() == vectors.tolist()
    assert build_head("m", "linear", 2, 3)(vectors).tolist() == [[3, 4, 0], [1, 0, 0]]


def test_a_head_is_applied_after_the_encoder_or_becomes_part_of_it(tmp_path):
    encoder = Encoder.load(build_model_folder("bert", tmp_path / "model"))
    head = Projection(encoder.dimension, 6)
    assert attach_head(encoder, head, keep=False) is head
    assert isinstance(attach_head(encoder, None, keep=True), nn.Identity)
    assert len(encoder.heads) == 0
    assert isinstance(attach_head(encoder, head, keep=True), nn.Identity)
    assert [*encoder.heads] == [head]
    assert encoder.dimension == 6
