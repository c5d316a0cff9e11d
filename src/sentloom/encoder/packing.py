"""Packs: sentences side by side in one row, which need no padding; `attention` keeps them apart.

On a CPU, dropout has cheap masks: torch's own draw one number per element, which takes a sixth of a training step.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn

WORTH_A_WORKER = 256  # tokens: smaller packs waste more than a second worker gains
RATES = ("dropout", "attention_dropout")
LEVELS = 1 << 16  # a mask takes 16 random bits per element: four elements per 64-bit draw


@dataclass(frozen=True)
class PackedRun:
    """A run of `count` sentences of `length` tokens each, starting at token `start` of the row."""

    start: int
    count: int
    length: int


@dataclass(frozen=True)
class Pack:
    """One row of packed sentences. `rows` are the indices of the caller's sentences, in packed order."""

    rows: NDArray[np.int64]  # (n,)
    ids: Tensor  # (1, T)
    positions: Tensor  # (1, T), starting at 0 in every sentence
    runs: tuple[PackedRun, ...]
    types: Tensor | None = None  # (1, T): which text of a pair a token is from; None: the first of all

    @property
    def lengths(self) -> list[int]:
        """The number of tokens of each sentence, in packed order."""
        return [run.length for run in self.runs for _ in range(run.count)]


def plan(lengths: NDArray[np.int64], budget: int, shortest: float = 0.0) -> list[NDArray[np.int64]]:
    """Divide sentences into packs of at most `budget` tokens, longest first; a longer sentence gets its own pack.

    `shortest` is the minimum length of a sentence as a share of the pack's longest one, for models that pad.
    """
    order = np.argsort(-lengths, kind="stable")
    packs, first, tokens = [], 0, 0
    for at, row in enumerate(order):
        full = tokens + lengths[row] > budget or lengths[row] < shortest * lengths[order[first]]
        if full and at > first:
            packs.append(order[first:at])
            first, tokens = at, 0
        tokens += int(lengths[row])
    return [*packs, order[first:]] if len(order) else []


def plan_side_by_side(lengths: NDArray[np.int64], budget: int) -> list[NDArray[np.int64]]:
    """Divide sentences, longest first, into packs of about equal size that are to run at the same time.

    A last pack that is smaller, or an odd number of packs, would keep one of two workers waiting; with many workers it
    matters less. A pack has less than one sentence more than `budget` tokens.
    """
    order = np.argsort(-lengths, kind="stable")
    tokens = lengths[order]
    starts, total = np.cumsum(tokens) - tokens, int(tokens.sum())
    number = max(-(-total // budget), 2 if total >= 2 * WORTH_A_WORKER else 1)
    number += number % 2 if number > 1 else 0
    places = starts * number // max(total, 1)  # the pack of each sentence
    return np.split(order, np.flatnonzero(np.diff(places)) + 1) if len(order) else []


def pack(ids: Sequence[Sequence[int]], rows: NDArray[np.int64], device: torch.device | None = None) -> Pack:
    """Pack the sentences `rows` of `ids`, which must be sorted by length, into one row."""
    lengths = np.array([len(ids[row]) for row in rows])
    flat = np.concatenate([np.asarray(ids[row], dtype=np.int64) for row in rows])
    starts = np.cumsum(lengths) - lengths
    positions = np.arange(len(flat)) - np.repeat(starts, lengths)
    edges = [0, *(np.flatnonzero(np.diff(lengths)) + 1).tolist(), len(lengths)]
    runs = tuple(PackedRun(int(starts[a]), b - a, int(lengths[a])) for a, b in pairwise(edges))
    return Pack(rows, torch.from_numpy(flat)[None].to(device), torch.from_numpy(positions)[None].to(device), runs)


def by_run(states: Tensor, runs: tuple[PackedRun, ...]) -> list[Tensor]:
    """Split states (T, ...) into (count, L, ...) per run; the backward of slices would allocate T zeros per run."""
    parts = states.split([run.count * run.length for run in runs])
    return [part.unflatten(0, (run.count, run.length)) for part, run in zip(parts, runs, strict=True)]


def pad(states: Tensor, pack: Pack, value: float = 0) -> tuple[Tensor, Tensor]:
    """Pad (T, ...) to (n, longest L, ...) with `value`; also return the mask (n, L) of real tokens."""
    longest = pack.runs[0].length
    deeper = [0, 0] * (states.dim() - 1)  # F.pad counts axes from the last; only the token axis grows
    parts = [
        F.pad(part, [*deeper, 0, longest - run.length], value=value)
        for part, run in zip(by_run(states, pack.runs), pack.runs, strict=True)
    ]
    lengths = torch.tensor(pack.lengths, device=states.device)
    mask = torch.arange(longest, device=states.device)[None, :] < lengths[:, None]
    return torch.cat(parts), mask


class Dropout(nn.Dropout):
    """nn.Dropout with cheap masks on a CPU; on other devices it is plain nn.Dropout."""

    def forward(self, x: Tensor) -> Tensor:
        """Drop elements of x in training mode."""
        if self.training and 0 < self.p < 1 and x.device.type == "cpu":
            return x * dropout_mask(x.shape, self.p).to(x.dtype)
        return super().forward(x)


def dropout_mask(shape: torch.Size, p: float) -> Tensor:
    """Draw a mask from torch's global generator: 0 with probability p (rounded to 1/65,536), else 1 / (1 - p)."""
    dropped = min(round(p * LEVELS), LEVELS - 1)
    draws = torch.empty((shape.numel() + 3) // 4, dtype=torch.int64).random_(-(2**63), 2**63 - 1)
    bits = draws.view(torch.int16)[: shape.numel()].view(shape)
    return (bits >= dropped - LEVELS // 2).float() * (LEVELS / (LEVELS - dropped))


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
