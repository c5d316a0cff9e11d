"""MarginMSE: the loss by loops, and a student that learns its teacher's margins."""

import numpy as np
import pytest
import torch

from sentloom.data.batches import Batches
from sentloom.data.shapes import Shape
from sentloom.methods.margin_mse import MarginMse, MarginMseOptions
from tests.methods.conftest import optimise
from tests.methods.oracles import cos
from tests.methods.test_cross_encoder import ROWS, slowly
from tests.small_data import build_dataset


@pytest.mark.parametrize(("similarity", "tau"), [("cosine", 0.05), ("cosine", 1.0), ("dot", 1.0)])
def test_the_loss_equals_the_formula(encoder, teacher, similarity, tau):
    options = MarginMseOptions(teacher=teacher, negatives=2, similarity=similarity, temperature=tau)
    method = MarginMse(encoder, options).double().eval()
    batch = Batches(build_dataset(Shape.TRIPLETS, ROWS), 8, seed=0).batch(0)
    sampled = method.sampled(batch)
    t = slowly(batch, sampled, teacher)
    errors = []
    with torch.no_grad():
        for row in range(8):
            texts = [batch.first[row], batch.second[row], *sampled[row]]
            q, *others = (encoder([encoder.tokenize([text])[0]], raw=True)[0].numpy() for text in texts)
            s = [(cos(q, other) if similarity == "cosine" else float(q @ other)) / tau for other in others]
            errors += [(s[0] - s[k]) - (t[row, 0] - t[row, k]) for k in (1, 2) if not np.isnan(t[row, k])]
        loss = method.loss(method.embed(batch), batch).item()
    assert loss == pytest.approx(np.mean(np.square(errors)), rel=1e-4)  # the teacher computes in float32


def test_it_learns_the_margins(encoder, teacher, tmp_path):
    data = build_dataset(Shape.TRIPLETS, ROWS)
    encoder.backbone.dropout = 0.0
    method = MarginMse(encoder, MarginMseOptions(teacher=teacher, negatives=3, temperature=0.1))
    method.prepare(data, tmp_path)
    batch = Batches(data, 8, seed=0).batch(0)
    losses = optimise(method, [batch] * 40, rate=3e-3)
    assert min(losses[-5:]) < losses[0] / 2
