"""Optimisers: one step of each by hand, what is decayed, what is frozen, and the norm of gradients."""

import numpy as np
import pytest
import torch
from torch import nn

from sentloom.training.optimizers import (
    build_optimizer,
    gradient_norm,
    learning,
    load_optimizer_state,
    optimizer_state,
    set_rate,
)
from tests.training.small_runs import build, settings

WEIGHT = [[3.0, -1.0], [0.5, 2.0], [-2.0, 1.0]]
GRADIENT = [[0.2, -0.4], [0.1, 0.3], [-0.6, 0.05]]


def matrix():
    """A tiny method: a matrix, which may be decayed, and a vector, which may not, with gradients."""
    module = nn.Linear(2, 3)
    module.weight.data, module.bias.data = torch.tensor(WEIGHT), torch.tensor([1.0, -2.0, 0.5])
    module.weight.grad, module.bias.grad = torch.tensor(GRADIENT), torch.tensor([0.3, 0.3, -0.1])
    return module


@pytest.mark.parametrize("scale_parameter", [False, True])
def test_adafactor_by_hand(scale_parameter):
    """First step: beta2 = 1 - 1^-0.8 = 0, so the moments are the squares' own means; the update is clipped to RMS 1."""
    module = matrix()
    made = settings(optimizer="adafactor", learning_rate=0.01, scale_parameter=scale_parameter)
    build_optimizer(module, made).step()
    weight, gradient = np.array(WEIGHT), np.array(GRADIENT)
    squares = gradient**2 + 1e-30
    row, column = squares.mean(axis=1), squares.mean(axis=0)
    update = gradient / np.sqrt(np.outer(row / row.mean(), column))
    update /= max(1.0, np.sqrt((update**2).mean()))
    # relative: the rate is times the parameter's own size, at least 1e-3
    size = max(1e-3, np.sqrt((weight**2).mean())) if scale_parameter else 1.0
    np.testing.assert_allclose(module.weight.detach(), weight - 0.01 * size * update, rtol=1e-5)
    bias = np.array([1.0, -2.0, 0.5])
    size = np.sqrt((bias**2).mean()) if scale_parameter else 1.0
    np.testing.assert_allclose(module.bias.detach(), bias - 0.01 * size * np.array([1, 1, -1]), rtol=1e-5)


@pytest.mark.parametrize("kind", ["adam", "adamw"])
def test_adam_by_hand(kind):
    """First step: both moments are corrected to g and g^2. adam decays through the gradient, adamw beside it."""
    module = matrix()
    build_optimizer(module, settings(optimizer=kind, learning_rate=0.01, weight_decay=0.1, eps=1e-3)).step()
    weight, gradient = np.array(WEIGHT), np.array(GRADIENT)
    if kind == "adam":
        gradient = gradient + 0.1 * weight
    else:
        weight = weight * (1 - 0.01 * 0.1)
    np.testing.assert_allclose(module.weight.detach(), weight - 0.01 * gradient / (np.abs(gradient) + 1e-3), rtol=1e-5)
    bias, gradient = np.array([1.0, -2.0, 0.5]), np.array([0.3, 0.3, -0.1])
    np.testing.assert_allclose(module.bias.detach(), bias - 0.01 * gradient / (np.abs(gradient) + 1e-3), rtol=1e-5)


@pytest.mark.parametrize("kind", ["adam", "adamw", "adafactor"])
def test_biases_and_norms_are_not_decayed(kind, bert):
    method = build("bootstrapped", bert)
    groups = build_optimizer(method, settings(optimizer=kind, weight_decay=0.1)).param_groups
    decay = {id(p): group["weight_decay"] for group in groups for p in group["params"]}
    names = {name: decay[id(p)] for name, p in learning(method).items()}
    spared = {name for name, value in names.items() if value == 0}
    assert spared == {
        name
        for name in names
        if name.endswith("bias") or "LayerNorm" in name or name == "predictor.1.weight" or name == "predictor.4.weight"
    }
    assert set(names.values()) == {0.0, 0.1}
    assert not any(name.startswith("target") for name in names)


def test_frozen_layers_do_not_learn(bert):
    method = build("self-guided", bert)
    method.encoder.backbone.freeze(1)
    names = set(learning(method))
    assert not any("embeddings" in name or "layer.0." in name or name.startswith("guide") for name in names)
    assert any("layer.1." in name for name in names)


def test_the_rate_of_a_step_is_given_to_every_group():
    optimizer = build_optimizer(matrix(), settings())
    set_rate(optimizer, 0.25)
    assert [group["lr"] for group in optimizer.param_groups] == [0.25, 0.25]


def test_the_norm_of_all_gradients_is_clipped():
    module = matrix()
    before = torch.cat([module.weight.grad.flatten(), module.bias.grad]).clone()
    norm = before.square().sum().sqrt().item()
    assert gradient_norm(module.parameters(), None) == pytest.approx(norm)
    assert gradient_norm(module.parameters(), 10.0) == pytest.approx(norm)
    assert torch.equal(torch.cat([module.weight.grad.flatten(), module.bias.grad]), before)
    assert gradient_norm(module.parameters(), 0.5) == pytest.approx(norm)  # what it was
    after = torch.cat([module.weight.grad.flatten(), module.bias.grad])
    torch.testing.assert_close(after, before * 0.5 / norm, rtol=1e-4, atol=0)
    module.bias.grad = torch.tensor([0.0, float("nan"), 0.0])
    assert np.isnan(gradient_norm(module.parameters(), None))


@pytest.mark.parametrize("kind", ["adam", "adamw", "adafactor"])
def test_a_restored_optimiser_goes_on_with_the_same_bits(kind):
    """Through JSON and tensors, as a checkpoint keeps it."""
    import json

    def steps(module, optimizer, number):
        for step in range(number):
            module.weight.grad = torch.tensor(GRADIENT) * (step + 1)
            module.bias.grad = torch.tensor([0.3, -0.3, 0.1])
            optimizer.step()

    made = settings(optimizer=kind, weight_decay=0.1, learning_rate=0.1)
    one, other = matrix(), matrix()
    first = build_optimizer(one, made)
    steps(one, first, 3)
    tensors, values = optimizer_state(first)
    if kind == "adafactor":
        assert values["0.step"] == 3
    other.load_state_dict(one.state_dict())
    second = build_optimizer(other, made)
    load_optimizer_state(second, {k: v.clone() for k, v in tensors.items()}, json.loads(json.dumps(values)))
    steps(one, first, 2)
    steps(other, second, 2)
    assert torch.equal(one.weight, other.weight)
    assert torch.equal(one.bias, other.bias)
    fresh = matrix()
    fresh.load_state_dict(other.state_dict())
    assert optimizer_state(build_optimizer(fresh, made)) == ({}, {})
