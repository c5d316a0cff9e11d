"""Sentences in, checked vectors out: any callable can be scored, a model or a baseline such as TF-IDF."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from sentloom.errors import ModelError

Vectors: TypeAlias = npt.NDArray[np.float32]
Encode: TypeAlias = Callable[[Sequence[str]], npt.NDArray[Any]]  # n sentences -> (n, d)


def encode_checked(encode: Encode, sentences: Sequence[str]) -> Vectors:
    """One vector a sentence, all of them finite: a score of anything else would mean nothing."""
    vectors = np.asarray(encode(sentences), np.float32)
    if vectors.ndim != 2 or len(vectors) != len(sentences):
        raise ModelError(
            "encoder", f"vectors of shape {vectors.shape}", f"({len(sentences)}, d)", "return one vector a sentence"
        )
    broken = np.flatnonzero(~np.isfinite(vectors).all(axis=1))
    if len(broken):
        raise ModelError(
            "encoder",
            f"NaN or infinity in {len(broken)} of {len(vectors)} vectors, first for {sentences[broken[0]][:80]!r}",
            "finite vectors",
            "check the model's weights, and that it runs in a precision it can bear",
        )
    return vectors


def encode_distinct(encode: Encode, sentences: Iterable[str]) -> dict[str, npt.NDArray[np.float32]]:
    """The vector of each distinct sentence, all from one call of `encode`."""
    distinct = list(dict.fromkeys(sentences))
    return dict(zip(distinct, encode_checked(encode, distinct), strict=True))


def normalised(vectors: npt.NDArray[Any]) -> Vectors:
    """Rows of length one; a row of zeros stays as it is, so that its cosine with anything is 0."""
    rows = np.asarray(vectors, np.float32)
    length = np.linalg.norm(rows, axis=1, keepdims=True)
    unit: Vectors = np.divide(rows, length, out=np.zeros_like(rows), where=length > 0)
    return unit
