"""Whitening (Su et al., 2021): shift and turn vectors so that they have mean 0 and the identity as covariance.

Taken from the base's vectors as they are before they get unit length, behind its own heads, as the method's own code
does; a base that gives unit length loses that step before whitening and has it behind. The whole is one more linear
layer: what is saved is an ordinary sentence-transformers folder.
"""

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

import numpy as np
import torch
from numpy.typing import NDArray

from sentloom.baselines.baseline import refuse_to_save
from sentloom.data.distinct import as_texts, distinct, texts_at
from sentloom.encoder.encoder import Encoder, Vectors
from sentloom.encoder.heads import Projection
from sentloom.encoder.prompts import Role
from sentloom.errors import InputError
from sentloom.progress import progress

BLOCK = 4096  # texts whose vectors are held at once
FLAT = 1e-10  # of the greatest variance: a direction with less is noise of float32, such as a layer norm leaves

Numbers = NDArray[np.float64]


class WhitenedEncoder(Encoder):
    """An Encoder whose last head whitens."""

    name: str = "whitening"


class Whitened:
    """Whitening yet to be fitted on the text that is scored."""

    def __init__(self, base: Encoder, dimension: int | None = None, *, name: str = "whitening") -> None:
        self.base, self.wanted, self.name = base, dimension, name

    @property
    def dimension(self) -> int:
        """The width of a vector; less where the texts differ in fewer directions."""
        return self.wanted or self.base.dimension

    def fit(self, texts: Sequence[str]) -> WhitenedEncoder:
        """The base whitened on these texts; of few it keeps a quarter as many directions, if not told how many."""
        different = len(set(texts))
        few = max(1, different // 4) if different < self.base.dimension + 2 else None
        return whiten(self.base, texts, self.wanted or few, name=self.name)

    def fingerprint(self) -> str:
        """A hash of the base and the dimension."""
        return hashlib.sha256(f"whitening {self.wanted} {self.base.fingerprint()}".encode()).hexdigest()

    def encode(self, texts: Sequence[str], *, role: Role = "symmetric", show_progress: bool = False) -> Vectors:
        """Fitted on these texts and applied to them."""
        return self.fit(texts).encode(texts, role=role, show_progress=show_progress)

    def save(self, folder: str | Path) -> None:
        """Refused: what `fit` gives can be saved."""
        refuse_to_save(self.name, folder, "which is yet to be fitted")


def whiten(
    base: Encoder,
    texts: Sequence[str],
    dimension: int | None = None,
    *,
    name: str = "whitening",
    show_progress: bool = False,
) -> WhitenedEncoder:
    """The base with a whitening head fitted on texts (a text counts as often as it stands there), of unit length.

    `dimension` keeps the directions of greatest variance, by default all that have any. There must be more different
    texts than that: of as few, whitening makes every two equally far apart, whatever they say.
    """
    raw = base.copy().eval()
    raw.unit_length = False
    mean, covariance = _moments(raw, texts, dimension or raw.dimension, show_progress)
    weight = _whitening(covariance, dimension)  # (d, k)
    head = Projection(*weight.shape)
    with torch.no_grad():
        head.linear.weight.copy_(torch.from_numpy(weight.T))
        head.linear.bias.copy_(torch.from_numpy(-mean @ weight))
    heads = [*(one for one in raw.heads if isinstance(one, Projection)), head]
    fitted = WhitenedEncoder(raw.backbone, raw.tokens, pooling=raw.pooling, heads=heads, prompts=raw.prompts)
    fitted.name = name
    return fitted.to(base.device).eval()


def _moments(raw: Encoder, texts: Sequence[str], dimension: int, show_progress: bool) -> tuple[Numbers, Numbers]:
    """Mean (d,) and covariance (d, d), in float64, a block at a time: memory does not grow with the texts."""
    sequence = as_texts(texts)
    rows, first_of_row = distinct(sequence)
    if len(rows) < dimension + 2:
        _refuse(f"{len(rows)} different texts", f"at least {dimension + 2} for {dimension} dimensions")
    counts = np.unique(first_of_row, return_counts=True)[1].astype(
        np.float64
    )  # in the order of `rows`, which is sorted
    shift, total, squares = np.zeros(raw.dimension), np.zeros(raw.dimension), np.zeros((raw.dimension, raw.dimension))
    with progress("whitening", len(rows), "sentences", show_progress) as advance:
        for start in range(0, len(rows), BLOCK):
            block = slice(start, start + BLOCK)
            vectors = raw.encode(texts_at(sequence, rows[block])).astype(np.float64)
            shift = shift if start else vectors.mean(axis=0)  # sums of what is near 0 lose no digits
            weighted = (vectors - shift) * counts[block, None]
            total += weighted.sum(axis=0)
            squares += weighted.T @ (vectors - shift)
            advance(len(vectors))
    n = counts.sum()
    return shift + total / n, (squares - np.outer(total, total) / n) / (n - 1)


def _whitening(covariance: Numbers, dimension: int | None) -> Numbers:
    """U diag(s^-1/2), (d, k), of the covariance's singular vectors and values."""
    u, s, _ = np.linalg.svd(covariance)
    rank = int((s > FLAT * s[0]).sum())
    if rank < (dimension or 1):
        _refuse(f"vectors that differ in {rank} directions", f"{dimension or 1} at least")
    k = dimension or rank
    weight: Numbers = u[:, :k] / np.sqrt(s[:k])
    return weight


def _refuse(found: str, wanted: str) -> NoReturn:
    raise InputError("whitening", found, wanted, "give more texts (whitening:MODEL:TEXTS), or fewer dimensions")
