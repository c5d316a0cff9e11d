"""Cross-encoders: scores equal transformers' own, pair by pair; the one of the catalogue, and models that are refused."""

import shutil
from dataclasses import replace

import numpy as np
import pytest
import torch
from transformers import AutoModelForSequenceClassification, AutoTokenizer

from sentloom.encoder.device import running_on
from sentloom.errors import ModelError
from sentloom.search.cross_encoder import CrossEncoder
from tests.encoder.small_models import SENTENCES, build_model_folder
from tests.search.small_cross_encoders import build_cross_encoder

FAMILIES = ("bert", "roberta", "distilbert", "electra", "xlm-roberta", "modernbert")
PAIRS = [(one[:20], other[:30]) for one in SENTENCES[:4] for other in SENTENCES]  # short enough for small models
BERLIN = "How many people live in Berlin?"


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


def test_the_re_ranker_of_the_catalogue_ranks_an_answer_above_another_sentence(downloaded):
    model = CrossEncoder.load(downloaded("reranker"))
    answer = "Berlin has a population of 3,520,031 registered inhabitants in an area of 891.82 square kilometers."
    right, wrong = (BERLIN, answer), (BERLIN, "New York City is famous for the Metropolitan Museum of Art.")
    scores = model.score([right, wrong])
    assert scores[0] > 5
    assert scores[1] < -5
    np.testing.assert_allclose(model.score([wrong, wrong, right]), [scores[1], scores[1], scores[0]], atol=1e-4)
