"""Attention within each sentence of a pack, in memory that grows with a sentence's length, not with its square.

Torch's fused kernels never hold the scores of all pairs of tokens. Two cases are not theirs, and run in blocks of
queries: a sliding window, where a block needs only the keys within its reach, and dropout on a CPU, where the scores of
a block are computed again in the backward pass instead of being kept.

Shapes: n sentences of L tokens, H heads of width D, of which some may share keys and values: K of these.
"""

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from sentloom.encoder.packing import PackedRun, by_run, dropout_mask

ATTENTION = "sentloom_packed"  # the name of `packed_attention` in transformers' registry
BLOCK = 512  # queries; shorter sentences are a single block


class Rule(NamedTuple):
    """What attention does besides comparing queries with keys.

    `causal`: a token sees itself and those before it. `window`: only those at a distance below this number.
    """

    causal: bool
    window: int | None
    dropout: float
    scaling: float | None


def packed_attention(
    module: nn.Module,
    query: Tensor,  # (1, H, T, D)
    key: Tensor,  # (1, K, T, D), like value
    value: Tensor,
    attention_mask: Tensor | None,
    *,
    runs: tuple[PackedRun, ...],
    scaling: float | None = None,
    dropout: float = 0.0,
    sliding_window: int | None = None,
    is_causal: bool | None = None,
    **_: object,
) -> tuple[Tensor, None]:
    """Compute attention within each sentence of a pack, with the signature of transformers' AttentionInterface.

    As there, the module says whether attention is causal, unless the call does.
    """
    if attention_mask is not None:
        raise AssertionError("a packed row has no attention mask")
    causal = getattr(module, "is_causal", False) if is_causal is None else is_causal
    rule = Rule(causal, sliding_window, dropout, scaling)
    by_token = [x[0].transpose(0, 1) for x in (query, key, value)]  # (T, heads, D)
    outputs = []
    for parts in zip(*(by_run(x, runs) for x in by_token), strict=True):
        q, k, v = (x.transpose(1, 2) for x in parts)  # (n, heads, L, D)
        outputs.append(_attend(q, k, v, rule).transpose(1, 2).flatten(0, 1))
    return torch.cat(outputs)[None], None  # (1, T, H, D)


def _attend(q: Tensor, k: Tensor, v: Tensor, rule: Rule) -> Tensor:
    """(n, H, L, D): at once with torch's kernel, or in blocks of queries."""
    length = q.shape[2]
    fused = not rule.dropout or q.device.type != "cpu"  # with dropout on a CPU, torch's own version is slower
    if fused and (rule.window is None or length <= rule.window):
        return _fused(q, k, v, rule, causal=rule.causal)
    blocks = []
    for first in range(0, length, BLOCK):
        queries = torch.arange(first, min(first + BLOCK, length), device=q.device)
        keys = _reach(first, len(queries), length, rule)
        mask = _mask(queries, torch.arange(keys.start, keys.stop, device=q.device), rule)
        parts = (q[:, :, first : first + BLOCK], k[:, :, keys], v[:, :, keys])
        if fused:
            blocks.append(_fused(*parts, rule, mask=mask))
        elif length <= BLOCK:
            blocks.append(_dropped(*parts, rule, mask))
        else:
            blocks.append(checkpoint(_dropped, *parts, rule, mask, use_reentrant=False))
    return torch.cat(blocks, dim=2)


def _reach(first: int, count: int, length: int, rule: Rule) -> slice:
    """The keys that some of `count` queries from `first` on see."""
    window = length if rule.window is None else rule.window
    last = first + count if rule.causal else first + count + window - 1
    return slice(max(0, first - window + 1), min(length, last))


def _mask(queries: Tensor, keys: Tensor, rule: Rule) -> Tensor | None:
    """Which keys each query sees, by their positions: (queries, keys), or None if it sees all.

    transformers passes half of a window to both sides plus one: tokens are at a distance below that number.
    """
    if not rule.causal and rule.window is None:
        return None
    distance = queries[:, None] - keys[None, :]
    seen = distance >= 0 if rule.causal else torch.ones_like(distance, dtype=torch.bool)
    return seen if rule.window is None else seen & (distance.abs() < rule.window)


def _fused(q: Tensor, k: Tensor, v: Tensor, rule: Rule, mask: Tensor | None = None, causal: bool = False) -> Tensor:
    """Torch's kernel."""
    shared = q.shape[1] != k.shape[1]
    return F.scaled_dot_product_attention(
        q, k, v, attn_mask=mask, dropout_p=rule.dropout, is_causal=causal, scale=rule.scaling, enable_gqa=shared
    )


def _dropped(q: Tensor, k: Tensor, v: Tensor, rule: Rule, mask: Tensor | None) -> Tensor:
    """With cheap dropout masks. Heads that share keys and values are further queries to these."""
    sharing = (-1, q.shape[1] // k.shape[1])
    queries = (q * (q.shape[-1] ** -0.5 if rule.scaling is None else rule.scaling)).unflatten(1, sharing).flatten(2, 3)
    scores = (queries @ k.transpose(-2, -1)).unflatten(2, (sharing[1], -1))  # (n, K, H / K, queries, keys)
    weights = (scores if mask is None else scores.masked_fill(~mask, -torch.inf)).softmax(dim=-1)
    weights = weights * dropout_mask(weights.shape, rule.dropout).to(weights.dtype)
    return (weights.flatten(2, 3) @ v).unflatten(2, (sharing[1], -1)).flatten(1, 2)
