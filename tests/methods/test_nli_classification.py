"""SBERT's classification objective against its formula."""

import numpy as np
import pytest
import torch

from sentloom.data.batches import Batch
from sentloom.methods.nli_classification import NliClassification, NliClassificationOptions
from tests.encoder.small_models import SENTENCES
from tests.methods.conftest import OTHERS, optimise


def test_nli_classification_equals_the_formula_and_learns(encoder):
    torch.manual_seed(0)
    method = NliClassification(encoder, NliClassificationOptions()).double().eval()
    labels = ["entailment", "neutral", "contradiction", "not_entailment"] * 2
    texts = {"premise": SENTENCES, "hypothesis": OTHERS}
    batch = Batch(texts, np.arange(8), np.arange(8), (0, 0), labels)
    embeddings = method.embed(batch)
    u, v = (vectors.detach().numpy() for vectors in embeddings)
    logits = np.concatenate([u, v, abs(u - v)], axis=1) @ method.W_t.weight.detach().numpy().T
    shares = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    right = [0, 1, 2, 1] * 2
    expected = -np.log(shares[np.arange(8), right]).mean()
    assert method.loss(embeddings, batch).item() == pytest.approx(expected, rel=1e-9)
    losses = optimise(method, [batch] * 20)
    assert losses[-1] < losses[0]
    assert batch.part(2, 4).labels == labels[2:4]
