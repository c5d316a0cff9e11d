"""TF-IDF equals its formula."""

import math
from math import log

import numpy as np
import pytest

from sentloom.errors import InputError
from sentloom.lab.baselines.words import TfIdf

TEXTS = ["a cat and a dog", "A cat!", "birds"]


def expected(text, words, texts):
    """Compute tf * (ln((1 + n) / (1 + df)) + 1), normalised, in float64."""
    tokens = text.lower().replace("!", "").split()
    df = [sum(word in other.lower().replace("!", "").split() for other in texts) for word in words]
    vector = np.array([tokens.count(w) * (log((1 + len(texts)) / (1 + f)) + 1) for w, f in zip(words, df, strict=True)])
    length = np.linalg.norm(vector)
    return vector / length if length else vector


def test_vectors_follow_the_formula():
    fitted = TfIdf().fit(TEXTS)
    words = ["a", "and", "birds", "cat", "dog"]
    asked = [*TEXTS, "a zebra", "zebra", ""]
    vectors = fitted.encode(asked)
    assert (vectors.dtype, vectors.shape, fitted.dimension) == (np.float32, (6, 5), 5)
    assert vectors == pytest.approx(np.array([expected(text, words, TEXTS) for text in asked]), abs=1e-6)


def test_many_words_are_projected_to_few_directions_that_keep_the_cosines():
    texts = [f"word{i} word{i + 1} both{i % 3}" for i in range(60)]
    fitted, whole = TfIdf(width=50).fit(texts), TfIdf(width=1000).fit(texts)
    assert (fitted.dimension, whole.dimension) == (50, 64)
    few, all_words = (model.encode(texts).astype(float) for model in (fitted, whole))
    assert few.shape == (60, 50)
    assert (few @ few.T) == pytest.approx(all_words @ all_words.T, abs=0.15)
    assert np.array_equal(few, TfIdf(width=50).fit(texts).encode(texts))


def test_an_unfitted_baseline_is_fitted_on_the_encoded_texts():
    assert np.array_equal(TfIdf().encode(TEXTS), TfIdf().fit(TEXTS).encode(TEXTS))


def test_different_fits_have_different_fingerprints():
    whole, part = TfIdf().fit(TEXTS), TfIdf().fit(TEXTS[:2])
    assert whole.fingerprint() == TfIdf().fit(TEXTS).fingerprint()
    assert len({whole.fingerprint(), part.fingerprint(), TfIdf().fingerprint(), TfIdf(9).fingerprint()}) == 4


def test_what_it_refuses():
    with pytest.raises(InputError, match="contain no words"):
        TfIdf().fit(["", "!"])
    with pytest.raises(InputError, match="item 0"):
        TfIdf().fit(TEXTS).encode([None])


def test_binary_vectors_are_those_of_the_words_that_occur():
    """Cosine of binary bags: shared words over the root of the product of both counts of distinct words."""
    first, second = TfIdf(binary=True).encode(["a red red kite", "the red kite flies"])
    assert float(first @ second) == pytest.approx(2 / math.sqrt(3 * 4))
    assert TfIdf(binary=True).fingerprint() != TfIdf().fingerprint()
    assert TfIdf(binary=True).fit(["a b"]).fingerprint() != TfIdf().fit(["a b"]).fingerprint()
