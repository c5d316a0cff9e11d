"""The names of models, truncation, and probes."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch

from sentloom.encoder.golden import put_golden, read_golden
from sentloom.encoder.tokens import Prompt
from sentloom.errors import InputError, ModelError
from sentloom.serving.models import Probe, ServedModel, load_models, split_name, warm_up


def served(encoder):
    return ServedModel("small", encoder, Probe("x", np.ones(2, np.float32)))


def test_names_of_models(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs" / "best").mkdir(parents=True)
    (tmp_path / "a=b").mkdir()
    assert split_name("runs/best") == ("best", "runs/best")
    assert split_name("runs/best/") == ("best", "runs/best/")
    assert split_name("before=embedded") == ("before", "embedded")
    assert split_name("a=b") == ("a=b", "a=b")  # a folder that exists
    assert split_name("owner/model@main") == ("owner/model@main", "owner/model@main")


def test_two_models_of_one_name_are_refused():
    with pytest.raises(InputError, match="two models are called 'x'"):
        load_models(["x=embedded", "x=other"])


def test_a_model_has_a_probe_that_it_passes(folder):
    (model,) = load_models([str(folder)])
    assert model.name == "small"
    assert model.probe.cosine(model.encoder.encode(model.probe.text)) == pytest.approx(1, abs=1e-5)


def test_the_probe_of_a_saved_model_is_one_of_its_golden_vectors(encoder, tmp_path):
    encoder.save(tmp_path / "saved")
    golden = read_golden(tmp_path / "saved")
    (model,) = load_models([str(tmp_path / "saved")])
    at = golden.texts.index(model.probe.text)
    assert model.probe.text.strip()
    assert np.array_equal(model.probe.vector, golden.vectors[at])


def test_a_model_that_is_not_as_it_was_saved_is_not_served(encoder, tmp_path):
    encoder.save(tmp_path / "saved")
    with torch.no_grad():
        encoder.backbone.model.get_input_embeddings().weight.mul_(-1)
    encoder.backbone.model.save_pretrained(tmp_path / "saved")
    with pytest.raises(ModelError, match="not those it was saved with"):
        load_models([str(tmp_path / "saved")])


def test_one_text_with_another_vector_is_enough(encoder, tmp_path):
    """The mean cosine would be 0.9996, as high as rounding may lower it."""
    encoder.save(tmp_path / "saved")
    golden = read_golden(tmp_path / "saved")
    one, other = golden.vectors[4] / np.linalg.norm(golden.vectors[4]), np.roll(golden.vectors[4], 1)
    other -= (other @ one) * one
    golden.vectors[4] = 0.95 * one + np.sqrt(1 - 0.95**2) * other / np.linalg.norm(other)
    put_golden(golden, tmp_path / "saved")
    with pytest.raises(ModelError, match=r"cosine 0\.95000"):
        load_models([str(tmp_path / "saved")])


def test_every_worker_runs_batches_of_all_magnitudes_before_the_first_request(encoder):
    seen = []

    class Watched(ServedModel):
        def encode(self, ids):
            seen.append(sum(map(len, ids)))
            return super().encode(ids)

    plain = served(encoder)
    with ThreadPoolExecutor(3) as executor:
        warm_up([Watched(plain.name, encoder, plain.probe)], executor, 3, 500)
    assert [400 < tokens <= 500 for tokens in seen[:3]] == [True] * 3
    assert len(seen) == 3 * 16
    assert min(seen) < 50


def test_a_batch_gets_the_vectors_of_encode(encoder):
    texts = ["A man is playing a guitar.", "Yes", "Two dogs run across the snow, barking at a bird."]
    model = served(encoder)
    np.testing.assert_allclose(model.encode(model.tokenize(texts, "symmetric").ids), encoder.encode(texts), atol=1e-6)


def test_truncated_texts_are_found_and_those_that_just_fit_are_not(encoder):
    longest = encoder.tokens.max_length
    fits = " ".join(["dogs"] * ((longest - 2) // len(encoder.tokens.bare(["dogs"])[0])))
    while len(encoder.tokens.bare([fits])[0]) < longest - 2:
        fits += " a"
    assert len(encoder.tokens.bare([fits])[0]) == longest - 2  # and two special tokens
    found = served(encoder).tokenize([fits, f"{fits} a", "a"], "symmetric")
    assert [len(tokens) for tokens in found.ids] == [longest, longest, 3]
    assert found.truncated == [1]
    assert found.tokens == 2 * longest + 3


def test_prompts_count_for_truncation(encoder):
    encoder.prompts = {"query": Prompt("a a a ")}
    text = " ".join(["a"] * (encoder.tokens.max_length - 4))
    assert served(encoder).tokenize([text], "document").truncated == []
    assert served(encoder).tokenize([text], "query").truncated == [0]


def test_the_cosine_of_a_probe_by_hand():
    probe = Probe("x", np.array([3, 4], np.float32))
    assert probe.cosine(np.array([4, 3], np.float32)) == pytest.approx(24 / 25)
    assert probe.cosine(np.array([np.nan, 1], np.float32)) == 0
    assert probe.cosine(np.zeros(2, np.float32)) == 0
