"""Accuracy and perplexity equal a computation of one instance at a time."""

import math

import numpy as np
import pytest

from sentloom.data.batches import Batches
from sentloom.lab.writer_training import OFFICIAL_BATCH, measure, perplexity
from tests.writing.oracles import slow_losses
from tests.writing.small_synthesizers import triplets


def test_the_measures_by_hand(model):
    data = triplets(30)
    scores = measure(model, data)
    slow = slow_losses(model, Batches(data, 30, seed=0).batch(0))
    true, false = model.verdict_ids
    right = [
        bool(first[true] > first[false]) == (instance.target[0] == true)
        for _, instance, first in slow
        if instance.judged
    ]
    written = [(loss, len(instance.target)) for loss, instance, _ in slow if not instance.judged]
    perplexity = math.exp(sum(loss for loss, _ in written) / sum(tokens for _, tokens in written))
    assert scores.accuracy == pytest.approx(np.mean(right))
    assert scores.perplexity == pytest.approx(perplexity, rel=1e-4)
    assert scores.rows == 60
    assert scores.score == pytest.approx(100 * scores.accuracy - 10 * scores.perplexity)


def test_measuring_leaves_the_model_as_it_was(model):
    model.train()
    assert measure(model, triplets(3)) == measure(model, triplets(3))  # without dropout
    assert model.training


def test_perplexity_by_batch_is_the_mean_of_its_batches():
    short, long = [(2.0, 1)] * OFFICIAL_BATCH, [(10.0, 10)] * OFFICIAL_BATCH
    assert perplexity(short + long) == pytest.approx(math.exp((2 + 10) / (1 + 10)))
    assert perplexity(short + long, "batch") == pytest.approx(math.exp((2 + 1) / 2))
    assert perplexity(short + long[:1], "batch") == pytest.approx(math.exp((2 + 1) / 2))
