"""The papers' optimisers over the trainable parameters, and their state as plain tensors and numbers."""

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Adam, AdamW, Optimizer
from transformers.optimization import Adafactor

from sentloom.methods.settings import Settings


def learning(method: nn.Module) -> dict[str, nn.Parameter]:
    """The trainable parameters by name, each once."""
    return {name: parameter for name, parameter in method.named_parameters() if parameter.requires_grad}


def build_optimizer(method: nn.Module, settings: Settings) -> Optimizer:
    """The optimiser. Biases and norms (parameters of one dimension) have no weight decay."""
    parameters = list(learning(method).values())
    groups: list[dict[str, Any]] = [
        {"params": [p for p in parameters if p.dim() > 1], "weight_decay": settings.weight_decay},
        {"params": [p for p in parameters if p.dim() <= 1], "weight_decay": 0.0},
    ]
    groups = [group for group in groups if group["params"]]
    if settings.optimizer == "adafactor":
        return Adafactor(
            groups, lr=settings.learning_rate, scale_parameter=settings.scale_parameter, relative_step=False
        )
    kind = Adam if settings.optimizer == "adam" else AdamW
    return kind(groups, lr=settings.learning_rate, betas=settings.betas, eps=settings.eps, fused=True)


def set_rate(optimizer: Optimizer, rate: float) -> None:
    """Set the learning rate of this step in every group."""
    for group in optimizer.param_groups:
        group["lr"] = rate


def optimizer_state(optimizer: Optimizer) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """The optimiser's state: tensors by "number.name", and plain values by the same kind of name."""
    tensors: dict[str, Tensor] = {}
    values: dict[str, Any] = {}
    for number, state in optimizer.state_dict()["state"].items():
        for name, value in state.items():
            if isinstance(value, Tensor):
                tensors[f"{number}.{name}"] = value
            else:
                values[f"{number}.{name}"] = value
    return tensors, values


def load_optimizer_state(optimizer: Optimizer, tensors: dict[str, Tensor], values: dict[str, Any]) -> None:
    """Restore what `optimizer_state` returned."""
    state: dict[int, dict[str, Any]] = {}
    for key, value in [*tensors.items(), *values.items()]:
        number, name = key.split(".", 1)
        state.setdefault(int(number), {})[name] = value
    optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})


def gradient_norm(parameters: Iterable[nn.Parameter], clip: float | None) -> float:
    """The norm of all gradients together; if it exceeds `clip`, they are scaled down to it."""
    found = [parameter for parameter in parameters if parameter.grad is not None]
    norm = torch.nn.utils.clip_grad_norm_(found, clip if clip is not None else torch.inf)
    return float(norm)
