"""The fused forward pass of inference against the one of training, and when it is used."""

import gc
import weakref

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from sentloom.encoder import Encoder, fused
from sentloom.encoder.fused import LEAST_STEP, can_fuse, padded
from sentloom.encoder.packing import pack, plan
from tests.encoder.small_models import SENTENCES

pytestmark = pytest.mark.usefixtures("one_thread")


def packed(encoder):
    ids = encoder.tokenize([*SENTENCES, " ".join(SENTENCES)])
    return pack(ids, plan(np.array([len(sentence) for sentence in ids]), 10_000)[0])


@pytest.mark.parametrize("family", ["bert", "roberta"], indirect=True)
def test_states_of_every_layer_equal_those_of_transformers_modules(encoder):
    pack, layers = packed(encoder), (0, 1, -1)
    with torch.no_grad():
        expected = encoder.backbone.states(pack, layers)
    with torch.inference_mode():
        assert can_fuse(encoder.backbone.model)
        states = encoder.backbone.states(pack, layers)
        (last,) = encoder.backbone.states(pack)
    for ours, theirs in zip(states, expected, strict=True):
        torch.testing.assert_close(ours, theirs, atol=2e-6, rtol=1e-5)
    assert torch.equal(last, states[-1])


@pytest.mark.parametrize("family", ["bert"], indirect=True)
def test_changed_weights_change_the_states(encoder):
    pack, block = packed(encoder), encoder.backbone.blocks[0]
    with torch.inference_mode():
        (before,) = encoder.backbone.states(pack)
    with torch.no_grad():
        block.output.dense.weight.mul_(2)  # in place, as optimizers do
        (expected,) = encoder.backbone.states(pack)
    with torch.inference_mode():
        (after,) = encoder.backbone.states(pack)
    torch.testing.assert_close(after, expected, atol=2e-6, rtol=1e-5)
    assert (after - before).abs().max() > 1e-3
    block.output.dense.weight.data = block.output.dense.weight.data / 2  # other memory
    with torch.inference_mode():
        torch.testing.assert_close(encoder.backbone.states(pack)[0], before, atol=2e-6, rtol=1e-5)


@pytest.mark.parametrize("family", ["bert"], indirect=True)
def test_steps_of_a_fused_optimizer_are_noticed(encoder):
    """Torch does not count them as changes in place."""
    pack, optimizer = packed(encoder), torch.optim.AdamW(encoder.parameters(), lr=1e-4, fused=True)
    for _ in range(3):
        with torch.inference_mode():
            (before,) = encoder.backbone.states(pack)
        encoder.backbone.states(pack)[0].square().sum().backward()
        optimizer.step()
        with torch.no_grad():
            (expected,) = encoder.backbone.states(pack)
        with torch.inference_mode():
            (after,) = encoder.backbone.states(pack)
        torch.testing.assert_close(after, expected, atol=2e-6, rtol=1e-5)
        assert (after - before).abs().max() > 1e-4


@pytest.mark.parametrize("family", ["bert"], indirect=True)
def test_only_inference_in_float32_is_fused(encoder):
    model = encoder.backbone.model
    assert not can_fuse(model)
    with torch.no_grad():
        assert not can_fuse(model)
    with torch.inference_mode(), torch.autocast("cpu", torch.bfloat16):
        assert not can_fuse(model)
    with torch.inference_mode():
        assert can_fuse(model)
        model.config.hidden_act = "relu"
        assert not can_fuse(model)


@pytest.mark.parametrize("family", ["modernbert"], indirect=True)
def test_other_families_are_not_fused(encoder):
    with torch.inference_mode():
        assert not can_fuse(encoder.backbone.model)


def test_a_model_that_is_gone_leaves_nothing_behind(model_folders):
    encoder = Encoder.load(model_folders["bert"])
    encoder.encode(SENTENCES)
    model = weakref.ref(encoder.backbone.model)
    assert model() in fused._FUSED
    del encoder
    gc.collect()
    assert model() is None


@given(st.integers(1, 100_000))
def test_padding_is_small_and_has_few_sizes(tokens):
    size = padded(tokens)
    assert tokens <= size < tokens + max(LEAST_STEP, tokens / 16)
    assert padded(size) == size
    assert size % LEAST_STEP == 0


def test_there_are_at_most_150_sizes_up_to_a_full_batch():
    assert len({padded(tokens) for tokens in range(1, 2049)}) < 150


@pytest.mark.parametrize("family", ["bert"], indirect=True)
def test_modules_that_compute_something_else_are_not_fused(encoder):
    class Doubled(torch.nn.Linear):
        def forward(self, x):
            return 2 * super().forward(x)

    dense = encoder.backbone.blocks[0].output.dense
    encoder.backbone.blocks[0].output.dense = Doubled(dense.in_features, dense.out_features)
    with torch.inference_mode():
        assert not can_fuse(encoder.backbone.model)
