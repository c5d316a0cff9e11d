"""Pairs are scored once: the cache has them by content."""

from dataclasses import replace

import numpy as np
import pytest

from sentloom.search.cross_encoder import CrossEncoder, pair_scores
from sentloom.search.vectors import VectorCache
from tests.encoder.small_models import SENTENCES
from tests.search.small_cross_encoders import build_cross_encoder

PAIRS = [(first, second) for first in SENTENCES[:3] for second in SENTENCES[:3]]


@pytest.fixture
def folder(tmp_path):
    return build_cross_encoder(tmp_path / "model")


@pytest.fixture
def counted(folder):
    """A cross-encoder that counts what it computes."""
    model, count = CrossEncoder.load(folder), []

    def logits(arrays):
        count.append(len(arrays["input_ids"]))
        return model.logits(arrays)

    return replace(model, logits=logits), count


def test_what_was_scored_is_read_in_any_order(counted, tmp_path):
    model, count = counted
    cache = VectorCache(tmp_path / "cache")
    first = pair_scores(model, [*PAIRS, PAIRS[2]], cache)
    assert sum(count) == len(PAIRS)
    assert first[2] == first[-1]
    np.testing.assert_allclose(first[:-1], model.score(PAIRS), atol=2e-5)
    count.clear()
    np.testing.assert_array_equal(pair_scores(model, PAIRS[::-1], cache), first[-2::-1])
    assert not count
    pair_scores(model, [*PAIRS, ("a", "b")], cache)
    assert count == [1]
    assert pair_scores(model, [], cache).shape == (0,)


def test_texts_that_join_to_the_same_are_different_pairs(counted, tmp_path):
    model, _ = counted
    pairs = [("a man", " is"), ("a ", "man is"), ("", "a man is"), ("5 a", " man is")]
    scores = pair_scores(model, pairs, VectorCache(tmp_path / "cache"))
    np.testing.assert_allclose(scores, model.score(pairs), atol=2e-5)


def test_models_do_not_share_scores(counted, tmp_path):
    model, _ = counted
    other = CrossEncoder.load(build_cross_encoder(tmp_path / "other", seed=1))
    cache = VectorCache(tmp_path / "cache")
    pair_scores(model, PAIRS, cache)
    np.testing.assert_allclose(pair_scores(other, PAIRS, cache), other.score(PAIRS), atol=2e-5)


def test_scores_are_cached_in_the_users_cache_by_default(folder, tmp_path, monkeypatch):
    monkeypatch.setenv("SENTLOOM_CACHE", str(tmp_path / "own"))
    model = CrossEncoder.load(folder)
    np.testing.assert_allclose(pair_scores(model, PAIRS), model.score(PAIRS), atol=2e-5)
    assert list((tmp_path / "own/vectors").glob("*/*.safetensors"))
