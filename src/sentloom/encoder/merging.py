"""Merge encoders of one architecture: the weighted mean of their weights, without training."""

from collections.abc import Sequence

import torch

from sentloom.encoder.encoder import Encoder
from sentloom.errors import InputError


def merge(encoders: Sequence[Encoder], weights: Sequence[float] | None = None) -> Encoder:
    """The weighted mean of all weights (by default each counts the same); everything else is the first encoder's.

    Weights count relative to their sum. Integers and other state that has no mean, the pooling, the prompts, the
    tokenizer and the maximum length are the first encoder's.
    """
    shares = _shares(len(encoders), weights)
    first, *others = encoders
    for number, other in enumerate(others, start=2):
        if problem := unlike(first, other):
            fix = "merge a model with its base, or models that were trained from the same base"
            expected = "encoders of one architecture with the same tokenizer"
            raise InputError("merge", f"number {number} does not fit the first: {problem}", expected, fix)
    merged = first.copy()
    states = [encoder.state_dict() for encoder in encoders]
    with torch.no_grad():
        for name, tensor in merged.state_dict().items():
            if tensor.is_floating_point():
                parts = (share * state[name].double() for share, state in zip(shares, states, strict=True))
                tensor.copy_(torch.stack(list(parts)).sum(dim=0))
    return merged


def _shares(count: int, weights: Sequence[float] | None) -> list[float]:
    given = [1.0] * count if weights is None else list(weights)
    if count < 2:
        raise InputError("merge", f"{count} encoder", "two or more", "name another")
    if len(given) != count or min(given) < 0 or sum(given) <= 0:
        found = f"the weights {', '.join(f'{one:g}' for one in given)} for {count} encoders"
        raise InputError("merge", found, "one of 0 or more for each, not all 0", "correct the weights")
    return [one / sum(given) for one in given]


def unlike(first: Encoder, other: Encoder) -> str:
    """Why two encoders cannot be merged; empty if they can: weights have a mean only if they mean the same."""
    shapes, theirs = ({name: tuple(t.shape) for name, t in one.state_dict().items()} for one in (first, other))
    kind, own = (one.backbone.model.config.model_type for one in (first, other))
    if kind != own:
        return f"one is a {kind} model and the other a {own} model"
    if shapes != theirs or str(first.heads) != str(other.heads):
        name = next((name for name in {**shapes, **theirs} if shapes.get(name) != theirs.get(name)), "its projection")
        return f"they have different architectures: {name} differs"
    return "" if _vocabulary(first) == _vocabulary(other) else "they have different vocabularies"


def _vocabulary(encoder: Encoder) -> dict[str, int]:
    found: dict[str, int] = encoder.tokens.tokenizer.get_vocab()
    return found
