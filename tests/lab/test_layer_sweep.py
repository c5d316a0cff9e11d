"""The layer sweep against encoders loaded with each layer and pooling."""

import numpy as np
import pytest

from sentloom.encoder import Encoder
from sentloom.evaluation.geometry import ScoredPairs
from sentloom.evaluation.metrics import cosine_of_pairs, spearman
from sentloom.lab.geometry import Sweep, sweep
from tests.encoder.small_models import SENTENCES, build_model_folder


def some_pairs(n=30):
    rng = np.random.default_rng(0)
    left, right = ([SENTENCES[row] for row in rng.integers(0, len(SENTENCES), n)] for _ in range(2))
    return ScoredPairs(left, right, rng.integers(0, 26, n) / 5)


@pytest.fixture(scope="module", params=["bert", "t5"])
def folder(request, tmp_path_factory):
    return build_model_folder(request.param, tmp_path_factory.mktemp(request.param))


def test_every_cell_is_the_score_of_an_encoder_with_that_pooling(folder):
    pairs = some_pairs()
    swept = sweep(Encoder.load(folder), pairs)
    assert (swept.layers, swept.poolings, swept.spearman.shape) == (
        (0, 1, 2, 3),
        ("first", "last", "mean", "max"),
        (4, 4),
    )
    for layer in swept.layers:
        for place, how in enumerate(swept.poolings):
            encoder = Encoder.load(folder, pooling=f"{how}@{layer}")
            cosines = cosine_of_pairs(encoder.encode(pairs.left), encoder.encode(pairs.right))
            assert swept.spearman[layer, place] == pytest.approx(100 * spearman(cosines, pairs.gold), abs=1e-6)


def test_each_distinct_sentence_runs_once_and_training_mode_is_restored(folder, monkeypatch):
    encoder = Encoder.load(folder)
    encoder.train()
    seen = []
    tokenize = encoder.tokenize
    monkeypatch.setattr(encoder, "tokenize", lambda texts: (seen.extend(texts), tokenize(texts))[1])
    first, again = sweep(encoder, some_pairs()), sweep(encoder, some_pairs())
    assert encoder.training  # and yet no dropout:
    assert first.spearman.tolist() == again.spearman.tolist()
    assert len(seen) == 2 * len(set(seen))


def test_best_names_layer_and_pooling():
    swept = Sweep((0, 1), ("first", "mean"), np.array([[1.0, 5.0], [7.5, -9.0]]))
    assert swept.best == (1, "first", 7.5)
