"""Scores of (query, passage) pairs by a cross-encoder, cached on disk beside the vectors.

Mining, training, re-ranking and the scorer of written queries share them: no pair is scored twice.
"""

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from sentloom.files import cache_folder
from sentloom.search.cross_encoder import CrossEncoder, Pairs, Scores
from sentloom.search.vector_cache import VectorCache

BLOCK = 512  # pairs per shard: a killed run loses at most this many

PairScores: TypeAlias = Callable[[Pairs], Scores]


def pair_scores(
    model: CrossEncoder, pairs: Pairs, cache: VectorCache | None = None, show_progress: bool = False
) -> Scores:
    """Return the score of each pair, (n,): those in the cache as they are, the others computed and stored."""
    if not pairs:
        return np.empty(0, np.float32)
    keys = [_key(*pair) for pair in pairs]
    by_key = dict(zip(keys, pairs, strict=True))
    found = (cache or VectorCache(cache_folder() / "vectors", block=BLOCK)).vectors(
        model.identity,
        keys,
        lambda some: model.score([by_key[key] for key in some])[:, None],
        show_progress=show_progress,
        work=("scoring", "pairs"),
    )
    return found[:, 0]


def _key(query: str, passage: str) -> str:
    """One text for both, from which neither can be read as the other."""
    return f"{len(query)} {query}{passage}"
