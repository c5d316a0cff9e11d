"""The back-translation baseline: NT-Xent of one encoder's two sides through f, near its start."""

import numpy as np
import pytest
import torch

from sentloom.encoder import Encoder
from sentloom.methods.contrastive_bt import ContrastiveBt, ContrastiveBtOptions
from tests.encoder.small_models import SENTENCES
from tests.methods import oracles
from tests.methods.conftest import OTHERS, changed, optimise, pairs_batch, states_of


def contrastive_bt(encoder, **options):
    torch.manual_seed(0)
    return ContrastiveBt(encoder, ContrastiveBtOptions(**({"head_width": 24, "temperature": 0.1} | options))).double()


def sides(method, folder, batch):
    f = [(layer.weight.detach().numpy(), layer.bias.detach().numpy()) for layer in (method.f[0], method.f[2])]
    return [
        [oracles.mlp(f, layers[-1][0]) for layers in oracles.hidden_states(folder, method.encoder.tokenize(texts))]
        for texts in (batch.first, batch.second)
    ]


def test_the_loss_equals_the_formula_over_transformers_own_states(encoder, model_folder):
    method, batch = contrastive_bt(encoder).eval(), pairs_batch()
    loss = method.loss(method.embed(batch), batch).item()
    assert loss == pytest.approx(oracles.nt_xent(*sides(method, model_folder("bert"), batch), 0.1), rel=1e-8)


def test_duplicates_are_no_negatives(encoder, model_folder):
    batch = pairs_batch([*SENTENCES[:3], OTHERS[0].upper()], [*OTHERS[:3], "x"])  # row 3 is row 0's back-translation
    masked, plain = contrastive_bt(encoder).eval(), contrastive_bt(encoder, mask_duplicates=False).eval()
    x, y = sides(masked, model_folder("bert"), batch)
    expected = oracles.nt_xent(x, y, 0.1, lambda i, j: {i, j} == {0, 3})
    assert masked.loss(masked.embed(batch), batch).item() == pytest.approx(expected, rel=1e-8)
    assert plain.loss(plain.embed(batch), batch).item() == pytest.approx(oracles.nt_xent(x, y, 0.1), rel=1e-8)


def test_the_regulariser_is_that_of_self_guided(encoder):
    """The paper's baseline is its own method in all but the positives."""
    assert ContrastiveBtOptions().regularizer == 0.1
    method, plain = contrastive_bt(encoder), contrastive_bt(encoder, regularizer=0)
    with torch.no_grad():
        encoder.backbone.model.encoder.layer[1].output.dense.bias[:2] += torch.tensor([3.0, -4.0])
    batch = pairs_batch()
    with_it, without = (m.eval().total_loss(m.embed(batch), batch).item() for m in (method, plain))
    assert with_it - without == pytest.approx(0.1 * 25)


def test_the_start_is_kept_and_both_sides_train_one_encoder(encoder):
    method = contrastive_bt(encoder, regularizer=0)
    encoder.backbone.dropout = 0.0
    before = states_of(method)
    losses = optimise(method, [pairs_batch()] * 15, rate=3e-3)
    assert losses[-1] < losses[0]
    moved = changed(method, before)
    assert {name.split(".")[0] for name in moved} == {"encoder", "f"}
    assert all(p.grad is None for p in method.start.parameters())
    assert method.finished() is encoder
    assert len(encoder.heads) == 0


def test_no_head_compares_the_vectors_themselves(encoder):
    method = contrastive_bt(encoder, head_width=None).eval()
    torch.testing.assert_close(method.embed(pairs_batch())[1], encoder(encoder.tokenize(OTHERS), raw=True))


def test_without_head_and_regulariser_it_is_the_baseline_of_the_bootstrapped_paper(encoder, model_folder):
    """2(n - 1) negatives: of n equal pairs, each of the 2n vectors has 1 + 2(n - 1) candidates."""
    options = {"head_width": None, "regularizer": 0, "mask_duplicates": False}
    for n in (2, 5):
        ones = torch.ones(n, 32, dtype=torch.float64)
        loss = contrastive_bt(encoder, **options).loss((ones, ones), pairs_batch(["a"] * n, ["b"] * n)).item()
        assert loss == pytest.approx(np.log(1 + 2 * (n - 1)))
    method, batch = contrastive_bt(encoder, **options).eval(), pairs_batch()
    x, y = (
        [layers[-1][0] for layers in oracles.hidden_states(model_folder("bert"), encoder.tokenize(texts))]
        for texts in (batch.first, batch.second)
    )
    assert method.loss(method.embed(batch), batch).item() == pytest.approx(oracles.nt_xent(x, y, 0.1), rel=1e-8)


def test_every_family_trains(family, model_folder):
    method = ContrastiveBt(Encoder.load(model_folder(family)), ContrastiveBtOptions(head_width=8))
    assert np.isfinite(optimise(method, [pairs_batch()] * 2)).all()
