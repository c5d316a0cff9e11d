"""Unsupervised SimCSE: a sentence is its own positive, seen through two dropout masks (Gao, Yao and Chen, EMNLP 2021).

Symbols: z_i and z'_i are the vectors of sentence i under two dropout masks; tau is the temperature.
"""

from pydantic import model_validator
from torch import Tensor

from sentloom.data.batches import Batch
from sentloom.encoder import Encoder
from sentloom.encoder.heads import Projection
from sentloom.losses import info_nce
from sentloom.methods.method import Embeddings, MatryoshkaOptions, Method, NegativesOptions, attach_head
from sentloom.methods.registry import read_presets
from sentloom.methods.settings import Positive


class SimcseOptions(NegativesOptions, MatryoshkaOptions):
    """The head is linear + tanh, d to d; the paper trains with it and drops it at inference."""

    temperature: Positive = 0.05
    head: bool = True
    keep_head: bool = False

    @model_validator(mode="after")
    def _dimensions_that_stay(self) -> "SimcseOptions":
        if self.dimensions and self.head and not self.keep_head:
            raise ValueError("dimensions of a head that is dropped: set head: false or keep_head: true")
        return self


class Simcse(Method):
    """Eq. 4: l_i = -log exp(cos(z_i, z'_i)/tau) / sum_j exp(cos(z_i, z'_j)/tau), mean over i."""

    NAME = "simcse"
    Options = SimcseOptions
    options: SimcseOptions
    PRESETS = read_presets(__file__)
    NEEDS_DROPOUT = True

    def __init__(self, encoder: Encoder, options: SimcseOptions) -> None:
        super().__init__(encoder, options)
        head = Projection(encoder.dimension, encoder.dimension, activation="tanh")
        self.head = attach_head(encoder, head if options.head else None, options.keep_head)

    def embed(self, batch: Batch) -> Embeddings:
        """The vectors z and z', each (n, d), in one pass: every row of it has a dropout mask of its own."""
        ids = self.encoder.tokenize(batch.first)
        z, z_prime = self.head(self.encoder(ids * 2, raw=True)).chunk(2)
        return z, z_prime

    def loss(self, embeddings: Embeddings, batch: Batch) -> Tensor:
        """Eq. 4."""
        z, z_prime = embeddings
        return info_nce(z, z_prime, temperature=self.options.temperature, same=self.same(batch))
