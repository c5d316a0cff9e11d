"""Project high- and low-scored pairs to a plane by t-SNE, as in figure 5 of the self-guided paper."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sentloom.errors import InputError
from sentloom.evaluation.geometry import ScoredPairs
from sentloom.evaluation.metrics import Numbers
from sentloom.search.vectors import Encode

PAIRS_PER_KIND = 20
HIGH, LOW = 4.0, 1.0


@dataclass(frozen=True)
class PairMap:
    """The positions of both sides of the high and the low pairs on the plane, (2, n, 2) each."""

    high: Numbers
    low: Numbers


def pair_map(encode: Encode, pairs: ScoredPairs) -> PairMap:
    """Choose pairs, encode them and project their vectors."""
    high, low = choose_pairs(pairs.gold)
    rows = np.concatenate([high, high, low, low])
    lefts = np.repeat([True, False, True, False], [len(high), len(high), len(low), len(low)])
    texts = [(pairs.left if left else pairs.right)[row] for row, left in zip(rows.tolist(), lefts, strict=True)]
    places = project(np.asarray(encode(texts), np.float64))
    return PairMap(places[: 2 * len(high)].reshape(2, -1, 2), places[2 * len(high) :].reshape(2, -1, 2))


def choose_pairs(gold: Numbers, count: int = PAIRS_PER_KIND) -> tuple[NDArray[Any], NDArray[Any]]:
    """Choose rows of high pairs (above 4, highest first) and low pairs (below 1); ties are in random order."""
    shuffled = np.random.default_rng(0).permutation(len(gold))
    rising = shuffled[np.argsort(gold[shuffled], kind="stable")]
    low, high = rising[gold[rising] < LOW][:count], rising[gold[rising] > HIGH][::-1][:count]
    if not len(low) or not len(high):
        problem = f"scores range from {gold.min():g} to {gold.max():g}"
        raise InputError("pairs", problem, "some above 4 and some below 1", "rescale the scores, or use another file")
    return high, low


def project(vectors: Numbers) -> Numbers:
    """Project vectors to positions (n, 2) on a plane, reproducibly: the exact method runs in one thread."""
    from sklearn.manifold import TSNE

    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True).clip(min=1e-12)
    perplexity = min(15.0, (len(unit) - 1) / 3)
    method = TSNE(2, perplexity=perplexity, init="pca", method="exact", random_state=0)
    places: Numbers = method.fit_transform(unit.astype(np.float64))
    return places
