"""Whitening (Su et al., 2021): a linear map after which vectors have mean 0 and the identity as covariance.

It is fitted, as in the method's own code, on the base's vectors after its heads and before normalisation to unit
length; normalisation comes after whitening instead. Since whitening is one more linear layer, the result is saved as an
ordinary sentence-transformers folder.
"""

import hashlib
from collections.abc import Sequence
from typing import NoReturn

import numpy as np
import torch
from numpy.typing import NDArray

from sentloom.data.sentences import as_texts, distinct, texts_at
from sentloom.encoder.encoder import Encoder, Vectors
from sentloom.encoder.heads import Projection
from sentloom.encoder.tokens import Role
from sentloom.errors import InputError
from sentloom.progress import progress

BLOCK = 4096  # texts whose vectors are in memory at a time
FLAT = 1e-10  # of the greatest variance; a direction with less is float32 noise, such as a layer norm leaves

Numbers = NDArray[np.float64]


class Whitened:
    """Unfitted whitening, which is fitted on the scored text."""

    def __init__(self, base: Encoder, dimension: int | None = None) -> None:
        self.base, self.dimension = base, dimension

    def fit(self, texts: Sequence[str]) -> Encoder:
        """Fit whitening on these texts; with few texts and no dimension, keep a quarter as many directions as texts."""
        different = len(set(texts))
        few = max(1, different // 4) if different < self.base.dimension + 2 else None
        return whiten(self.base, texts, self.dimension or few)

    def fingerprint(self) -> str:
        """Return a hash of the base and the dimension."""
        return hashlib.sha256(f"whitening {self.dimension} {self.base.fingerprint()}".encode()).hexdigest()

    def encode(self, texts: Sequence[str], *, role: Role = "symmetric", show_progress: bool = False) -> Vectors:
        """Fit on these texts and encode them."""
        return self.fit(texts).encode(texts, role=role, show_progress=show_progress)


def whiten(
    base: Encoder,
    texts: Sequence[str],
    dimension: int | None = None,
    *,
    show_progress: bool = False,
    block: int = BLOCK,
) -> Encoder:
    """Return the base with a whitening head fitted on texts (repeated texts count repeatedly), with unit length.

    `dimension` is the number of directions of greatest variance to keep, by default all with any variance. There must
    be more distinct texts than dimensions: otherwise whitening puts all texts at the same distance from each other.
    """
    raw = base.copy().eval()
    raw.unit_length = False
    mean, covariance = _moments(raw, texts, dimension or raw.dimension, show_progress, block)
    weight = _whitening(covariance, dimension)  # (d, k)
    head = Projection(*weight.shape)
    with torch.no_grad():
        head.linear.weight.copy_(torch.from_numpy(weight.T))
        head.linear.bias.copy_(torch.from_numpy(-mean @ weight))
    heads = [*(layer for layer in raw.heads if isinstance(layer, Projection)), head]
    fitted = Encoder(raw.backbone, raw.tokens, pooling=raw.pooling, heads=heads, prompts=raw.prompts)
    return fitted.to(base.device).eval()


def _moments(
    raw: Encoder, texts: Sequence[str], dimension: int, show_progress: bool, block: int
) -> tuple[Numbers, Numbers]:
    """Return mean (d,) and covariance (d, d) in float64, block by block: memory does not grow with the texts."""
    sequence = as_texts(texts)
    rows, first_of_row = distinct(sequence)
    if len(rows) < dimension + 2:
        _refuse(f"only {len(rows)} distinct texts", f"at least {dimension + 2} for {dimension} dimensions")
    counts = np.unique(first_of_row, return_counts=True)[1].astype(np.float64)  # in the order of `rows`
    shift, total, squares = np.zeros(raw.dimension), np.zeros(raw.dimension), np.zeros((raw.dimension, raw.dimension))
    with progress("whitening", len(rows), "sentences", show_progress) as advance:
        for start in range(0, len(rows), block):
            part = slice(start, start + block)
            vectors = raw.encode(texts_at(sequence, rows[part])).astype(np.float64)
            shift = shift if start else vectors.mean(axis=0)  # sums of values near 0 keep their precision
            weighted = (vectors - shift) * counts[part, None]
            total += weighted.sum(axis=0)
            squares += weighted.T @ (vectors - shift)
            advance(len(vectors))
    n = counts.sum()
    return shift + total / n, (squares - np.outer(total, total) / n) / (n - 1)


def _whitening(covariance: Numbers, dimension: int | None) -> Numbers:
    """Return U diag(s^-1/2), (d, k), from the covariance's singular vectors and values."""
    u, s, _ = np.linalg.svd(covariance)
    rank = int((s > FLAT * s[0]).sum())
    if rank < (dimension or 1):
        _refuse(f"the vectors differ in only {rank} directions", f"at least {dimension or 1}")
    k = dimension or rank
    weight: Numbers = u[:, :k] / np.sqrt(s[:k])
    return weight


def _refuse(problem: str, expected: str) -> NoReturn:
    raise InputError("whitening", problem, expected, "give more texts (whitening:MODEL:TEXTS) or fewer dimensions")
