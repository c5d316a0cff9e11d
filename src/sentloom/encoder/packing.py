"""Sentences of unequal length in one row, without padding: lay out, attend, unpack.

Padding is the waste of short sentences. A pack holds sentences sorted by length, longest first, end to end in one
row of T tokens. Everything in a transformer but attention looks at one token at a time, so the row runs as it is;
attention is cut into runs of equal length, each an ordinary batch without a mask.

Shapes: T tokens of a pack, n sentences, L tokens of a sentence, H heads, D width of a head, d hidden width.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn

ATTENTION = "sentloom_packed"  # the name under which transformers knows `packed_attention`


@dataclass(frozen=True)
class Run:
    """`count` sentences of `length` tokens each, from token `start` of the row."""

    start: int
    count: int
    length: int

    @property
    def stop(self) -> int:
        """The token after the run's last."""
        return self.start + self.count * self.length


@dataclass(frozen=True)
class Pack:
    """One row of sentences. `rows` says which of the caller's sentences stand in it, in packed order."""

    rows: NDArray[np.int64]  # (n,)
    ids: Tensor  # (1, T)
    positions: Tensor  # (1, T), from 0 in every sentence
    runs: tuple[Run, ...]

    @property
    def lengths(self) -> list[int]:
        """Tokens of each sentence, in packed order."""
        return [run.length for run in self.runs for _ in range(run.count)]


def plan(lengths: NDArray[np.int64], budget: int, shortest: float = 0.0) -> list[NDArray[np.int64]]:
    """Cut sentences into packs of at most `budget` tokens, longest first; a longer sentence gets its own.

    `shortest` is the least share of a pack's longest sentence that another may have: for models that pad.
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


def pack(ids: Sequence[Sequence[int]], rows: NDArray[np.int64], device: torch.device | None = None) -> Pack:
    """Lay the sentences `rows` of `ids`, which are sorted by length, into one row."""
    lengths = np.array([len(ids[row]) for row in rows])
    flat = np.concatenate([np.asarray(ids[row], dtype=np.int64) for row in rows])
    starts = np.cumsum(lengths) - lengths
    positions = np.arange(len(flat)) - np.repeat(starts, lengths)
    edges = [0, *(np.flatnonzero(np.diff(lengths)) + 1).tolist(), len(lengths)]
    runs = tuple(Run(int(starts[a]), b - a, int(lengths[a])) for a, b in pairwise(edges))
    return Pack(rows, torch.from_numpy(flat)[None].to(device), torch.from_numpy(positions)[None].to(device), runs)


def packed_attention(
    module: nn.Module,
    query: Tensor,  # (1, H, T, D), like key and value
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    *,
    runs: tuple[Run, ...],
    scaling: float | None = None,
    dropout: float = 0.0,
    sliding_window: int | None = None,
    **_: object,
) -> tuple[Tensor, None]:
    """Attention inside each sentence of a pack, in the form that transformers' AttentionInterface calls."""
    if attention_mask is not None:
        raise AssertionError("a packed row has no attention mask")
    heads, width = query.shape[1], query.shape[3]
    by_token = [x[0].transpose(0, 1) for x in (query, key, value)]  # (T, H, D)
    outputs = []
    for run in runs:
        q, k, v = (x[run.start : run.stop].unflatten(0, (run.count, run.length)).transpose(1, 2) for x in by_token)
        band = _band(run.length, sliding_window, query.device)
        attended = F.scaled_dot_product_attention(q, k, v, attn_mask=band, dropout_p=dropout, scale=scaling)
        outputs.append(attended.transpose(1, 2).reshape(-1, heads, width))
    return torch.cat(outputs)[None], None  # (1, T, H, D)


def _band(length: int, sliding_window: int | None, device: torch.device) -> Tensor | None:
    """The (L, L) mask of a sliding window, where a sentence is longer than it reaches.

    transformers hands over the half window plus one: a token sees those at a distance below that number.
    """
    if sliding_window is None or length <= sliding_window:
        return None
    place = torch.arange(length, device=device)
    return (place[:, None] - place[None, :]).abs() < sliding_window


def pad(states: Tensor, pack: Pack, value: float = 0) -> tuple[Tensor, Tensor]:
    """From (T, ...) to (n, longest L, ...) with `value` behind, and the mask (n, L) of what is real."""
    longest = pack.runs[0].length
    deeper = [0, 0] * (states.dim() - 1)  # F.pad counts axes from the last; only the token axis grows
    parts = [
        F.pad(
            states[run.start : run.stop].unflatten(0, (run.count, run.length)),
            [*deeper, 0, longest - run.length],
            value=value,
        )
        for run in pack.runs
    ]
    lengths = torch.tensor(pack.lengths, device=states.device)
    mask = torch.arange(longest, device=states.device)[None, :] < lengths[:, None]
    return torch.cat(parts), mask
