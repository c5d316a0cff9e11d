"""Bootstrapped: the loss by loops, the moving average in closed form, the predictor's parts counted."""

import numpy as np
import pytest
import torch

from sentloom.encoder import Encoder
from sentloom.methods.bootstrapped import Bootstrapped, BootstrappedOptions, predictor
from tests.encoder.small_models import SENTENCES
from tests.methods import oracles
from tests.methods.conftest import OTHERS, changed, optimise, pairs_batch, states_of, texts_batch


def bootstrapped(encoder, **options):
    torch.manual_seed(0)
    return Bootstrapped(encoder, BootstrappedOptions(**({"predictor_width": 2} | options))).double()


def move(encoder, size=0.05):
    """Away from the target, which starts as a copy."""
    generator = torch.Generator().manual_seed(9)
    with torch.no_grad():
        for parameter in encoder.parameters():
            parameter.add_(size * torch.randn(parameter.shape, generator=generator, dtype=parameter.dtype))


def predicted(layers, x):
    """The predictor of one view, (n, d): BatchNorm over that view alone, by the biased variance."""
    for layer in layers:
        if isinstance(layer, torch.nn.Linear):
            x = x @ layer.weight.detach().numpy().T + layer.bias.detach().numpy()
        elif isinstance(layer, torch.nn.BatchNorm1d):
            scale, shift = layer.weight.detach().numpy(), layer.bias.detach().numpy()
            x = (x - x.mean(axis=0)) / np.sqrt(((x - x.mean(axis=0)) ** 2).mean(axis=0) + layer.eps) * scale + shift
        else:
            x = np.maximum(x, 0)
    return x


@pytest.mark.parametrize("form", [{}, {"predictor_depth": 3, "batch_norm": "first"}])
def test_the_loss_equals_the_formula(encoder, form):
    method, batch = bootstrapped(encoder, **form), pairs_batch()
    move(encoder)
    encoder.backbone.dropout = 0.0
    method.train()
    loss = method.loss(method.embed(batch), batch).item()
    with torch.no_grad():
        h1, h2 = (np.stack([encoder([ids], raw=True)[0] for ids in encoder.tokenize(v)]) for v in (SENTENCES, OTHERS))
        t1, t2 = (
            np.stack([method.target([ids], raw=True)[0] for ids in encoder.tokenize(v)]) for v in (SENTENCES, OTHERS)
        )
    z1, z2 = predicted(method.predictor, h1), predicted(method.predictor, h2)
    expected = np.mean([-oracles.cos(z1[i], t2[i]) / 2 - oracles.cos(z2[i], t1[i]) / 2 for i in range(len(h1))])
    assert loss == pytest.approx(expected, rel=1e-9)
    # not the statistics of both views together, nor each view with its own target
    together = predicted(method.predictor, np.concatenate([h1, h2]))
    n = len(h1)
    joint = np.mean([-oracles.cos(together[i], t2[i]) / 2 - oracles.cos(together[n + i], t1[i]) / 2 for i in range(n)])
    own = np.mean([-oracles.cos(z1[i], t1[i]) / 2 - oracles.cos(z2[i], t2[i]) / 2 for i in range(n)])
    assert abs(loss - joint) > 1e-6
    assert abs(loss - own) > 1e-6


def test_batch_norm_sees_each_view_by_itself(encoder):
    method, batch = bootstrapped(encoder).train(), pairs_batch()
    embeddings = tuple(vectors.detach() for vectors in method.embed(batch))
    norm, first = method.predictor[1], method.predictor[0]
    method.loss(embeddings, batch)
    assert norm.num_batches_tracked == 2
    running = torch.zeros(64, dtype=torch.float64)
    for view in embeddings[:2]:
        running = 0.9 * running + 0.1 * first(view).mean(dim=0)
    torch.testing.assert_close(norm.running_mean, running)


@pytest.mark.parametrize("delta", [0.0, 0.5, 0.999, 1.0])
def test_the_moving_average_has_the_closed_form(encoder, delta):
    method = bootstrapped(encoder, momentum=delta)
    start = [p.detach().clone() for p in method.target.parameters()]
    history = []
    for step in range(6):
        optimise(method, [pairs_batch(key=(0, step))], rate=1e-3)
        history.append([p.detach().clone() for p in encoder.parameters()])
    n = len(history)
    for i, xi in enumerate(method.target.parameters()):
        expected = delta**n * start[i] + (1 - delta) * sum(delta ** (n - 1 - t) * history[t][i] for t in range(n))
        torch.testing.assert_close(xi.detach(), expected, rtol=1e-12, atol=1e-14)


