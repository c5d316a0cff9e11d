"""A smaller encoder from some of an encoder's own layers: the start of a student that is trained to mimic it."""

from dataclasses import replace

import numpy as np

from sentloom.encoder.encoder import Encoder
from sentloom.encoder.pooling import DECODER_FIRST, Pooling
from sentloom.encoder.read_only import ReadOnlyBackbone
from sentloom.errors import InputError, ModelError, option

LAYER_TYPES = "layer_types"  # in the configuration of models whose layers differ: the type of each

DECODER_LAYERS = "num_decoder_layers"


def shrink(encoder: Encoder, layers: int | None = None) -> Encoder:
    """Keep some layers, evenly spaced from the first to the last; by default half of them.

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


def plain_pooling(pooling: Pooling) -> Pooling:
    """The pooling of a smaller encoder: without a decoder, and of its last layer."""
    how = "mean" if pooling.how == DECODER_FIRST else pooling.how
    return replace(pooling, how=how, layers=Pooling().layers)


def _keep(student: Encoder, kept: list[int]) -> None:
    """Remove the other blocks, in the model and in its configuration. ALBERT has one block, which it repeats less."""
    backbone, config = student.backbone, student.backbone.model.config
    blocks = backbone.blocks
    if len(blocks) == backbone.num_layers:
        for place in reversed(range(len(blocks))):
            if place not in kept:
                del blocks[place]
    if types := getattr(config, LAYER_TYPES, None):
        setattr(config, LAYER_TYPES, [types[place] for place in kept])
    config.num_hidden_layers = len(kept)
    if getattr(config, DECODER_LAYERS, None):  # the decoder is gone, and a folder with more layers than weights refused
        setattr(config, DECODER_LAYERS, len(kept))
