"""Packed and padded runs against transformers' own forward, for every model family."""

import json

import numpy as np
import pytest
import torch
from transformers import AutoModel, AutoModelForTextEncoding

from sentloom.encoder import Encoder
from sentloom.encoder.packing import pack, plan
from sentloom.errors import InputError
from sentloom.losses import info_nce
from tests.encoder.small_models import DECODER_FAMILIES, FAMILIES, SENTENCES, build_model_folder

pytestmark = pytest.mark.usefixtures("one_thread")
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
    alone = gradients(sum((encoder([sentence]) * w).sum() for sentence, w in zip(ids, weights, strict=True)))
    assert together.keys() == alone.keys()
    for name, gradient in together.items():
        torch.testing.assert_close(gradient, alone[name], atol=1e-5, rtol=1e-4)


def test_gradients_of_mixed_lengths_equal_those_of_transformers_own_padded_batch(family, model_folders):
    encoder = Encoder.load(model_folders[family], pooling="mean").double().eval()
    encoder.tokens_per_pack = 80  # several packs
    ids = encoder.tokenize([*SENTENCES[:7], LONG])
    lengths = torch.tensor([len(sentence) for sentence in ids])
    assert lengths.max() > 5 * lengths.min()
    info_nce(*encoder(ids, raw=True).chunk(2), temperature=0.05).backward()

    kind = AutoModelForTextEncoding if family in DECODER_FAMILIES else AutoModel
    model = kind.from_pretrained(model_folders[family], dtype=torch.float64).eval()
    padding = model.config.pad_token_id
    padded = torch.nn.utils.rnn.pad_sequence([torch.tensor(sentence) for sentence in ids], True, padding)
    mask = torch.arange(padded.shape[1]) < lengths[:, None]
    states = model(input_ids=padded, attention_mask=mask.long()).last_hidden_state
    means = (states * mask[:, :, None]).sum(dim=1) / lengths[:, None]
    info_nce(*means.chunk(2), temperature=0.05).backward()

    theirs = {name: p.grad for name, p in model.named_parameters() if p.grad is not None}
    ours = {name: p.grad for name, p in encoder.backbone.model.named_parameters() if p.grad is not None}
    assert ours.keys() == theirs.keys()
    for name, gradient in ours.items():
        torch.testing.assert_close(gradient, theirs[name], rtol=1e-8, atol=1e-12, msg=name)


def test_missing_layers_and_decoders_are_refused(model_folders):
    with pytest.raises(InputError, match="layers from 0 to 3"):
        Encoder.load(model_folders["bert"], pooling="mean@7")
    with pytest.raises(InputError, match="no decoder"):
        Encoder.load(model_folders["bert"], pooling="decoder-first")


# family -> prefixes of the parameter names of the embeddings and of the first two blocks
FROZEN = {
    "bert": (["embeddings."], ["encoder.layer.0.", "encoder.layer.1."]),
    "roberta": (["embeddings."], ["encoder.layer.0.", "encoder.layer.1."]),
    "xlm-roberta": (["embeddings."], ["encoder.layer.0.", "encoder.layer.1."]),
    # its relative position bias is shared by all blocks; in T5 it is part of the first
    "mpnet": (["embeddings."], ["encoder.layer.0.", "encoder.layer.1.", "encoder.relative_attention_bias."]),
    "electra": (["embeddings.", "embeddings_project."], ["encoder.layer.0.", "encoder.layer.1."]),
    "distilbert": (["embeddings."], ["transformer.layer.0.", "transformer.layer.1."]),
    "modernbert": (["embeddings."], ["layers.0.", "layers.1."]),
    # ALBERT repeats a single block
    "albert": (["embeddings.", "encoder.embedding_hidden_mapping_in."], ["encoder.albert_layer_groups."]),
    "t5": (["shared.", "encoder.embed_tokens."], ["encoder.block.0.", "encoder.block.1."]),
    "mt5": (["shared.", "encoder.embed_tokens."], ["encoder.block.0.", "encoder.block.1."]),
}


def frozen(encoder):
    """List the names of frozen parameters."""
    return {name for name, parameter in encoder.backbone.model.named_parameters() if not parameter.requires_grad}


def beginning(encoder, *parts):
    return {name for name, _ in encoder.backbone.model.named_parameters() if name.startswith(tuple(parts))}


