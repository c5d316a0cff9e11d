"""How a model's vectors of held-out text lie, and how much they moved: what is watched beside the panel."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sentloom.errors import InputError
from sentloom.evaluation.geometry import alignment, effective_rank, mean_cosine, uniformity
from sentloom.search.nearest import top_k
from sentloom.search.vectors import Encode, encode_distinct

K = 10  # neighbours that are compared
MOST_COSINE = 0.99  # above, sentences can no longer be told apart
LOST_RANK = 0.5  # of the rank before: half of the directions are gone


@dataclass(frozen=True)
class Gauges:
    """Of unit vectors, in the reading of Wang and Isola; `alignment` and `uniformity` are better when lower."""

    alignment: float  # the mean squared distance of the two sides of a pair
    uniformity: float  # log of the mean of exp(-2 d²) over pairs of different sentences
    mean_cosine: float  # of two different sentences
    effective_rank: float  # how many directions the vectors use
    dimension: int


def gauges(encode: Encode, left: Sequence[str], right: Sequence[str], texts: Sequence[str]) -> Gauges:
    """Alignment over the pairs (left, right), such as sentences and their views; the rest over the distinct texts."""
    of = encode_distinct(encode, [*left, *right, *texts])
    one, other = (np.stack([of[text] for text in side]) for side in (left, right))
    vectors = np.stack([of[text] for text in dict.fromkeys(texts)])
    return Gauges(
        alignment(one, other), uniformity(vectors), mean_cosine(vectors), effective_rank(vectors), vectors.shape[1]
    )


def collapsed(before: Gauges, after: Gauges) -> str | None:
    """Why a model's vectors have collapsed, in words; None where they have not, or had before."""
    if after.mean_cosine > MOST_COSINE >= before.mean_cosine:
        return (
            f"all sentences point one way: the mean cosine of two different ones is {after.mean_cosine:.3f}, "
            f"before it was {before.mean_cosine:.3f}"
        )
    if after.effective_rank < LOST_RANK * before.effective_rank:
        return (
            f"the vectors use few of their {after.dimension} directions: effective rank {after.effective_rank:.0f}, "
            f"before it was {before.effective_rank:.0f}"
        )
    return None


def neighbour_overlap(a: npt.NDArray[np.floating], b: npt.NDArray[np.floating], k: int = K) -> float:
    """The mean of `shared_neighbours`."""
    return float(shared_neighbours(a, b, k).mean())


def shared_neighbours(a: npt.NDArray[np.floating], b: npt.NDArray[np.floating], k: int = K) -> npt.NDArray[np.float64]:
    """Of each text the share of its k nearest neighbours that two models, or two seeds, agree on; row i is text i.

    1 where they agree on all; of n texts, chance gives k / (n - 1).
    """
    if len(a) != len(b) or len(a) <= k:
        found = f"{len(a)} and {len(b)} vectors, k = {k}"
        raise InputError("neighbour overlap", found, "vectors of the same texts, more than k", "take more texts")
    pairs = zip(_neighbours(a, k), _neighbours(b, k), strict=True)
    return np.array([len(set(one) & set(other)) / k for one, other in pairs])


def _neighbours(vectors: npt.NDArray[np.floating], k: int) -> list[list[int]]:
    """The k nearest others of each vector."""
    found, _ = top_k(vectors, vectors, k + 1)
    return [[number for number in row if number != own][:k] for own, row in enumerate(found.tolist())]