def test_the_target_gets_no_gradient_and_moves_only_after_a_step(encoder):
    method, batch = bootstrapped(encoder).train(), pairs_batch()
    before = states_of(method.target)
    method.loss(method.embed(batch), batch).backward()
    assert all(p.grad is None and not p.requires_grad for p in method.target.parameters())
    assert not changed(method.target, before)
    assert all(p.grad is not None for p in method.predictor.parameters())
    optimise(method, [batch])
    assert changed(method.target, before)
    assert all(p.grad is None for p in method.target.parameters())


def test_both_directions_have_a_gradient(encoder):
    method, batch = bootstrapped(encoder).train(), pairs_batch()
    online1, online2, h1, h2 = (x.detach().requires_grad_() for x in method.embed(batch))
    method.loss((online1, online2, h1, h2), batch).backward()
    assert online1.grad.abs().max() > 0
    assert online2.grad.abs().max() > 0
    assert h1.grad is None
    assert h2.grad is None


def test_the_targets_dropout_is_off_unless_asked_for(encoder):
    batch = pairs_batch()
    off, on = bootstrapped(encoder).train(), bootstrapped(encoder, target_dropout=True).train()
    assert torch.equal(off.embed(batch)[2], off.embed(batch)[2])
    assert not torch.equal(on.embed(batch)[2], on.embed(batch)[2])
    assert not torch.equal(off.embed(batch)[0], off.embed(batch)[0])


def test_the_scale_of_the_official_code_is_four_times_the_gradient(encoder):
    batch = pairs_batch()
    encoder.backbone.dropout = 0.0
    gradients = []
    for scale in (1.0, 4.0):
        method = bootstrapped(encoder, scale=scale).train()
        method.zero_grad()
        embeddings = method.embed(batch)
        loss = method.loss(embeddings, batch)
        loss.backward()
        gradients.append([p.grad.clone() for p in method.parameters() if p.grad is not None])
    for one, four in zip(*gradients, strict=True):
        torch.testing.assert_close(four, 4 * one)
    # the official loss, mean of (2 - 2 cos) + (2 - 2 cos), less its constant 4
    online1, online2, h1, h2 = embeddings
    z1, z2 = method.predictor(online1), method.predictor(online2)
    cosine = torch.nn.functional.cosine_similarity
    official = ((2 - 2 * cosine(z1, h2)) + (2 - 2 * cosine(z2, h1))).mean()
    assert loss.item() == pytest.approx(official.item() - 4)


def count(module):
    return sum(p.numel() for p in module.parameters())


def test_the_predictors_of_paper_and_official_code():
    d = 768
    with torch.device("meta"):
        paper, official = predictor(d, 1, 8, "all"), predictor(d, 3, 10, "first")
    # d -> 8d -> 8d -> d with biases, two BatchNorms of a scale and a shift
    h = 8 * d
    assert count(paper) == (d * h + h) + 2 * h + (h * h + h) + 2 * h + (h * d + d)
    assert round(count(paper) / 1e6) == 47
    h = 10 * d
    assert count(official) == 3 * ((d * h + h) + 2 * h + (h * h + h) + (h * d + d))
    assert round(count(official) / 1e6) == 212
    kinds = [type(layer).__name__ for layer in paper]
    assert kinds == ["Linear", "BatchNorm1d", "ReLU", "Linear", "BatchNorm1d", "ReLU", "Linear"]
    kinds = [type(layer).__name__ for layer in official]
    assert kinds == ["Linear", "BatchNorm1d", "ReLU", "Linear", "ReLU", "Linear"] * 3


def test_texts_are_their_own_second_view(encoder):
    online1, online2, _, h2 = bootstrapped(encoder).eval().embed(texts_batch())
    torch.testing.assert_close(online1, online2)
    torch.testing.assert_close(online1, h2)


def test_every_family_trains(family, model_folder):
    encoder = Encoder.load(model_folder(family), pooling="mean")
    method = Bootstrapped(encoder, BootstrappedOptions(predictor_width=1, momentum=0.9))
    assert np.isfinite(optimise(method, [pairs_batch()] * 2)).all()
    assert method.finished() is encoder


def test_heads_of_the_encoder_are_averaged_too(encoder):
    from sentloom.encoder.heads import Projection

    encoder.heads.append(Projection(32, 8))
    method = bootstrapped(encoder, momentum=0.5)
    before = states_of(method.target)
    optimise(method, [pairs_batch()])
    assert "heads.0.linear.weight" in changed(method.target, before)
    assert method.embed(pairs_batch())[2].shape == (len(SENTENCES), 8)
