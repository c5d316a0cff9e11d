"""The papers' optimisers, their state as plain tensors and numbers, and the schedules of the learning rate."""

import math
from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Adam, AdamW, Optimizer
from transformers.optimization import Adafactor

from sentloom.methods.settings import Settings


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


def learning(method: nn.Module) -> dict[str, nn.Parameter]:
    """The trainable parameters by name, each once."""
    return {name: parameter for name, parameter in method.named_parameters() if parameter.requires_grad}


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
    with_gradient = [parameter for parameter in parameters if parameter.grad is not None]
    norm = torch.nn.utils.clip_grad_norm_(with_gradient, clip if clip is not None else torch.inf)
    return float(norm)


def rate(
    schedule: str, step: int, total: int, warmup: float | int, decay: float = 0.1, decay_factor: float | None = None
) -> float:
    """The factor of the learning rate for an update, counted from 0; `warmup` is a share of the steps or their number.

    `linear` rises from 0 during the warm-up, then falls to 0, or by `decay_factor` per step (as in t5x);
    `constant-then-linear` stays at 1 instead of rising (as in GenSE's code); `cosine` rises, then falls along half a
    cosine; `constant` rises, then stays.
    `warmup-stable-decay` rises, stays, and falls to 0 in the last share `decay` of the steps (MiniCPM: Hu et al.,
    2024). If its warm-up is a number of steps, a longer run has the rates of a shorter one until that one's decay.
    """
    first = warmup if isinstance(warmup, int) else round(warmup * total)
    if schedule == "warmup-stable-decay":
        rising = step / first if step < first else 1.0
        return min(rising, (total - step) / max(1, round(decay * total)))
    if step < first:
        return 1.0 if schedule == "constant-then-linear" else step / first
    if schedule == "constant":
        return 1.0
    if decay_factor is not None:
        return max(0.0, 1 - decay_factor * (step - first))
    done = (step - first) / max(1, total - first)
    return 0.5 * (1 + math.cos(math.pi * done)) if schedule == "cosine" else 1 - done


def stable_steps(total: int, decay: float) -> int:
    """With `warmup-stable-decay`, the steps before the decay: a longer run takes the same ones."""
    return total - max(1, round(decay * total))


def total_steps(stable: int, decay: float) -> int:
    """The length of the shortest run with this many steps before its decay."""
    total = stable + 1
    while stable_steps(total, decay) < stable:
        total += 1
    return total
