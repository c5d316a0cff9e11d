"""Supervised contrastive learning from labelled texts."""

import numpy as np
import pytest
import torch

from sentloom.data.batches import Batch
from sentloom.methods.supervised import Supervised, SupervisedOptions
from tests.encoder.small_models import SENTENCES
from tests.methods.conftest import optimise
from tests.test_losses import oracle_supervised

LABELS = list("aabbcaab")


def batch(texts=SENTENCES, labels=LABELS, key=(0, 0)):
    n = len(labels)
    return Batch({"text": texts[:n]}, np.arange(n), np.arange(n), key, labels)


def build(encoder, **options):
    return Supervised(encoder, SupervisedOptions(**options)).double().eval()


@pytest.mark.parametrize("below", [False, True])
def test_it_equals_the_formula(encoder, below):
    method = build(encoder, temperature=0.1, positives_below=below)
    (z,) = method.embed(batch())
    expected = oracle_supervised(z.tolist(), LABELS, 0.1, below)
    assert method.loss((z,), batch()).item() == pytest.approx(expected, rel=1e-9)


def test_with_two_views_every_row_is_its_own_positive(encoder):
    method = build(encoder, temperature=0.1, dropout_views=2)
    labels = list("abcdefgh")
    method.train()
    z, other = method.embed(batch(labels=labels))
    assert not torch.equal(z, other)  # two dropout masks
    expected = oracle_supervised([*z.tolist(), *other.tolist()], labels * 2, 0.1, below=False)
    assert method.loss((z, other), batch(labels=labels)).item() == pytest.approx(expected, rel=1e-9)
    assert expected > 0


def test_equal_texts_are_neither_positives_nor_negatives(encoder):
    texts = [*SENTENCES[:3], f" {SENTENCES[0].upper()}", SENTENCES[1], *SENTENCES[5:8]]
    rows = batch(texts, list("abbabcca"))
    method = build(encoder, temperature=0.1)
    (z,) = method.embed(rows)
    skip = {(0, 3), (3, 0), (1, 4), (4, 1)}
    assert method.masked(rows) == 2
    expected = oracle_supervised(z.tolist(), rows.labels, 0.1, below=False, skip=skip)
    assert method.loss((z,), rows).item() == pytest.approx(expected, rel=1e-9)
    positives, negatives = build(encoder, mask_duplicates=False).pairs(rows)
    assert positives[0].tolist() == [False, False, False, True, False, False, False, True]
    assert (positives | negatives).sum() == 8 * 7


def test_it_learns_labels_that_the_texts_do_not_show(encoder):
    rows = batch(labels=list("abababab"))
    method = Supervised(encoder, SupervisedOptions())
    encoder.backbone.dropout = 0.0
    losses = optimise(method, [rows] * 30)
    assert losses[-1] < 0.2 * losses[0]
    vectors = encoder.encode(SENTENCES)
    cosines = vectors @ vectors.T
    np.fill_diagonal(cosines, -2)
    nearest = cosines.argmax(axis=1)
    assert [rows.labels[at] for at in nearest] == rows.labels
