"""Make an encoder of other encoders without training: the weighted mean of several, or one with fewer layers."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch

from sentloom.encoder.encoder import Encoder
from sentloom.encoder.formats.format import ReadOnlyBackbone
from sentloom.encoder.pooling import DECODER_FIRST, Pooling
from sentloom.errors import InputError, ModelError, option

LAYER_TYPES = "layer_types"  # in the configuration of models whose layers differ: the type of each
DECODER_LAYERS = "num_decoder_layers"


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
    weights = [1.0] * count if weights is None else list(weights)
    if count < 2:
        raise InputError("merge", f"{count} encoder", "two or more", "name another")
    if len(weights) != count or min(weights) < 0 or sum(weights) <= 0:
        problem = f"the weights {', '.join(f'{weight:g}' for weight in weights)} for {count} encoders"
        raise InputError("merge", problem, "one of 0 or more for each, not all 0", "correct the weights")
    return [weight / sum(weights) for weight in weights]


def unlike(first: Encoder, other: Encoder) -> str:
    """Why two encoders cannot be merged; empty if they can. A mean needs weights that stand for the same."""
    shapes, other_shapes = _shapes(first), _shapes(other)
    family, other_family = (encoder.backbone.model.config.model_type for encoder in (first, other))
    if family != other_family:
        return f"one is a {family} model and the other a {other_family} model"
    if shapes != other_shapes or str(first.heads) != str(other.heads):
        unequal = (name for name in {**shapes, **other_shapes} if shapes.get(name) != other_shapes.get(name))
        return f"they have different architectures: {next(unequal, 'its projection')} differs"
    return "" if _vocabulary(first) == _vocabulary(other) else "they have different vocabularies"


def _shapes(encoder: Encoder) -> dict[str, tuple[int, ...]]:
    return {name: tuple(tensor.shape) for name, tensor in encoder.state_dict().items()}


def _vocabulary(encoder: Encoder) -> dict[str, int]:
    vocabulary: dict[str, int] = encoder.tokens.tokenizer.get_vocab()
    return vocabulary


def shrink(encoder: Encoder, layers: int | None = None) -> Encoder:
    """Keep `layers` layers, evenly spaced from the first to the last; by default half of them.

    The first one is always kept: it was trained on the embeddings, and T5 has its position bias there.
    """
    kept = kept_layers(encoder, layers)
    student = encoder.copy()
    _keep(student, kept)
    return student


def kept_layers(encoder: Encoder, layers: int | None = None) -> list[int]:
    """The numbers of the layers that `shrink` keeps; refuses a model that cannot be made smaller like this."""
    if isinstance(encoder.backbone, ReadOnlyBackbone):
        problem = "it is an exported model, so its layers cannot be taken"
        fix = f"name another model to be trained: {option('student', 'MODEL')}"
        raise ModelError(encoder.backbone.name, problem, "a model with its weights", fix)
    total = encoder.backbone.num_layers
    if total == 1:
        fix = f"name another model to be trained: {option('student', 'MODEL')}"
        raise InputError("layers", "the model has a single layer", "two or more", fix)
    count = (total + 1) // 2 if layers is None else layers
    if not 1 <= count < total:
        raise InputError("layers", f"{count} of {total} are asked for", f"from 1 to {total - 1}", "keep fewer")
    return evenly_spaced_layers(total, count)


def evenly_spaced_layers(total: int, count: int) -> list[int]:
    """The numbers of the layers that are kept, from 0, with the first and, if there are two or more, the last.

    >>> evenly_spaced_layers(6, 3), evenly_spaced_layers(12, 6), evenly_spaced_layers(6, 1)
    ([0, 2, 5], [0, 2, 4, 7, 9, 11], [0])
    """
    return [int(place) for place in np.linspace(0, total - 1, count).round()]


def _keep(student: Encoder, kept: list[int]) -> None:
    """Remove the other blocks from the model and its configuration. ALBERT repeats its one block less often."""
    backbone, config = student.backbone, student.backbone.model.config
    blocks = backbone.blocks
    if len(blocks) == backbone.num_layers:
        for place in reversed(range(len(blocks))):
            if place not in kept:
                del blocks[place]
    if types := getattr(config, LAYER_TYPES, None):
        setattr(config, LAYER_TYPES, [types[place] for place in kept])
    config.num_hidden_layers = len(kept)
    if getattr(config, DECODER_LAYERS, None):  # the decoder is gone; a folder with more layers than weights is refused
        setattr(config, DECODER_LAYERS, len(kept))


def plain_pooling(pooling: Pooling) -> Pooling:
    """The pooling of a smaller encoder: without a decoder, and of its last layer."""
    how = "mean" if pooling.how == DECODER_FIRST else pooling.how
    return replace(pooling, how=how, layers=Pooling().layers)
