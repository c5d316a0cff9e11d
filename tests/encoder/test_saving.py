"""Plain sentence-transformers computes the same vectors from saved folders."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformer

from sentloom.encoder import Encoder, Prompt
from sentloom.encoder.heads import Projection
from sentloom.encoder.saving import patch_json
from sentloom.errors import ModelError
from tests.encoder.small_models import DECODER_FAMILIES, FAMILIES, SENTENCES

# Distinct texts, one in fifty longer than the maximum length of most models
TEXTS = [f"{SENTENCES[i % 8]} {i}" if i % 50 else f"{' '.join(SENTENCES)} {i}" for i in range(200)]
POOLINGS = ["mean", "first", "max", "first-last", "last-two", "max@0,2", "mean@1"]


def plain(folder, methods=("encode",)):
    """The vectors of sentence-transformers; tests/faults/test_export_round_trip.py asks a process without sentloom."""
    model = SentenceTransformer(str(folder), device="cpu")
    return np.stack([getattr(model, method)(TEXTS, batch_size=256) for method in methods])


def cosines(a, b):
    return (a * b).sum(1) / np.linalg.norm(a, axis=1) / np.linalg.norm(b, axis=1)


@pytest.mark.parametrize(
    ("family", "pooling"),
    # every pooling for one packed and one padded family, two poolings for the others
    [
        pytest.param(family, how, marks=() if family == "bert" else pytest.mark.long)
        for family in FAMILIES
        for how in POOLINGS
        if family in ("bert", "t5") or how in ("mean", "first-last")
    ],
)
def test_round_trip_of_every_pooling(family, pooling, model_folders, tmp_path):
    encoder = Encoder.load(model_folders[family], pooling=pooling)
    encoder.save(tmp_path / "model")
    ours = encoder.encode(TEXTS)
    again = Encoder.load(tmp_path / "model")
    assert again.pooling == encoder.pooling
    assert np.array_equal(again.encode(TEXTS), ours)
    assert cosines(plain(tmp_path / "model")[0], ours).min() >= 0.99999


@pytest.mark.parametrize(
    "family", [pytest.param(name, marks=() if name == "bert" else pytest.mark.long) for name in FAMILIES], indirect=True
)
def test_round_trip_of_heads_and_prompts(family, model_folders, tmp_path):
    """A suffix that survives truncation, a prefix, a projection and unit length all have native forms."""
    base = Encoder.load(model_folders[family], max_length=30)
    torch.manual_seed(3)
    heads = [Projection(32, 24, bias=False), Projection(24, 12, activation="tanh")]
    prompts = {"symmetric": Prompt("Two dogs ", " A man knows."), "query": Prompt("man: ", " A man knows.")}
    encoder = Encoder(base.backbone, base.tokens, pooling=base.pooling, heads=heads, unit_length=True, prompts=prompts)
    encoder.eval().save(tmp_path / "model")
    again = Encoder.load(tmp_path / "model")
    assert again.prompts == prompts
    theirs = plain(tmp_path / "model", ("encode", "encode_query", "encode_document"))
    for role, vectors in zip(("symmetric", "query", "document"), theirs, strict=True):
        ours = encoder.encode(TEXTS, role=role)
        assert ours.shape == (200, 12)
        assert np.allclose(np.linalg.norm(ours, axis=1), 1, atol=1e-5)
        assert np.array_equal(again.encode(TEXTS, role=role), ours)
        assert cosines(vectors, ours).min() >= 0.99999
    bare = Encoder.load(tmp_path / "model", prompts={})
    assert cosines(bare.encode(TEXTS), encoder.encode(TEXTS)).max() < 0.99999  # the prompts change the vectors


@pytest.mark.parametrize("family", DECODER_FAMILIES, indirect=True)
def test_decoder_first_loads_with_sentloom_and_is_refused_by_others(family, model_folders, tmp_path):
    encoder = Encoder.load(model_folders[family], pooling="decoder-first")
    encoder.save(tmp_path / "model")
    assert np.array_equal(Encoder.load(tmp_path / "model").encode(TEXTS), encoder.encode(TEXTS))
    with pytest.raises(ValueError, match="NeedsSentloomToLoad"):
        SentenceTransformer(str(tmp_path / "model"), device="cpu")


def test_suffixes_that_differ_by_role_need_sentloom(model_folders, tmp_path):
    prompts = {"query": Prompt(suffix=" dogs"), "document": Prompt(suffix=" man")}
    encoder = Encoder.load(model_folders["bert"], prompts=prompts)
    encoder.save(tmp_path / "model")
    assert "NeedsSentloomToLoad" in (tmp_path / "model" / "modules.json").read_text()
    again = Encoder.load(tmp_path / "model")
    for role in ("query", "document", "symmetric"):
        assert np.array_equal(again.encode(SENTENCES, role=role), encoder.encode(SENTENCES, role=role))


def test_decoder_first_pooling_of_an_encoder_only_checkpoint_is_refused(model_folders, tmp_path):
    Encoder.load(model_folders["t5"], pooling="mean").save(tmp_path / "model")
    with pytest.raises(ModelError, match="there are no weights for"):
        Encoder.load(tmp_path / "model", pooling="decoder-first")


def test_the_length_that_a_base_was_trained_at_is_no_limit_of_the_saved_model(model_folders, tmp_path):
    base = Path(shutil.copytree(model_folders["bert"], tmp_path / "base"))
    patch_json(base / "tokenizer_config.json", max_length=8)
    Encoder.load(base).save(tmp_path / "saved", golden=False)
    assert "max_length" not in json.loads((tmp_path / "saved" / "tokenizer_config.json").read_text())


def test_saving_replaces_a_folder_atomically(model_folders, tmp_path):
    encoder = Encoder.load(model_folders["bert"])
    encoder.save(tmp_path / "model")
    (tmp_path / "model" / "stale").write_text("from before")
    encoder.save(tmp_path / "model")
    assert not (tmp_path / "model" / "stale").exists()
    assert [path.name for path in tmp_path.iterdir()] == ["model"]
