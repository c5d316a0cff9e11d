"""Which texts are negatives: hard ones of the data, all but the known positives, and a queue of earlier vectors."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from sentloom.data.batches import Batch, text_keys
from sentloom.data.dataset import Dataset
from sentloom.encoder import Encoder
from sentloom.encoder.tokens import Role
from sentloom.methods.method import Embeddings

Keys = npt.NDArray[np.uint64]
ODD = np.uint64(0x9E3779B97F4A7C15)  # makes the hashes of (a, b) and (b, a) differ


@dataclass(frozen=True)
class KnownPairs:
    """The (anchor, positive) pairs of some rows, as sorted hashes: eight bytes for each pair."""

    hashes: Keys

    @classmethod
    def of_texts(cls, anchors: Sequence[str], positives: Sequence[str]) -> "KnownPairs":
        """The pairs of a batch."""
        return cls(np.unique(_pair(text_keys(anchors), text_keys(positives))))

    @classmethod
    def of_data(cls, data: Dataset) -> "KnownPairs":
        """The pairs of a data set of pairs or triplets."""
        parts = (batch.to_pydict() for batch in data.table.select(["anchor", "positive"]).to_batches())
        return cls(np.unique(np.concatenate([cls.of_texts(part["anchor"], part["positive"]).hashes for part in parts])))

    def among(self, anchors: Keys, others: Keys) -> npt.NDArray[np.bool_]:
        """(n,), (m,) -> (n, m): whether a text is a known positive of an anchor."""
        pairs = _pair(anchors[:, None], others[None, :])
        places = np.searchsorted(self.hashes, pairs)
        known: npt.NDArray[np.bool_] = np.append(self.hashes, self.hashes[:1])[places] == pairs
        return known

    def of_other_rows(self, batch: Batch) -> npt.NDArray[np.bool_]:
        """(b, b): whether the second text of row j != i is a known positive of the first text of row i."""
        known = self.among(text_keys(batch.first), text_keys(batch.second))
        np.fill_diagonal(known, False)
        return known


def _pair(anchors: Keys, others: Keys) -> Keys:
    return anchors * ODD + others  # modulo 2**64


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


def sample_batch(batch: Batch, count: int) -> list[list[str]]:
    """`count` hard negatives for each row; "" where a row has fewer. Pairs have none at all."""
    if "negatives" not in batch.texts or not count:
        return []
    rows = zip(batch.texts["negatives"], batch.places, strict=True)
    return [sample_negatives(texts, count, batch.random(int(place))) for texts, place in rows]


def sample_negatives(texts: Sequence[str], count: int, random: np.random.Generator) -> list[str]:
    """`count` of the texts, in their order; "" where there are fewer."""
    chosen = [texts[place] for place in sample_places(len(texts), count, random)]
    return [*chosen, *[""] * (count - len(chosen))]


def sample_places(total: int, count: int, random: np.random.Generator) -> npt.NDArray[np.int64]:
    """The sorted places of a sample of `count` among `total` texts, or of all of them."""
    if total <= count:
        return np.arange(total)
    return np.sort(random.choice(total, count, replace=False))


def missing(batch: Batch, negatives: Sequence[str]) -> npt.NDArray[np.bool_]:
    """(b, m): which of m texts are "", the same for every row."""
    return np.repeat(np.array([[not text for text in negatives]], bool), len(batch), axis=0)


def right_answers(batch: Batch, negatives: Sequence[str], known: KnownPairs | None) -> npt.NDArray[np.bool_]:
    """(b, m): which of m texts are a text of the row itself, or a known positive of its first text."""
    keys, first = text_keys(negatives), text_keys(batch.first)
    right = (first[:, None] == keys) | (text_keys(batch.second)[:, None] == keys)
    if known is not None and len(keys):
        right |= known.among(first, keys)
    return np.asarray(right)


class Queue(nn.Module):
    """The newest `size` vectors, each with some keys. It starts empty and takes batches of any size."""

    vectors: Tensor
    keys: Tensor
    count: Tensor

    def __init__(self, size: int, width: int, keys: int) -> None:
        super().__init__()
        self.register_buffer("vectors", torch.zeros(size, width))
        self.register_buffer("keys", torch.zeros(size, keys, dtype=torch.int64))
        # Vectors ever added: the next one goes to count % size.
        self.register_buffer("count", torch.zeros((), dtype=torch.int64))

    def __len__(self) -> int:
        return min(int(self.count), len(self.vectors))

    def entries(self) -> tuple[Tensor, Tensor]:
        """The vectors (m, d) and their keys (m, k), in no particular order; m < size until the queue is full."""
        return self.vectors[: len(self)], self.keys[: len(self)]

    @torch.no_grad()
    def enqueue(self, vectors: Tensor, keys: Tensor) -> None:
        """Add a batch; it overwrites the oldest vectors, wrapping around at the end."""
        size = len(self.vectors)
        first = max(0, len(keys) - size)  # only the end of a batch larger than the queue is kept
        places = (self.count + torch.arange(first, len(keys), device=keys.device)) % max(size, 1)
        self.vectors[places] = vectors[first:].to(self.vectors.dtype)
        self.keys[places] = keys[first:]
        self.count += len(keys)
