"""Geometry by layer and by pair, for researchers: which layer and pooling is best, and a map of scored pairs.

`sweep` gives the Spearman correlations of all layers and poolings from one pass over the sentences. `pair_map` projects
pairs with high and low scores to a plane by t-SNE, as in figure 5 of the self-guided paper.
"""

import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from sentloom.encoder.device import pack_workers
from sentloom.encoder.encoder import Encoder
from sentloom.encoder.packing import pack
from sentloom.encoder.pooling import POOLERS, pool
from sentloom.errors import InputError
from sentloom.evaluation.geometry import ScoredPairs
from sentloom.evaluation.metrics import Numbers, cosine_of_pairs, spearman
from sentloom.progress import progress
from sentloom.search.vectors import Encode

Rows = NDArray[np.int64]
Vectors = NDArray[np.float32]


@dataclass(frozen=True)
class Sweep:
    """Spearman correlations, times 100, without heads. Layer 0 is the embedding output."""

    layers: tuple[int, ...]
    poolings: tuple[str, ...]
    spearman: Numbers  # (layers, poolings)

    @property
    def best(self) -> tuple[int, str, float]:
        """The layer, pooling and score of the best combination."""
        layer, pooling = np.unravel_index(self.spearman.argmax(), self.spearman.shape)
        return self.layers[layer], self.poolings[pooling], float(self.spearman[layer, pooling])


def sweep(encoder: Encoder, pairs: ScoredPairs) -> Sweep:
    """Score every layer with every pooling; for an encoder-decoder model such as T5, the encoder's layers.

    Each distinct sentence runs once. Its vectors, one per layer and pooling, are stored in a temporary file.
    """
    texts = list(dict.fromkeys(chain(pairs.left, pairs.right)))
    place = {text: number for number, text in enumerate(texts)}
    left, right = (np.array([place[text] for text in side]) for side in (pairs.left, pairs.right))
    layers = tuple(range(encoder.backbone.num_layers + 1))
    shape = (len(layers), len(POOLERS), len(texts), encoder.backbone.width)
    with tempfile.TemporaryFile() as file:
        vectors = np.memmap(file, np.float32, "w+", shape=shape)
        for rows, pooled in _run(encoder, encoder.tokenize(texts), layers):
            vectors[:, :, rows] = pooled
        scores = [[_score(vectors[layer, how], left, right, pairs.gold) for how in range(shape[1])] for layer in layers]
    return Sweep(layers, tuple(POOLERS), np.array(scores))


def _score(vectors: Vectors, left: Rows, right: Rows, gold: Numbers) -> float:
    return 100 * spearman(cosine_of_pairs(vectors[left], vectors[right]), gold)


def _run(encoder: Encoder, ids: Sequence[Sequence[int]], layers: Sequence[int]) -> Iterator[tuple[Rows, Vectors]]:
    """Yield the rows of each pack and their vectors (layers, poolings, n, d)."""
    was_training = encoder.training
    encoder.eval()
    try:
        with progress("layers", len(ids), "sentences") as advance, pack_workers(encoder.device) as executor:
            for rows, pooled in executor.map(_pooler(encoder, ids, layers), encoder.packs(ids)):
                yield rows, pooled
                advance(len(rows))
    finally:
        encoder.train(was_training)


def _pooler(
    encoder: Encoder, ids: Sequence[Sequence[int]], layers: Sequence[int]
) -> Callable[[Rows], tuple[Rows, Vectors]]:
    def run(rows: Rows) -> tuple[Rows, Vectors]:
        with encoder.computing():
            packed = pack(ids, rows, encoder.device)
            states = encoder.backbone.states(packed, layers)
            pooled = [torch.stack([pool(how, layer, packed.runs) for how in POOLERS]) for layer in states]
            return rows, torch.stack(pooled).float().cpu().numpy()

    return run


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
