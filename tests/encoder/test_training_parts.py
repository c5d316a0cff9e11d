"""What training asks of an encoder: raw vectors, layers, token states, copies, frozen parts, dropout."""

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
    """Nothing here runs workers, and threads that wait for each other are dear."""
    torch.set_num_threads(1)


def single_states(folder, family, ids):
    """transformers' own forward of each sentence by itself: [sentence][layer] -> (tokens, d)."""
    kind = AutoModelForTextEncoding if family in DECODER_FAMILIES else AutoModel
    model = kind.from_pretrained(folder).eval()
    outputs = [model(input_ids=torch.tensor([one]), output_hidden_states=True).hidden_states for one in ids]
    return [[layer[0] for layer in layers] for layers in outputs]


@torch.no_grad()
def test_layers_equal_single_sentences_pooled(encoder, family, model_folders, monkeypatch):
    monkeypatch.setattr("sentloom.encoder.encoder.TOKENS_A_PACK", 40)  # several packs: rows must come back in order
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
    places[2], places[4] = places[2][:0], places[4][::-1]  # none of one sentence; an order that is not sorted
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


# family -> what a name begins with: the embeddings, and the first two blocks
FROZEN = {
    "bert": (["embeddings."], ["encoder.layer.0.", "encoder.layer.1."]),
    "roberta": (["embeddings."], ["encoder.layer.0.", "encoder.layer.1."]),
    "xlm-roberta": (["embeddings."], ["encoder.layer.0.", "encoder.layer.1."]),
    # its bias of relative positions is one for all blocks; T5 has it in the first
    "mpnet": (["embeddings."], ["encoder.layer.0.", "encoder.layer.1.", "encoder.relative_attention_bias."]),
    "electra": (["embeddings.", "embeddings_project."], ["encoder.layer.0.", "encoder.layer.1."]),
    "distilbert": (["embeddings."], ["transformer.layer.0.", "transformer.layer.1."]),
    "modernbert": (["embeddings."], ["layers.0.", "layers.1."]),
    # the blocks of ALBERT are one, repeated
    "albert": (["embeddings.", "encoder.embedding_hidden_mapping_in."], ["encoder.albert_layer_groups."]),
    "t5": (["shared.", "encoder.embed_tokens."], ["encoder.block.0.", "encoder.block.1."]),
    "mt5": (["shared.", "encoder.embed_tokens."], ["encoder.block.0.", "encoder.block.1."]),
}


def frozen(encoder):
    """Names within the model of what is kept from training."""
    return {name for name, parameter in encoder.backbone.model.named_parameters() if not parameter.requires_grad}


def beginning(encoder, *parts):
    return {name for name, _ in encoder.backbone.model.named_parameters() if name.startswith(tuple(parts))}


def test_freezing_keeps_what_it_says_and_nothing_else(encoder, family):
    embeddings, blocks = FROZEN[family]
    assert frozen(encoder) == set()
    encoder.backbone.freeze(0)
    assert frozen(encoder) == beginning(encoder, *embeddings) != set()
    encoder.backbone.freeze(2)
    assert frozen(encoder) == beginning(encoder, *embeddings, *blocks)


@pytest.mark.parametrize("family", DECODER_FAMILIES, indirect=True)
def test_freezing_with_a_decoder_leaves_the_decoder(family, model_folders):
    encoder = Encoder.load(model_folders[family], pooling="decoder-first")
    encoder.backbone.freeze(2)
    embeddings, blocks = FROZEN[family]
    assert frozen(encoder) == beginning(encoder, *embeddings, *blocks)
    assert all(p.requires_grad for p in encoder.backbone.model.decoder.block.parameters())


@pytest.mark.parametrize("layers", [0, 2])
def test_frozen_layers_give_the_same_states_after_steps(encoder, family, layers):
    """By what they compute, not by name: layers 0 to `layers` stay bit for bit, the last does not."""
    ids = encoder.tokenize(SENTENCES)
    encoder.backbone.freeze(layers)
    before = encoder.layers(ids, "mean", range(4)).detach()
    trained = [p for p in encoder.parameters() if p.requires_grad]
    if family == "albert" and layers:  # its one block is frozen: nothing of these layers is left to train
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


def test_a_model_of_one_or_two_layers_has_its_blocks_found(tmp_path, family):
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


def test_dropout_is_told_and_set(encoder):
    encoder.backbone.dropout = 0.0
    assert encoder.backbone.dropout == 0
    assert torch.equal(*twice(encoder.train()))
    encoder.backbone.dropout = 0.3
    assert encoder.backbone.dropout == 0.3
    one, other = twice(encoder.train())
    assert ((one - other).abs().amax(dim=1) > 1e-3).all()
    assert torch.equal(*twice(encoder.eval()))


def test_the_rate_a_model_comes_with(encoder, family):
    expected = 0.0 if family in ("modernbert", "albert") else 0.1  # as their configurations say
    assert encoder.backbone.dropout == expected


@pytest.mark.parametrize("family", ["modernbert", "t5", "mt5"], indirect=True)
def test_the_attention_drops_too(encoder, family):
    """Without any nn.Dropout: what is left is the attention's own rate."""
    encoder.backbone.dropout = 0.3
    for module in encoder.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
    assert encoder.backbone.dropout == 0.3
    assert not torch.equal(*twice(encoder.train()))


@pytest.mark.parametrize(("family", "rate"), [("modernbert", "attention_dropout"), ("t5", "dropout_rate")])
def test_a_rate_written_as_a_whole_number_is_a_rate(tmp_path, family, rate):
    folder = build_model_folder(family, tmp_path)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {rate: 0}))
    encoder = Encoder.load(folder)
    encoder.backbone.dropout = 0.3
    for module in encoder.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
    assert not torch.equal(*twice(encoder.train()))
