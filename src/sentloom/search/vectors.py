"""Encode sentences and check the vectors: any callable can be scored, a model or a baseline such as TF-IDF."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from sentloom.errors import ModelError

Vectors: TypeAlias = npt.NDArray[np.float32]
Encode: TypeAlias = Callable[[Sequence[str]], npt.NDArray[Any]]  # n sentences -> (n, d)


def encode_checked(encode: Encode, sentences: Sequence[str]) -> Vectors:
    """Return one finite vector per sentence; anything else is an error, since its scores would be meaningless."""
    vectors = np.asarray(encode(sentences), np.float32)
    if vectors.ndim != 2 or len(vectors) != len(sentences):
        raise ModelError(
            "encoder",
            f"its vectors have the shape {vectors.shape}",
            f"({len(sentences)}, d)",
            "return one vector per sentence",
        )
    broken = np.flatnonzero(~np.isfinite(vectors).all(axis=1))
    if len(broken):
        raise ModelError(
            "encoder",
            f"{len(broken)} of {len(vectors)} vectors have NaN or infinity, first for {sentences[broken[0]][:80]!r}",
            "finite vectors",
            "check the model's weights, and whether its precision is too low",
        )
    return vectors


def encode_distinct(encode: Encode, sentences: Iterable[str]) -> dict[str, npt.NDArray[np.float32]]:
    """Return the vector of each distinct sentence, all from one call of `encode`."""
    distinct = list(dict.fromkeys(sentences))
    return dict(zip(distinct, encode_checked(encode, distinct), strict=True))


def normalised(vectors: npt.NDArray[Any]) -> Vectors:
    """Scale rows to unit length; a row of zeros stays unchanged, so that its cosine with anything is 0."""
    rows = np.asarray(vectors, np.float32)
    length = np.linalg.norm(rows, axis=1, keepdims=True)
    unit: Vectors = np.divide(rows, length, out=np.zeros_like(rows), where=length > 0)
    return unit
