"""Listwise distillation: the loss by loops, and a student that learns its teacher's ranking."""

import numpy as np
import pytest
import torch

from sentloom.data.batches import Batches
from sentloom.data.shapes import Shape
from sentloom.methods.distill import Distill, DistillOptions
from tests.methods.conftest import optimise
from tests.methods.oracles import cos
from tests.methods.test_cross_encoder import ROWS, slowly
from tests.small_data import build_dataset


def probabilities(scores):
    shares = np.exp(np.array(scores) - max(scores))
    return shares / shares.sum()


def test_the_loss_equals_the_formula(encoder, teacher):
    options = DistillOptions(teacher=teacher, negatives=2, temperature=0.1, teacher_temperature=0.5)
    method = Distill(encoder, options).double().eval()
    batch = Batches(build_dataset(Shape.TRIPLETS, ROWS), 8, seed=0).batch(0)
    sampled = method.sampled(batch)
    t, total = slowly(batch, sampled, teacher), 0.0
    with torch.no_grad():
        for row in range(8):
            there = ~np.isnan(t[row])
            texts = [batch.first[row], *np.array([batch.second[row], *sampled[row]])[there]]
            q, *others = (encoder([encoder.tokenize([str(text)])[0]], raw=True)[0].numpy() for text in texts)
            p_s, p_t = probabilities([cos(q, other) / 0.1 for other in others]), probabilities(t[row][there] / 0.5)
            total += sum(a * np.log(a / b) for a, b in zip(p_t, p_s, strict=True))
        loss = method.loss(method.embed(batch), batch).item()
    assert loss == pytest.approx(total / 8, rel=1e-4)  # the teacher computes in float32


def test_it_learns_the_ranking(encoder, teacher, tmp_path):
    data = build_dataset(Shape.TRIPLETS, ROWS)
    encoder.backbone.dropout = 0.0
    method = Distill(encoder, DistillOptions(teacher=teacher, negatives=3, teacher_temperature=1.0))
    method.prepare(data, tmp_path)
    batch = Batches(data, 8, seed=0).batch(0)
    losses = optimise(method, [batch] * 40, rate=3e-3)
    assert min(losses[-5:]) < losses[0] / 2
