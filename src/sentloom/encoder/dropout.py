"""Dropout with cheap masks on a CPU, where torch draws one number per element, which takes a sixth of a step."""

import torch
from torch import Tensor, nn

RATES = ("dropout", "attention_dropout")
LEVELS = 1 << 16  # a mask takes 16 random bits per element: four elements per 64-bit draw


def dropout_mask(shape: torch.Size, p: float) -> Tensor:
    """Draw a mask from torch's global generator: 0 with probability p (rounded to 1/65,536), else 1 / (1 - p)."""
    dropped = min(round(p * LEVELS), LEVELS - 1)
    draws = torch.empty((shape.numel() + 3) // 4, dtype=torch.int64).random_(-(2**63), 2**63 - 1)
    bits = draws.view(torch.int16)[: shape.numel()].view(shape)
    return (bits >= dropped - LEVELS // 2).float() * (LEVELS / (LEVELS - dropped))


class Dropout(nn.Dropout):
    """nn.Dropout with cheap masks on a CPU; on other devices it is plain nn.Dropout."""

    def forward(self, x: Tensor) -> Tensor:
        """Drop elements of x in training mode."""
        if self.training and 0 < self.p < 1 and x.device.type == "cpu":
            return x * dropout_mask(x.shape, self.p).to(x.dtype)
        return super().forward(x)


def with_cheap_masks(model: nn.Module) -> None:
    """Replace every nn.Dropout of a model by our Dropout."""
    for parent in list(model.modules()):
        for name, child in list(parent.named_children()):
            if type(child) is nn.Dropout:
                setattr(parent, name, Dropout(child.p).train(child.training))


def dropout_of(model: nn.Module) -> float:
    """Return the largest dropout rate in a model."""
    rates = [module.p for module in model.modules() if isinstance(module, nn.Dropout)]
    rates += [float(getattr(module, name)) for module, name in _plain_rates(model)]
    return max(rates, default=0.0)


def set_dropout(model: nn.Module, rate: float) -> None:
    """Set every dropout rate of a model."""
    for module in model.modules():
        if isinstance(module, nn.Dropout):
            module.p = rate
    for module, name in _plain_rates(model):
        setattr(module, name, rate)


def _plain_rates(model: nn.Module) -> list[tuple[nn.Module, str]]:
    """List the modules that store a rate as a plain number, as the attention of T5 and ModernBERT does."""
    return [(m, name) for m in model.modules() for name in RATES if isinstance(vars(m).get(name), int | float)]
