"""SBERT-WK equals its formulas, computed token by token and layer by layer in float64."""

import numpy as np
import pytest
import torch

from sentloom.encoder import Encoder
from sentloom.encoder.packing import pack
from sentloom.errors import ModelError
from sentloom.lab.baselines.wk_pooling import layer_weights, sentences_of, wk_pooling, words_of
from sentloom.lab.init_model import Size, build_model
from tests.encoder.small_models import SENTENCES


def cosine(x, y):
    return x @ y / np.linalg.norm(x) / np.linalg.norm(y)


def slow_word(states):
    """Return the vector and weight of one token with states (K, d)."""
    count = len(states)
    away, novelty = np.zeros(count), np.zeros(count)
    for i in range(count):
        near = [states[j] for j in range(max(0, i - 2), min(count, i + 3)) if j != i]
        away[i] = 1 / np.mean([cosine(states[i], other) for other in near])
        r = np.linalg.qr(np.stack([*near, states[i]], axis=1), mode="r")[:, -1]
        novelty[i] = abs(r[-1]) / np.linalg.norm(r)
    weights = 0.5 * away / away.sum() + 0.5 * novelty / novelty.sum()
    return weights @ states, np.var([cosine(states[i], states[i + 1]) for i in range(count - 1)])


def slow_sentence(states):
    """Pool one sentence with states (L, K, d), without its last token."""
    words, variances = zip(*[slow_word(token) for token in states[:-1]], strict=True)
    return np.array(variances) @ np.array(words) / sum(variances)


def like_layers(length, count, seed):
    """Make states that change gradually from layer to layer."""
    rng = np.random.default_rng(seed)
    steps = rng.normal(size=(length, count, 16)) * 0.5
    return rng.normal(size=(length, 1, 16)) + np.cumsum(steps, axis=1)


@pytest.mark.parametrize("count", [3, 4, 9])
def test_sentences_equal_the_formulas(count):
    for seed in range(5):
        states = like_layers(7, count, seed)
        words, salience = words_of(torch.from_numpy(states))
        pooled = sentences_of(words[None], salience[None])[0].numpy()
        assert pooled == pytest.approx(slow_sentence(states), rel=1e-6)


def test_the_encoder_pools_its_layers(tmp_path):
    build_model(tmp_path / "deep", "bert", SENTENCES * 3, size=Size(vocabulary=120, layers=7, width=32))
    base = Encoder.load(tmp_path / "deep")
    for block in base.backbone.blocks:  # blocks with small random weights change a state too little to tell apart
        block.output.dense.weight.data *= 20
    model = wk_pooling(base)
    assert str(model.pooling) == "wk@4,5,6,7"
    for sentence, vector in zip(SENTENCES, model.encode(SENTENCES), strict=True):
        packed = pack(base.tokenize([sentence]), np.array([0]))
        with torch.inference_mode():
            states = torch.stack(base.backbone.states(packed, (4, 5, 6, 7)), dim=1).double().numpy()
        assert vector == pytest.approx(slow_sentence(states), rel=1e-3, abs=1e-4)


def test_shallow_models_pool_their_last_three_layers(small):
    model = wk_pooling(small)
    assert str(model.pooling) == "wk@1,2,3"
    vectors = model.encode([*SENTENCES, "", SENTENCES[0]])
    assert np.isfinite(vectors).all()
    assert np.array_equal(vectors[0], vectors[-1])


def test_equal_zero_or_opposite_layers_have_finite_weights():
    equal = torch.ones(1, 4, 4, dtype=torch.float64)
    assert layer_weights(equal).sum().item() == pytest.approx(1)
    assert layer_weights(torch.zeros(1, 4, 4, dtype=torch.float64)).tolist() == [[0.25] * 4]
    opposite = torch.tensor([[[1.0, -1, 1], [-1, 1, -1], [1, -1, 1]]], dtype=torch.float64)
    weights = layer_weights(opposite)
    assert torch.isfinite(weights).all()
    assert (weights >= 0).all()
    words, salience = words_of(torch.ones(2, 3, 5, dtype=torch.float64))
    assert sentences_of(words[None], salience[None]).tolist() == [pytest.approx([1.0] * 5)]


def test_fingerprint_heads_and_save(small, tmp_path):
    assert small.fingerprint() != wk_pooling(small).fingerprint()
    with pytest.raises(ModelError, match="no module"):
        wk_pooling(small).save(tmp_path / "model")
    assert list(tmp_path.iterdir()) == []
