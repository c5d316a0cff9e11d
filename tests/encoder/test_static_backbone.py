"""Static encoders: the mean of the tokens' vectors, computed by hand; damaged folders are refused."""

import json

import numpy as np
import pytest
from safetensors.numpy import save_file
from tokenizers import Tokenizer, models, pre_tokenizers

from sentloom.encoder import Encoder
from sentloom.errors import ModelError

TABLE = np.array([[0, 0], [3, 4], [1, 0]], np.float32)  # [UNK], dog, cat


@pytest.fixture
def folder(tmp_path):
    tokenizer = Tokenizer(models.WordLevel({"[UNK]": 0, "dog": 1, "cat": 2}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "model2vec", "normalize": True}))
    save_file({"embeddings": TABLE}, tmp_path / "model.safetensors")
    return tmp_path


def test_the_mean_by_hand(folder):
    encoder = Encoder.load(folder)
    vectors = encoder.encode(["dog", "dog cat", "cat bird", "", "bird"])
    mean = np.array([2, 2]) / np.sqrt(8)
    expected = [[0.6, 0.8], mean, [1, 0], [0, 0], [0, 0]]
    np.testing.assert_allclose(vectors, expected, atol=1e-6)
    assert encoder.dimension == 2


def test_its_fingerprint_depends_on_the_vectors(folder):
    before = Encoder.load(folder).fingerprint()
    assert Encoder.load(folder).fingerprint() == before
    save_file({"embeddings": TABLE + 1}, folder / "model.safetensors")
    assert Encoder.load(folder).fingerprint() != before


@pytest.mark.parametrize(
    ("tensors", "problem"),
    [
        ({"embeddings": TABLE, "mapping": TABLE}, "not those of a plain static model"),
        ({"embeddings": TABLE[:2]}, "ids without a vector"),
    ],
)
def test_other_tensors_are_refused(folder, tensors, problem):
    save_file(tensors, folder / "model.safetensors")
    with pytest.raises(ModelError, match=problem):
        Encoder.load(folder)


def test_it_cannot_be_trained(folder):
    with pytest.raises(ModelError, match="cannot be trained or saved"):
        Encoder.load(folder).train()
