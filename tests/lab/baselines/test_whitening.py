"""Whitening gives mean 0 and covariance 1, equals the formula in float64, and saves a folder that others can load."""

import numpy as np
import pytest

from sentloom.encoder import Encoder
from sentloom.encoder.heads import Projection
from sentloom.errors import InputError
from sentloom.lab.baselines.whitening import Whitened, whiten

RANK = 31  # of 32: a final layer norm without gains makes the numbers of a state, and so of their mean, sum to 0


def unit(vectors):
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def raw_vectors(encoder, texts):
    plain = encoder.copy()
    plain.unit_length = False
    return plain.encode(texts).astype(np.float64)


def slow_whitening(vectors, asked, dimension):
    """Whiten as in the paper: x -> (x - mu) U diag(s^-1/2), truncated, normalised."""
    u, s, _ = np.linalg.svd(np.cov(vectors.T))
    return unit((asked - vectors.mean(axis=0)) @ (u @ np.diag(s**-0.5))[:, :dimension])


@pytest.mark.parametrize("unit_length", [True, False])
@pytest.mark.parametrize("dimension", [None, 5])
def test_whitening_equals_the_formula(small, texts, unit_length, dimension):
    base = small.copy()
    base.unit_length = unit_length  # whitening comes before it, whatever the base does
    repeated = texts + texts[:40]  # repeated texts count repeatedly
    fitted = whiten(base, repeated, dimension)
    vectors = raw_vectors(small, repeated)
    assert fitted.dimension == (dimension or RANK)
    assert fitted.encode(texts) == pytest.approx(slow_whitening(vectors, vectors[:150], fitted.dimension), abs=2e-4)


def test_before_normalisation_the_mean_is_0_and_the_covariance_is_the_identity(small, texts):
    fitted = whiten(small, texts, block=37)
    vectors = raw_vectors(fitted, texts)
    assert vectors.mean(axis=0) == pytest.approx(np.zeros(RANK), abs=1e-4)
    assert np.cov(vectors.T) == pytest.approx(np.eye(RANK), abs=1e-4)


def test_the_folder_loads_in_sentence_transformers_and_in_sentloom(small, texts, tmp_path):
    from sentence_transformers import SentenceTransformer

    base = small.copy()
    base.heads.append(Projection(32, 24, activation="tanh"))
    fitted = whiten(base, texts, 16)
    fitted.save(tmp_path / "model")
    assert [len(base.heads), len(fitted.heads)] == [1, 2]
    theirs = SentenceTransformer(str(tmp_path / "model"), device="cpu").encode(texts)
    assert theirs == pytest.approx(fitted.encode(texts), abs=1e-5)
    again = Encoder.load(tmp_path / "model")
    assert again.fingerprint() == fitted.fingerprint()


def test_the_base_is_unchanged(small, texts):
    before = small.fingerprint()
    whiten(small, texts)
    assert small.fingerprint() == before


def test_too_few_texts_are_refused(small, texts):
    """33 texts in 32 dimensions would all have the same distance."""
    distinct = list(dict.fromkeys(texts))
    with pytest.raises(InputError, match=r"only 33 distinct texts\. Expected at least 34 for 32 dimensions"):
        whiten(small, distinct[:33] * 3)
    assert whiten(small, distinct[:33], 8).dimension == 8


def test_directions_without_variance_are_left_out(small, texts):
    base = small.copy()
    head = Projection(32, 12, bias=False)
    head.linear.weight.data[6:] = head.linear.weight.data[:6]  # twelve numbers, six directions
    base.heads.append(head)
    fitted = whiten(base, texts)
    assert fitted.dimension == 6
    assert np.isfinite(fitted.encode(texts)).all()
    with pytest.raises(InputError, match=r"differ in only 6 directions\. Expected at least 7"):
        whiten(base, texts, 7)


def test_fitted_on_target_text(small, texts):
    model = Whitened(small, 8)
    assert np.array_equal(model.encode(texts), whiten(small, texts, 8).encode(texts))
    assert model.fingerprint() != Whitened(small).fingerprint()
    assert model.fit(texts).fingerprint() != model.fit(texts[:100]).fingerprint()
