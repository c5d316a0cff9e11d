"""Vectors of fewer dimensions: recorded, read, and refused where the model was not trained for them."""

import json

import numpy as np
import pytest
from sentence_transformers import SentenceTransformer

from sentloom.encoder import Encoder
from sentloom.encoder.heads import check_dimensions, record_dimensions
from sentloom.errors import InputError
from tests.encoder.small_models import SENTENCES, build_model_folder


@pytest.fixture
def encoder(tmp_path):
    return Encoder.load(build_model_folder("bert", tmp_path / "bert"))


@pytest.mark.parametrize("unit", [True, False])
def test_a_cut_vector_is_the_start_of_the_whole_one(encoder, unit):
    encoder.unit_length = unit
    record_dimensions(encoder, [8, 32, 16])
    whole, short = encoder.encode(SENTENCES), encoder.encode(SENTENCES, dimension=8)
    lengths = np.linalg.norm(whole[:, :8], axis=1, keepdims=True) if unit else 1
    np.testing.assert_allclose(short, whole[:, :8] / lengths, atol=1e-6)
    assert short.dtype == np.float32
    assert encoder.encode(SENTENCES[0], dimension=16).shape == (16,)
    assert encoder.encode(SENTENCES, dimension=32).shape == (8, 32)


def test_the_saved_model_says_what_it_was_trained_for(encoder, tmp_path):
    assert encoder.dimensions == ()
    before = encoder.fingerprint()
    record_dimensions(encoder, (8, 16))
    assert encoder.fingerprint() != before
    encoder.save(tmp_path / "model")
    again = Encoder.load(tmp_path / "model")
    assert again.dimensions == (16, 8)
    assert again.fingerprint() == encoder.fingerprint()
    theirs = SentenceTransformer(str(tmp_path / "model"), truncate_dim=8, device="cpu")
    ours = again.encode(SENTENCES)[:, :8]
    np.testing.assert_allclose(theirs.encode(SENTENCES), ours, atol=1e-5)
    record_dimensions(again, None)
    assert again.dimensions == ()


def test_other_dimensions_are_refused(encoder):
    with pytest.raises(InputError, match=r"was not trained for 8\. Expected 32: it was trained for no other"):
        encoder.encode(SENTENCES, dimension=8)
    record_dimensions(encoder, [16, 8])
    with pytest.raises(InputError, match="one of 16, 8"):
        encoder.encode(SENTENCES, dimension=12)
    with pytest.raises(InputError, match="40 dimensions of vectors that have 32"):
        check_dimensions("stage s", encoder, [40, 8])


@pytest.mark.parametrize("value", ["64", [0, 999], ["a"], {"x": 1}, [True]])
def test_nonsense_in_a_folder_means_none(encoder, tmp_path, value):
    encoder.save(tmp_path / "model")
    path = tmp_path / "model/config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "matryoshka_dimensions": value}))
    assert Encoder.load(tmp_path / "model").dimensions == ()
