"""The dimensions that an encoder was trained to be cut to (Matryoshka Representation Learning: Kusupati et al., 2022).

They are in config.json under the name that other tools read too.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from sentloom.errors import InputError

if TYPE_CHECKING:
    from sentloom.encoder.encoder import Encoder, Vectors

KEY = "matryoshka_dimensions"


def trained_dimensions(encoder: "Encoder") -> tuple[int, ...]:
    """The dimensions that the encoder was trained for, largest first; none for an ordinary encoder."""
    found = getattr(encoder.backbone.model.config, KEY, None)
    if not isinstance(found, list | tuple) or not all(type(one) is int for one in found):
        return ()
    return tuple(sorted({one for one in found if 1 <= one <= encoder.dimension}, reverse=True))


def record_dimensions(encoder: "Encoder", dimensions: Sequence[int] | None) -> None:
    """Record in the encoder which dimensions it was trained for; None: only its own."""
    config = encoder.backbone.model.config
    if dimensions:
        setattr(config, KEY, sorted(dimensions, reverse=True))
    elif hasattr(config, KEY):
        delattr(config, KEY)


def check_dimensions(where: str, encoder: "Encoder", dimensions: Sequence[int]) -> None:
    """Refuse to train for more dimensions than vectors have."""
    if max(dimensions) > encoder.dimension:
        problem = f"{max(dimensions)} dimensions of vectors that have {encoder.dimension}"
        raise InputError(where, problem, f"{encoder.dimension} or fewer", "correct the option dimensions")


def check_cut(encoder: "Encoder", dimension: int) -> None:
    """Refuse a dimension that the encoder was not trained for."""
    known = trained_dimensions(encoder)
    if dimension not in (*known, encoder.dimension):
        trained = (
            f"one of {', '.join(map(str, known))}" if known else f"{encoder.dimension}: it was trained for no other"
        )
        fix = "train with the option dimensions, or cut the vectors yourself if the loss in quality is acceptable"
        raise InputError("dimension", f"the model was not trained for {dimension}", trained, fix)


def cut(vectors: "Vectors", dimension: int, unit_length: bool) -> "Vectors":
    """The first `dimension` dimensions of vectors, scaled to unit length if asked for."""
    short = np.ascontiguousarray(vectors[..., :dimension])
    return short / np.maximum(np.linalg.norm(short, axis=-1, keepdims=True), 1e-12) if unit_length else short
