"""`Encoder` for those who know sentence-transformers: its names are few, and `encode` takes what their hands type."""

import numpy as np
import pytest
import torch

import sentloom as library
from tests.encoder.small_models import SENTENCES, build_model_folder

NAMES = [
    *("copy", "device", "dimension", "dimensions", "encode", "export", "fingerprint", "load", "pooling", "precision"),
    *("prompts", "save", "search", "similarity", "system", "tokenize"),
]


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    """The embedded model here and in sentence-transformers."""
    from sentence_transformers import SentenceTransformer

    encoder = library.Encoder.load("embedded", device="cpu")
    folder = tmp_path_factory.mktemp("embedded") / "model"
    encoder.save(folder, golden=False)
    return encoder, SentenceTransformer(str(folder), device="cpu")


@pytest.fixture(scope="module")
def unnormalised(tmp_path_factory):
    return library.Encoder.load(build_model_folder("bert", tmp_path_factory.mktemp("models") / "bert"), device="cpu")


def test_dir_shows_its_own_names(unnormalised):
    assert dir(unnormalised) == NAMES
    assert all(hasattr(unnormalised, name) for name in NAMES)


@pytest.mark.parametrize("texts", [SENTENCES, SENTENCES[0], SENTENCES[:1]])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"normalize_embeddings": True},
        {"normalize_embeddings": False, "show_progress_bar": False},
        {"convert_to_tensor": True},
        {"convert_to_numpy": False},
        {"convert_to_tensor": True, "convert_to_numpy": True, "normalize_embeddings": True},
        {"show_progress_bar": None, "batch_size": 2},
    ],
)
def test_encode_gives_what_sentence_transformers_gives(both, texts, options):
    ours, theirs = (model.encode(texts, **options) for model in both)
    assert type(ours) is type(theirs)
    ours, theirs = (torch.stack(one) if isinstance(one, list) else one for one in (ours, theirs))
    assert tuple(ours.shape) == tuple(theirs.shape)
    np.testing.assert_allclose(ours, theirs, atol=1e-5)


def test_vectors_are_scaled_to_unit_length_if_asked(unnormalised):
    plain = unnormalised.encode(SENTENCES)
    unit = unnormalised.encode(SENTENCES, normalize_embeddings=True)
    assert np.linalg.norm(plain, axis=1) != pytest.approx(1)
    np.testing.assert_allclose(unit, plain / np.linalg.norm(plain, axis=1, keepdims=True), atol=1e-6)


def test_a_tensor_is_on_the_device_of_the_encoder(unnormalised):
    tensor = unnormalised.encode(SENTENCES, convert_to_tensor=True)
    assert (tensor.device, tensor.dtype, tensor.requires_grad) == (unnormalised.device, torch.float32, False)
