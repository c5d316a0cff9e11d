"""Fewer layers: which are kept, in every family, and that the smaller model is saved and loaded as it is."""

import numpy as np
import pytest
import torch

from sentloom.encoder import Encoder
from sentloom.encoder.heads import Projection
from sentloom.encoder.pooling import Pooling
from sentloom.encoder.reshaping import evenly_spaced_layers, plain_pooling, shrink
from sentloom.errors import InputError
from tests.encoder.small_models import FAMILIES, SENTENCES, build_model_folder


@pytest.mark.parametrize(
    ("total", "count", "expected"),
    [(6, 3, [0, 2, 5]), (12, 4, [0, 4, 7, 11]), (3, 2, [0, 2]), (4, 1, [0]), (5, 4, [0, 1, 3, 4])],
)
def test_layers_are_evenly_spaced_from_the_first_to_the_last(total, count, expected):
    assert evenly_spaced_layers(total, count) == expected


@pytest.mark.parametrize("family", FAMILIES)
def test_a_smaller_model_is_saved_and_loaded_as_it_is(family, tmp_path):
    encoder = Encoder.load(build_model_folder(family, tmp_path / "big"), pooling="mean")
    before = {name: tensor.clone() for name, tensor in encoder.state_dict().items()}
    small = shrink(encoder, 2).eval()
    small.save(tmp_path / "small", golden=False)
    loaded = Encoder.load(tmp_path / "small")
    assert (small.backbone.num_layers, loaded.backbone.num_layers, encoder.backbone.num_layers) == (2, 2, 3)
    np.testing.assert_allclose(loaded.encode(SENTENCES), small.encode(SENTENCES), atol=1e-6)
    assert all(torch.equal(tensor, before[name]) for name, tensor in encoder.state_dict().items())


def test_the_layers_that_are_kept_are_the_first_and_the_last(tmp_path):
    encoder = Encoder.load(build_model_folder("bert", tmp_path / "big"))
    encoder.heads.append(Projection(32, 12))
    small = shrink(encoder)  # half of three, rounded up
    for own, kept in enumerate((0, 2)):
        for name, tensor in small.backbone.blocks[own].state_dict().items():
            assert torch.equal(tensor, encoder.backbone.blocks[kept].state_dict()[name])
    assert small.dimension == 12


def test_a_smaller_model_has_no_decoder_and_pools_its_last_layer():
    assert str(plain_pooling(Pooling.parse("decoder-first"))) == "mean"
    assert str(plain_pooling(Pooling.parse("max@1,-1"))) == "max"


def test_more_layers_than_there_are_less_one_are_refused(tmp_path):
    encoder = Encoder.load(build_model_folder("bert", tmp_path / "big"))
    for layers in (0, 3, 4):
        with pytest.raises(InputError, match="from 1 to 2"):
            shrink(encoder, layers)
    with pytest.raises(InputError, match="a single layer"):
        shrink(shrink(encoder, 1))
