"""Merged encoders have the mean of their weights; unlike ones are refused."""

import numpy as np
import pytest
import torch

from sentloom.encoder import Encoder
from sentloom.encoder.heads import Projection
from sentloom.encoder.reshaping import merge
from sentloom.encoder.tokens import Prompt
from sentloom.errors import InputError
from sentloom.lab.vocabulary import new_vocabulary
from tests.encoder.small_models import SENTENCES, build_model_folder


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    return Encoder.load(build_model_folder("bert", tmp_path_factory.mktemp("models") / "bert"))


def moved(encoder, by):
    """A copy with other weights."""
    other = encoder.copy()
    torch.manual_seed(by)
    with torch.no_grad():
        for parameter in other.parameters():
            parameter.add_(torch.randn(parameter.shape))
    return other


def test_every_weight_is_the_mean_and_all_else_the_firsts(base):
    encoders = [base, moved(base, 1), moved(base, 2)]
    encoders[1].prompts = {"symmetric": Prompt("query: ")}
    means = merge(encoders, [2, 1, 1]).state_dict()
    states = [encoder.state_dict() for encoder in encoders]
    for name, tensor in means.items():
        if tensor.is_floating_point():
            expected = 0.5 * states[0][name] + 0.25 * states[1][name] + 0.25 * states[2][name]
            torch.testing.assert_close(tensor, expected)
        else:
            assert torch.equal(tensor, states[0][name])
    merged = merge(encoders)
    assert (merged.prompts, merged.pooling, merged.tokens) == (base.prompts, base.pooling, base.tokens)


def test_a_weight_of_one_gives_back_that_encoder_and_the_inputs_stay(base):
    other = moved(base, 1)
    before = base.fingerprint()
    assert merge([base, other], [0, 3]).fingerprint() == other.fingerprint()
    assert merge([base, other], [1, 0]).fingerprint() == before
    half = merge([base, other]).encode(SENTENCES)
    assert not np.allclose(half, base.encode(SENTENCES))
    assert base.fingerprint() == before


def test_unlike_encoders_are_refused_in_a_sentence(base, tmp_path):
    other = Encoder.load(build_model_folder("distilbert", tmp_path / "distilbert"))
    with pytest.raises(
        InputError, match="number 2 does not fit the first: one is a bert model and the other a distilbert model"
    ):
        merge([base, other])
    longer = base.copy()
    longer.heads.append(Projection(base.dimension, 8))
    with pytest.raises(InputError, match=r"number 3 .*: they have different architectures: heads\.0\.linear"):
        merge([base, base, longer])
    grown = new_vocabulary(base, ["zyzzyva quokka axolotl"] * 20, 200, keep_old=False)
    with pytest.raises(InputError, match=r"number 2 .*: they have different"):
        merge([base, grown])


@pytest.mark.parametrize("weights", [[1], [0, 0], [1, -1], [1, 1, 1]])
def test_weights_that_make_no_mean_are_refused(base, weights):
    with pytest.raises(InputError, match="for 2 encoders"):
        merge([base, base], weights)
    with pytest.raises(InputError, match="1 encoder"):
        merge([base])
