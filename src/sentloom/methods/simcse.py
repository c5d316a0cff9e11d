"""Unsupervised SimCSE: a sentence is its own positive, seen twice through dropout (Gao, Yao and Chen, EMNLP 2021)."""

from typing import Any, ClassVar

from torch import Tensor

from sentloom.data.batches import Batch
from sentloom.encoder import Encoder
from sentloom.encoder.heads import Projection
from sentloom.losses import info_nce
from sentloom.methods.method import Embeddings, Method, Options, Positive, count_equal, known_equal


class SimcseOptions(Options):
    """The head is linear and tanh, from d to d; the paper trains with it and leaves it out at inference."""

    temperature: Positive = 0.05
    head: bool = True
    keep_head: bool = False
    mask_duplicates: bool = True


TRAINING: dict[str, Any] = {
    "pooling": "first",
    "max_length": 32,
    "batch": 64,
    "epochs": 1,
    "learning_rate": 3e-5,
    "schedule": "linear",
    "warmup": 0.0,
}


class Simcse(Method):
    """l_i = -log exp(cos(z_i, z'_i)/tau) / sum_j exp(cos(z_i, z'_j)/tau), z and z' under two dropout masks (eq. 4)."""

    NAME = "simcse"
    Options = SimcseOptions
    options: SimcseOptions
    NEEDS_DROPOUT = True
    PRESETS: ClassVar[dict[str, dict[str, Any]]] = {
        "default": TRAINING,
        "paper": TRAINING | {"mask_duplicates": False},
        "official-code": TRAINING | {"mask_duplicates": False, "clip": 1.0},
    }

    def __init__(self, encoder: Encoder, options: SimcseOptions) -> None:
        super().__init__(encoder, options)
        head = Projection(encoder.dimension, encoder.dimension, activation="tanh")
        self.head = head if options.head and not options.keep_head else None
        if options.head and options.keep_head:
            encoder.heads.append(head)

    def embed(self, batch: Batch) -> Embeddings:
        """Both z and z' in one pass: every row of a pack has a mask of its own."""
        ids = self.encoder.tokenize(batch.first)
        both = self.encoder(ids * 2, raw=True)  # (2n, d)
        both = both if self.head is None else self.head(both)
        z, z_prime = both.chunk(2)
        return {"z": z, "z'": z_prime}

    def masked(self, batch: Batch) -> int:
        """Rows with an equal text."""
        return count_equal(batch, self.options.mask_duplicates)

    def loss(self, embeddings: Embeddings, batch: Batch) -> Tensor:
        """InfoNCE from the first pass to the second."""
        z = embeddings["z"]
        same = known_equal(batch, z, self.options.mask_duplicates)
        return info_nce(z, embeddings["z'"], temperature=self.options.temperature, same=same)
