"""Packed and padded runs against transformers' own forward, for every model family."""

import numpy as np
import pytest
import torch
from transformers import AutoModel, AutoModelForTextEncoding

from sentloom.encoder import Encoder
from sentloom.encoder.packing import pack, plan
from sentloom.errors import InputError
from tests.encoder.small_models import DECODER_FAMILIES, SENTENCES

LONG = " ".join(SENTENCES * 20)


def reference_states(folder, family, ids):
    """Run transformers' own forward on one sentence, all layers, without packing, padding or mask."""
    kind = AutoModelForTextEncoding if family in DECODER_FAMILIES else AutoModel
    model = kind.from_pretrained(folder).eval()
    return model(input_ids=torch.tensor([ids]), output_hidden_states=True).hidden_states


@torch.no_grad()
def test_states_of_every_layer_equal_transformers_own(encoder, family, model_folders):
    ids = encoder.tokenize([*SENTENCES, LONG])
    rows = plan(np.array([len(sentence) for sentence in ids]), 10_000)[0]
    packed = pack(ids, rows)
    layers = list(range(encoder.backbone.num_layers + 1))
    ours = encoder.backbone.states(packed, layers)
    last = encoder.backbone.states(packed)[0]
    start = 0
    for row in rows:
        stop = start + len(ids[row])
        theirs = reference_states(model_folders[family], family, ids[row])
        for layer in layers:
            torch.testing.assert_close(ours[layer][start:stop], theirs[layer][0], atol=2e-6, rtol=1e-5)
        torch.testing.assert_close(last[start:stop], theirs[-1][0], atol=2e-6, rtol=1e-5)
        start = stop


@torch.no_grad()
def test_modernbert_above_128_tokens_honours_its_window(model_folders):
    encoder = Encoder.load(model_folders["modernbert"])
    ids = encoder.tokenize([LONG, SENTENCES[0]])
    assert len(ids[0]) > 128
    assert encoder.backbone.model.config.sliding_window == 8
    ours = encoder.backbone.states(pack(ids, np.array([0, 1])))[0][: len(ids[0])]
    theirs = reference_states(model_folders["modernbert"], "modernbert", ids[0])[-1][0]
    torch.testing.assert_close(ours, theirs, atol=2e-6, rtol=1e-5)
    wide = Encoder.load(model_folders["modernbert"])  # the window matters for this sentence
    for layer in wide.backbone.model.layers:
        layer.attn.sliding_window = None
    assert (wide.backbone.states(pack(ids, np.array([0, 1])))[0][: len(ids[0])] - theirs).abs().max() > 1e-3


@torch.no_grad()
@pytest.mark.parametrize("family", DECODER_FAMILIES, indirect=True)
def test_decoder_first_equals_the_full_forward(family, model_folders):
    encoder = Encoder.load(model_folders[family], pooling="decoder-first")
    model = AutoModel.from_pretrained(model_folders[family]).eval()
    vectors = encoder(ids := encoder.tokenize(SENTENCES))
    for sentence, vector in zip(ids, vectors, strict=True):
        full = model(input_ids=torch.tensor([sentence]), decoder_input_ids=torch.tensor([[0]])).last_hidden_state[0, 0]
        torch.testing.assert_close(vector, full, atol=1e-6, rtol=1e-5)


def test_gradients_of_a_packed_step_equal_those_of_single_sentences(model_folders):
    encoder = Encoder.load(model_folders["bert"])
    ids = encoder.tokenize(SENTENCES)
    weights = torch.randn(len(ids), encoder.dimension, generator=torch.Generator().manual_seed(1))

    def gradients(loss):
        encoder.zero_grad()
        loss.backward()
        return {name: p.grad.clone() for name, p in encoder.named_parameters() if p.grad is not None}

    together = gradients((encoder(ids) * weights).sum())
    alone = gradients(sum((encoder([one]) * w).sum() for one, w in zip(ids, weights, strict=True)))
    assert together.keys() == alone.keys()
    for name, gradient in together.items():
        torch.testing.assert_close(gradient, alone[name], atol=1e-5, rtol=1e-4)


def test_missing_layers_and_decoders_are_refused(model_folders):
    with pytest.raises(InputError, match="layers from 0 to 3"):
        Encoder.load(model_folders["bert"], pooling="mean@7")
    with pytest.raises(InputError, match="no decoder"):
        Encoder.load(model_folders["bert"], pooling="decoder-first")
