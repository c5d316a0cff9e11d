"""The encoder of n-grams: against a slow computation in float64, window by window; damaged folders are refused."""

import json

import numpy as np
import pytest
from safetensors.numpy import save_file
from tokenizers import Tokenizer, models, pre_tokenizers, processors

from sentloom.encoder import Encoder
from sentloom.encoder.formats.ngrams import GRAMS, shapes
from sentloom.errors import ModelError

WORDS = ["<unk>", "<s>", "</s>", "dog", "cat", "bird"]


def random_weights():
    draw = np.random.default_rng(0)
    return {name: (0.3 * draw.normal(size=shape)).astype(np.float32) for name, shape in shapes(len(WORDS)).items()}


@pytest.fixture
def folder(tmp_path):
    tokenizer = Tokenizer(models.WordLevel({word: number for number, word in enumerate(WORDS)}, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    ends = [("<s>", 1), ("</s>", 2)]
    tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A </s>", special_tokens=ends)
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "use-multilingual"}))
    save_file(random_weights(), tmp_path / "model.safetensors")
    return tmp_path


def norm(x, scale, shift):
    centred = x - x.mean(-1, keepdims=True)
    return centred / np.sqrt((centred**2).mean(-1, keepdims=True)) * scale + shift


def slow_vector(w, ids):
    """The vector of one text, as the authors' graph computes it."""
    words = w["table"][ids]
    projected = np.concatenate([words @ w[f"proj{n}"] + w[f"proj_b{n}"] for n, _ in GRAMS], axis=1)
    scale, shift = (np.concatenate([w[f"{name}{n}"] for n, _ in GRAMS]) for name in ("ln_g", "ln_b"))
    grams = np.split(norm(projected, scale, shift), len(GRAMS), axis=1)
    parts = [words]
    for x, (n, left) in zip(grams, GRAMS, strict=True):
        for layer in "12":
            rows = []
            for at in range(len(ids)):
                window = [x[t] if 0 <= t < len(ids) else np.zeros(256) for t in range(at - left, at - left + n)]
                rows.append(np.concatenate(window) @ w[f"w{layer}_{n}"] + w[f"b{layer}_{n}"])
            x = x + np.maximum(rows, 0)
        parts.append(x)
    joined = norm(np.concatenate(parts, axis=1), w["ln_g"], w["ln_b"])
    mean = (joined @ w["cnn_W"] + w["cnn_b"]).sum(0) / np.sqrt(len(ids))
    first = np.maximum(mean @ w["p1"] + np.maximum(mean @ w["d0"], 0) @ w["d1"], 0)
    vector = np.tanh(first @ w["p3"] + np.maximum(first @ w["d2"], 0) @ w["d3"])
    return vector / np.linalg.norm(vector)


def test_vectors_of_texts_of_several_lengths(folder):
    texts = ["dog", "", "cat bird dog cat bird", "dog fish", "bird bird bird"]
    exact = {name: weight.astype(np.float64) for name, weight in random_weights().items()}
    ids = [[1, *(WORDS.index(word) if word in WORDS else 0 for word in text.split()), 2] for text in texts]
    expected = [slow_vector(exact, of_text) for of_text in ids]
    encoder = Encoder.load(folder)
    np.testing.assert_allclose(encoder.encode(texts), expected, atol=2e-5)
    np.testing.assert_allclose(encoder.encode(texts[2:3]), expected[2:3], atol=2e-5)  # without padding


def test_it_cannot_be_trained(folder):
    with pytest.raises(ModelError, match="cannot be trained"):
        Encoder.load(folder).train()


def test_other_tensors_and_words_without_a_vector_are_refused(folder):
    weights = random_weights()
    save_file({**weights, "d0": weights["d0"][:9]}, folder / "model.safetensors")
    with pytest.raises(ModelError, match="not those of this model"):
        Encoder.load(folder)
    save_file({**weights, "table": weights["table"][:4]}, folder / "model.safetensors")
    with pytest.raises(ModelError, match=r"ids without a vector. Expected ids below 4"):
        Encoder.load(folder)
