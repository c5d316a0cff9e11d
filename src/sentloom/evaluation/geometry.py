"""Geometry of vectors: alignment and uniformity in three variants, isotropy, effective rank.

Everything is computed on unit vectors in float64, block by block, so memory does not grow with the number of pairs.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import chain
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from sentloom.data.dataset import Dataset
from sentloom.data.shapes import Shape, text_columns
from sentloom.errors import InputError
from sentloom.evaluation.metrics import Numbers
from sentloom.search.vectors import Encode, encode_distinct

BLOCK = 1024  # vectors per block
POSITIVE = 4.0  # pairs with a higher score are positives, as in Sentence-T5 and GenSE
GREATEST = 5.0


class UniformityVariant(StrEnum):
    """The variant of alignment and uniformity.

    `reference` is the definition of Wang and Isola: squared distances, no vector paired with itself. `sentence-t5` is
    computed by that paper's code: vectors are also paired with themselves. `printed` is the formula in the papers
    Sentence-T5 and GenSE: distances are not squared, and alignment has a minus sign.
    """

    REFERENCE = "reference"
    SENTENCE_T5 = "sentence-t5"
    PRINTED = "printed"


@dataclass(frozen=True)
class ScoredPairs:
    """Pairs of sentences with human scores from 0 to 5."""

    left: Sequence[str]
    right: Sequence[str]
    gold: Numbers  # (n,)


class PairColumns(Protocol):
    """Columns of scored pairs, as readers return them."""

    def __getitem__(self, column: str, /) -> Sequence[Any]:
        """Return a column by name."""


def scored_pairs(rows: PairColumns) -> ScoredPairs:
    """Build pairs from the columns sentence1, sentence2 and score."""
    return ScoredPairs(rows["sentence1"], rows["sentence2"], np.asarray(rows["score"], np.float64))


def pairs_of(data: Dataset) -> ScoredPairs:
    """Build pairs from a data set; pairs without scores, such as translations, are all positives."""
    if data.shape is Shape.SCORED_PAIRS:
        return scored_pairs(data.table.to_pydict())
    if data.shape not in (Shape.PAIRS, Shape.PARALLEL):
        expected = f"{Shape.SCORED_PAIRS}, {Shape.PAIRS} or {Shape.PARALLEL}"
        raise InputError(data.files[0], f"the file contains {data.shape}", expected, "give another file")
    left, right = (data.column(name).to_pylist() for name in text_columns(data.shape))
    return ScoredPairs(left, right, np.full(len(left), GREATEST))


@dataclass(frozen=True)
class Geometry:
    """The measurements, and the numbers of positive pairs and sentences."""

    alignment: float
    uniformity: float
    isotropy: float
    mean_cosine: float
    effective_rank: float
    dimension: int
    positives: int
    sentences: int
    variant: UniformityVariant


def geometry(
    encode: Encode,
    pairs: ScoredPairs,
    variant: UniformityVariant = UniformityVariant.REFERENCE,
    encode_left: Encode | None = None,
) -> Geometry:
    """Measure alignment on pairs with a score above 4, and the rest on distinct sentences.

    With `encode_left`, another encoder of the same width encodes the left sides, as in a dual encoder.
    """
    positive = np.flatnonzero(pairs.gold > POSITIVE)
    if not len(positive):
        problem = f"none of the {len(pairs.gold):,} pairs has a score above {POSITIVE:g}"
        expected = "positives, on a scale from 0 to 5"
        raise InputError("pairs", problem, expected, "scale the scores, or use another file")
    if encode_left is None:
        of_left = of_right = encode_distinct(encode, chain(pairs.left, pairs.right))
    else:
        of_left, of_right = encode_distinct(encode_left, pairs.left), encode_distinct(encode, pairs.right)
    left = np.stack([of_left[pairs.left[row]] for row in positive.tolist()])
    right = np.stack([of_right[pairs.right[row]] for row in positive.tolist()])
    if left.shape != right.shape:
        problem = f"the two encoders have the widths {left.shape[1]} and {right.shape[1]}"
        raise InputError("source", problem, "equal widths", "train with keep_head: true")
    vectors = np.stack([*of_left.values(), *(of_right.values() if encode_left else ())])
    return Geometry(
        alignment(left, right, variant),
        uniformity(vectors, variant),
        isotropy(vectors),
        mean_cosine(vectors),
        effective_rank(vectors),
        vectors.shape[1],
        len(positive),
        len(vectors),
        variant,
    )


def alignment(
    left: npt.NDArray[np.floating],
    right: npt.NDArray[np.floating],
    variant: UniformityVariant = UniformityVariant.REFERENCE,
) -> float:
    """Compute the mean squared distance of positive pairs; as printed, minus the mean distance."""
    squares = np.concatenate(
        [((a - b) ** 2).sum(axis=1) for a, b in zip(_unit_blocks(left), _unit_blocks(right), strict=True)]
    )
    return float(-np.sqrt(squares).mean() if variant == UniformityVariant.PRINTED else squares.mean())


def uniformity(
    vectors: npt.NDArray[np.floating],
    variant: UniformityVariant = UniformityVariant.REFERENCE,
    block: int = BLOCK,
) -> float:
    """Compute the log of the mean of exp(-2 d²) over all pairs of vectors; as printed, of exp(-2 d)."""
    n = len(vectors)
    if n < 2:
        raise InputError("uniformity", f"there are only {n} vectors", "2 or more", "use more sentences")
    total = sum(_potential(a, b, same, variant) for a, b, same in _block_pairs(vectors, block))
    if variant == UniformityVariant.SENTENCE_T5:  # pairs count in both orders, and each vector with itself
        return float(np.log((2 * total + n) / n**2))
    return float(np.log(total / (n * (n - 1) / 2)))


def isotropy(vectors: npt.NDArray[np.floating]) -> float:
    """Compute min Z(c) / max Z(c), with Z(c) = sum of exp(c·v), over the eigenvectors c of VᵀV in both directions.

    This is Mu and Viswanath's measure on unit vectors: 1 if no direction is special. The sign of an eigenvector is
    arbitrary, so both signs are used.
    """
    _, directions = np.linalg.eigh(_gram(vectors))
    both = np.concatenate([directions, -directions], axis=1)  # (d, 2d)
    sums = sum(np.exp(block @ both).sum(axis=0) for block in _unit_blocks(vectors))
    return float(np.min(sums) / np.max(sums))


def mean_cosine(vectors: npt.NDArray[np.floating], block: int = BLOCK) -> float:
    """Compute the mean cosine of two different vectors, exactly: the squared norm of their sum covers every pair."""
    total = sum((rows.sum(axis=0) for rows in _unit_blocks(vectors, block)), np.zeros(vectors.shape[1]))
    own = sum(float((rows**2).sum()) for rows in _unit_blocks(vectors, block))
    n = len(vectors)
    return float((total @ total - own) / (n * (n - 1)))


def effective_rank(vectors: npt.NDArray[np.floating]) -> float:
    """Compute exp of the entropy of the normalised singular values (Roy and Vetterli), without centring."""
    squares = np.linalg.eigvalsh(_gram(vectors))
    real = squares[squares > squares[-1] * len(squares) * np.finfo(np.float64).eps]  # the rest is rounding error
    shares = np.sqrt(real) / np.sqrt(real).sum()
    return float(np.exp(-(shares * np.log(shares)).sum()))


def _gram(vectors: npt.NDArray[np.floating]) -> Numbers:
    """Compute VᵀV (d, d) of the unit vectors."""
    d = vectors.shape[1]
    return sum((block.T @ block for block in _unit_blocks(vectors)), np.zeros((d, d)))


def _unit_blocks(vectors: npt.NDArray[np.floating], block: int = BLOCK) -> Iterator[Numbers]:
    """Yield rows scaled to unit length, block by block; a zero row stays zero."""
    for start in range(0, len(vectors), block):
        rows = vectors[start : start + block].astype(np.float64)
        length = np.linalg.norm(rows, axis=1, keepdims=True)
        yield rows / np.where(length > 0, length, 1.0)


def _block_pairs(vectors: npt.NDArray[np.floating], block: int) -> Iterator[tuple[Numbers, Numbers, bool]]:
    """Yield each block with itself and with each later block."""
    for place, rows in enumerate(_unit_blocks(vectors, block)):
        yield rows, rows, True
        for later in _unit_blocks(vectors[(place + 1) * block :], block):
            yield rows, later, False


def _potential(a: Numbers, b: Numbers, same: bool, variant: UniformityVariant) -> float:
    """Sum exp(-2 d²) over the pairs of two blocks, or over i < j of one block."""
    squares = ((a**2).sum(axis=1)[:, None] + (b**2).sum(axis=1) - 2 * a @ b.T).clip(min=0)
    if same:
        squares = squares[np.triu_indices(len(a), 1)]
    return float(np.exp(-2 * (np.sqrt(squares) if variant == UniformityVariant.PRINTED else squares)).sum())