def test_only_the_requested_parameters_are_frozen(encoder, family):
    embeddings, blocks = FROZEN[family]
    assert frozen(encoder) == set()
    encoder.backbone.freeze(0)
    assert frozen(encoder) == beginning(encoder, *embeddings) != set()
    encoder.backbone.freeze(2)
    assert frozen(encoder) == beginning(encoder, *embeddings, *blocks)


@pytest.mark.parametrize("family", DECODER_FAMILIES, indirect=True)
def test_the_decoder_is_not_frozen(family, model_folders):
    encoder = Encoder.load(model_folders[family], pooling="decoder-first")
    encoder.backbone.freeze(2)
    embeddings, blocks = FROZEN[family]
    assert frozen(encoder) == beginning(encoder, *embeddings, *blocks)
    assert all(p.requires_grad for p in encoder.backbone.model.decoder.block.parameters())


@pytest.mark.parametrize("layers", [0, 2])
def test_states_of_frozen_layers_do_not_change_in_training(encoder, family, layers):
    """Check by output, not by name: layers 0 to `layers` stay bit-identical, the last does not."""
    ids = encoder.tokenize(SENTENCES)
    encoder.backbone.freeze(layers)
    before = encoder.layers(ids, "mean", range(4)).detach()
    trained = [p for p in encoder.parameters() if p.requires_grad]
    if family == "albert" and layers:  # its only block is frozen, so none of these layers is trained
        assert not any("layer" in name for name, p in encoder.named_parameters() if p.requires_grad)
        return
    optimizer = torch.optim.AdamW(trained, lr=1e-2)
    for _ in range(2):
        optimizer.zero_grad()
        encoder(ids, raw=True)[:, 0].sum().backward()
        optimizer.step()
    after = encoder.layers(ids, "mean", range(4)).detach()
    assert torch.equal(after[:, : layers + 1], before[:, : layers + 1])
    assert not torch.equal(after[:, 3], before[:, 3])


def test_blocks_are_found_in_models_of_one_or_two_layers(tmp_path, family):
    kind, tokenizer_class, settings = FAMILIES[family]
    for count in (1, 2):
        deep = next(name for name in ("num_hidden_layers", "n_layers", "num_layers") if name in settings)
        with pytest.MonkeyPatch.context() as patch:
            patch.setitem(FAMILIES, family, (kind, tokenizer_class, settings | {deep: count}))
            encoder = Encoder.load(build_model_folder(family, tmp_path / str(count)))
        encoder.backbone.freeze(1)
        embeddings, blocks = FROZEN[family]
        assert frozen(encoder) == beginning(encoder, *embeddings, blocks[0], *blocks[2:])


def twice(encoder):
    ids = encoder.tokenize(SENTENCES)
    with torch.no_grad():
        return encoder(ids, raw=True), encoder(ids, raw=True)


def test_dropout_can_be_read_and_set(encoder):
    encoder.backbone.dropout = 0.0
    assert encoder.backbone.dropout == 0
    assert torch.equal(*twice(encoder.train()))
    encoder.backbone.dropout = 0.3
    assert encoder.backbone.dropout == 0.3
    first, second = twice(encoder.train())
    assert ((first - second).abs().amax(dim=1) > 1e-3).all()
    assert torch.equal(*twice(encoder.eval()))


def test_the_default_dropout_rate(encoder, family):
    expected = 0.0 if family in ("modernbert", "albert") else 0.1  # as in their configurations
    assert encoder.backbone.dropout == expected


@pytest.mark.parametrize("family", ["modernbert", "t5", "mt5"], indirect=True)
def test_attention_has_dropout(encoder, family):
    """Without any nn.Dropout, only the attention's own rate is left."""
    encoder.backbone.dropout = 0.3
    for module in encoder.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
    assert encoder.backbone.dropout == 0.3
    assert not torch.equal(*twice(encoder.train()))


@pytest.mark.parametrize(("family", "rate"), [("modernbert", "attention_dropout"), ("t5", "dropout_rate")])
def test_an_integer_dropout_rate_is_accepted(tmp_path, family, rate):
    folder = build_model_folder(family, tmp_path)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {rate: 0}))
    encoder = Encoder.load(folder)
    encoder.backbone.dropout = 0.3
    for module in encoder.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
    assert not torch.equal(*twice(encoder.train()))
