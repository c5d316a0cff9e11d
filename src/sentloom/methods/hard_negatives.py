"""Anchors, positives and hard negatives of a batch: sampled and encoded alike by all methods that use triplets.

From rows with more hard negatives than are wanted, some are sampled at each step.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import torch

from sentloom.data.batches import Batch, text_keys
from sentloom.encoder import Encoder
from sentloom.encoder.prompts import Role
from sentloom.methods.known_pairs import KnownPairs
from sentloom.methods.method import Embeddings


def encode_candidates(
    encoder: Encoder, batch: Batch, negatives: Sequence[Sequence[str]], asymmetric: bool
) -> Embeddings:
    """Vectors of anchors and positives, each (n, d), and of hard negatives if there are any, (n, m, d), in one pass.

    If `asymmetric`, anchors get the query prompt and all others the document prompt.
    """
    query: Role = "query" if asymmetric else "symmetric"
    document: Role = "document" if asymmetric else "symmetric"
    ids = encoder.tokenize(batch.first, query)
    for column in (batch.second, *zip(*negatives, strict=True)):
        ids += encoder.tokenize(column, document)
    anchor, positive, *others = encoder(ids, raw=True).split(len(batch))
    return (anchor, positive, torch.stack(others, dim=1)) if others else (anchor, positive)


def sample_batch(batch: Batch, wanted: int) -> list[list[str]]:
    """The wanted number of hard negatives for each row; "" where a row has fewer. Pairs have none at all."""
    if "negatives" not in batch.texts or not wanted:
        return []
    rows = zip(batch.texts["negatives"], batch.places, strict=True)
    return [sample_negatives(given, wanted, batch.random(int(place))) for given, place in rows]


def missing(batch: Batch, negatives: Sequence[str]) -> npt.NDArray[np.bool_]:
    """(b, m): which of m texts are "", the same for every row."""
    return np.repeat(np.array([[not text for text in negatives]], bool), len(batch), axis=0)


def right_answers(batch: Batch, negatives: Sequence[str], known: KnownPairs | None) -> npt.NDArray[np.bool_]:
    """(b, m): which of m texts are a text of the row itself, or a known positive of its first text."""
    keys, first = text_keys(negatives), text_keys(batch.first)
    found = (first[:, None] == keys) | (text_keys(batch.second)[:, None] == keys)
    if known is not None and len(keys):
        found |= known.among(first, keys)
    return np.asarray(found)


def sample_negatives(given: Sequence[str], wanted: int, random: np.random.Generator) -> list[str]:
    """As many of the given texts as are wanted, in order; "" where there are fewer."""
    chosen = [given[place] for place in sample_places(len(given), wanted, random)]
    return [*chosen, *[""] * (wanted - len(chosen))]


def sample_places(count: int, wanted: int, random: np.random.Generator) -> npt.NDArray[np.int64]:
    """Sorted places of a sample of `wanted` among `count` texts, or of all of them."""
    if count <= wanted:
        return np.arange(count)
    return np.sort(random.choice(count, wanted, replace=False))
