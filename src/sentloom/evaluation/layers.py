"""Find the best layer and pooling: Spearman correlations of all combinations, from one pass over the sentences."""

import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
import torch
from numpy.typing import NDArray

from sentloom.encoder.encoder import Encoder
from sentloom.encoder.packing import pack
from sentloom.encoder.pooling import POOLERS, pool
from sentloom.encoder.workers import pack_workers
from sentloom.evaluation.geometry import ScoredPairs
from sentloom.evaluation.metrics import Numbers, cosine_of_pairs, spearman
from sentloom.progress import progress

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
            one = pack(ids, rows, encoder.device)
            states = encoder.backbone.states(one, layers)
            pooled = [torch.stack([pool(how, layer, one.runs) for how in POOLERS]) for layer in states]
            return rows, torch.stack(pooled).float().cpu().numpy()

    return run
