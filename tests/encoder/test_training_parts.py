"""The parts of an encoder that training uses: raw vectors, layers, token states, copies, freezing, dropout."""

import json

import numpy as np
import pytest
import torch
from transformers import AutoModel, AutoModelForTextEncoding

from sentloom.encoder import Encoder
from tests.encoder.small_models import DECODER_FAMILIES, FAMILIES, SENTENCES, build_model_folder

POOL = {"first": lambda states: states[0], "mean": lambda states: states.mean(0), "max": lambda states: states.amax(0)}


@pytest.fixture(autouse=True)
def one_thread(two_threads):
    """Run with one thread: no test here uses workers, and waiting threads are expensive."""
    torch.set_num_threads(1)


def single_states(folder, family, ids):
    """Run transformers' own forward on each sentence separately: [sentence][layer] -> (tokens, d)."""
    kind = AutoModelForTextEncoding if family in DECODER_FAMILIES else AutoModel
    model = kind.from_pretrained(folder).eval()
    outputs = [model(input_ids=torch.tensor([one]), output_hidden_states=True).hidden_states for one in ids]
    return [[layer[0] for layer in layers] for layers in outputs]


@torch.no_grad()
def test_layers_equal_pooled_single_sentences(encoder, family, model_folders, monkeypatch):
    monkeypatch.setattr(
        "sentloom.encoder.encoder.TOKENS_A_PACK", 40
    )  # several packs: the order of rows must be restored
    ids = encoder.tokenize(SENTENCES)
    asked = (3, 0, 2)
    states = single_states(model_folders[family], family, ids)
    for how, pool in POOL.items():
        ours = encoder.layers(ids, how, asked)
        expected = torch.stack([torch.stack([pool(one[k]) for k in asked]) for one in states])
        torch.testing.assert_close(ours, expected, atol=2e-6, rtol=1e-5)
    last = encoder.layers(ids, "mean", (-1,))
    torch.testing.assert_close(last[:, 0], torch.stack([one[-1].mean(0) for one in states]), atol=2e-6, rtol=1e-5)


@torch.no_grad()
def test_token_states_equal_single_sentences_in_order(encoder, family, model_folders, monkeypatch):
    monkeypatch.setattr("sentloom.encoder.encoder.TOKENS_A_PACK", 40)
    ids = encoder.tokenize(SENTENCES)
    draw = np.random.default_rng(0)
    places = [np.sort(draw.choice(len(one), int(draw.integers(len(one))), replace=False)) for one in ids]
    places[2], places[4] = places[2][:0], places[4][::-1]  # no token of one sentence; an unsorted order in another
    states = single_states(model_folders[family], family, ids)
    expected = torch.cat([layers[-1][at.copy()] for layers, at in zip(states, places, strict=True)])
    assert len(expected) == sum(map(len, places)) > 10
    torch.testing.assert_close(encoder.token_states(ids, places), expected, atol=2e-6, rtol=1e-5)


def test_raw_vectors_have_their_own_length_and_a_gradient(encoder):
    ids = encoder.tokenize(SENTENCES)
    encoder.unit_length = True
    raw, unit = encoder(ids, raw=True), encoder(ids)
    lengths = raw.norm(dim=1)
    assert (lengths - 1).abs().min() > 1e-3
    torch.testing.assert_close(raw / lengths[:, None], unit)
    encoder.unit_length = False
    torch.testing.assert_close(encoder(ids), raw)
    assert raw.requires_grad


def test_a_copy_shares_the_tokenizer_and_no_weights(encoder):
    copy = encoder.copy()
    assert copy.tokens is encoder.tokens
    ours, theirs = dict(encoder.named_parameters()), dict(copy.named_parameters())
    assert ours.keys() == theirs.keys()
    before = encoder(encoder.tokenize(SENTENCES)).detach()
    assert all(torch.equal(ours[name], theirs[name]) for name in ours)
    assert not {p.data_ptr() for p in ours.values()} & {p.data_ptr() for p in theirs.values()}
    with torch.no_grad():
        for parameter in copy.parameters():
            parameter.add_(1)
    copy.requires_grad_(False)
    copy.backbone.dropout = 0.7
    copy.prompts["query"] = "q"
    assert torch.equal(encoder(encoder.tokenize(SENTENCES)).detach(), before)
    assert all(p.requires_grad for p in encoder.parameters())
    assert encoder.backbone.dropout != 0.7
    assert "query" not in encoder.prompts


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
    one, other = twice(encoder.train())
    assert ((one - other).abs().amax(dim=1) > 1e-3).all()
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
