"""Cheap masks drop the right share, preserve the mean, and stop the gradient of dropped elements."""

import pytest
import torch
from torch import nn

from sentloom.encoder import Encoder
from sentloom.encoder.packing import Dropout, dropout_mask


@pytest.mark.parametrize("p", [0.01, 0.1, 0.5, 0.9])
def test_the_right_share_is_dropped_and_the_mean_preserved(p):
    torch.manual_seed(1)
    mask = dropout_mask(torch.Size([1000, 1001]), p)
    share = (mask == 0).double().mean().item()
    deviation = (p * (1 - p) / mask.numel()) ** 0.5
    assert abs(share - p) < 5 * deviation + 1e-5
    assert mask.double().mean().item() == pytest.approx(1, abs=5 * deviation / (1 - p) + 1e-4)
    assert len(mask.unique()) == 2


def test_a_row_of_any_length_gets_its_own_mask():
    torch.manual_seed(1)
    assert [dropout_mask(torch.Size([n]), 0.5).shape[0] for n in range(6)] == list(range(6))
    long = dropout_mask(torch.Size([4, 4096]), 0.5)
    agreement = (long[0] == long[1]).double().mean().item()  # rows agree only by chance
    assert agreement == pytest.approx(0.5, abs=0.05)


def test_dropped_elements_have_no_gradient_and_the_seed_determines_the_mask():
    x = torch.ones(50, 50, requires_grad=True)
    torch.manual_seed(3)
    y = Dropout(0.4)(x)
    y.sum().backward()
    assert torch.equal(x.grad, y.detach())  # x is all ones: the gradient is the mask
    torch.manual_seed(3)
    assert torch.equal(Dropout(0.4)(x), y)


def test_evaluation_mode_and_p_zero_are_the_identity():
    x = torch.randn(5, 5)
    assert torch.equal(Dropout(0.4).eval()(x), x)
    assert torch.equal(Dropout(0.0)(x), x)
    assert torch.equal(Dropout(1.0)(x), torch.zeros(5, 5))


def test_every_dropout_of_a_loaded_model_is_replaced(model_folders):
    for family in ("bert", "modernbert", "t5"):
        modules = Encoder.load(model_folders[family]).modules()
        assert not any(type(module) is nn.Dropout for module in modules)
