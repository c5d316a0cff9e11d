"""A frozen source never changes, and its stored vectors are those that it computes."""

import numpy as np
import pytest
import torch

from sentloom.data.shapes import Shape
from sentloom.errors import InputError
from sentloom.methods.frozen_source import FrozenSource, load_source, set_pooling
from tests.encoder.small_models import SENTENCES
from tests.methods.conftest import texts_batch
from tests.small_data import build_dataset


def test_it_stays_in_evaluation_mode_without_gradients(encoder):
    source = FrozenSource(encoder).train()
    assert not source.training
    assert not source.encoder.training
    assert not any(parameter.requires_grad for parameter in source.parameters())
    assert torch.equal(source(texts_batch()), source(texts_batch()))  # no dropout


def test_stored_vectors_are_found_again_and_damaged_ones_computed_again(encoder, tmp_path):
    data = build_dataset(Shape.TEXTS, [(text,) for text in SENTENCES])
    source, logged = FrozenSource(encoder), []
    expected = source(texts_batch())
    source.prepare(data, tmp_path)
    torch.testing.assert_close(source(texts_batch()), expected, atol=1e-6, rtol=0)
    (file,) = tmp_path.glob("*.npy")
    content = file.read_bytes()
    file.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    source.prepare(data, tmp_path, logged.append)
    assert file.read_bytes() == content
    assert logged == [f"{file} is damaged: its vectors are computed again"]


def test_without_a_name_the_source_is_a_copy_with_its_own_pooling(encoder):
    source = load_source(None, "mean", encoder)
    assert (str(source.pooling), str(encoder.pooling)) == ("mean", "first")
    assert np.array_equal(load_source(None, None, encoder).encode(SENTENCES), encoder.encode(SENTENCES))
    with pytest.raises(InputError, match="decoder"):
        set_pooling(encoder, "decoder-first")
