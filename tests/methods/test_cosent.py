"""CoSENT: the order of scores."""

import numpy as np
import pytest
import torch
from scipy.stats import spearmanr

from sentloom.data.batches import Batch
from sentloom.methods.cosent import Cosent, CosentOptions
from tests.encoder.small_models import SENTENCES
from tests.methods.conftest import OTHERS, optimise
from tests.test_losses import cos, oracle_in_order

SCORES = [0, 5, 2.5, 2.5, 1, 4, 3, 0]


def scored_batch(scores=SCORES, key=(0, 0)):
    n = len(scores)
    texts = {"sentence1": SENTENCES[:n], "sentence2": OTHERS[:n]}
    return Batch(texts, np.arange(n), np.arange(n), key, scores=scores)


def similarities(encoder):
    x, y = encoder.encode(SENTENCES), encoder.encode(OTHERS)
    return (x * y).sum(axis=1) / np.linalg.norm(x, axis=1) / np.linalg.norm(y, axis=1)


def test_it_equals_the_formula(encoder):
    method = Cosent(encoder, CosentOptions()).double().eval()
    x, y = method.embed(scored_batch())
    terms = [cos(u, v) * 20 for u, v in zip(x.tolist(), y.tolist(), strict=True)]
    assert method.loss((x, y), scored_batch()).item() == pytest.approx(oracle_in_order(terms, SCORES), rel=1e-9)


def test_it_learns_an_order(encoder):
    encoder.backbone.dropout = 0.0
    losses = optimise(Cosent(encoder, CosentOptions()), [scored_batch()] * 30, rate=3e-3)
    assert losses[-1] < losses[0]
    assert spearmanr(similarities(encoder), SCORES)[0] > 0.9


def test_equal_scores_change_nothing(encoder):
    method = Cosent(encoder, CosentOptions())
    rows = scored_batch([3.0] * 8)
    loss = method.loss(method.embed(rows), rows)
    loss.backward()
    assert loss.item() == 0
    assert all(torch.count_nonzero(p.grad) == 0 for p in encoder.parameters() if p.grad is not None)


def test_scores_that_differ_in_the_last_digit_are_no_ties(encoder):
    method = Cosent(encoder, CosentOptions()).eval()
    rows = scored_batch([1.0, 1.0 + 1e-12])
    assert method.loss(method.embed(rows), rows).item() > 0
