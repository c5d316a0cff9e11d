"""CoSENT: pairs of sentences in the order of their scores (Su, 2022; the first part of AnglE, Li and Li, ACL 2024).

Symbols: x_i and y_i are the vectors of pair i, s_i is its score; tau is the temperature, 1/20 in Su's words.
"""

import torch
from torch import Tensor

from sentloom.data.batches import Batch
from sentloom.data.shapes import Shape
from sentloom.losses import cosent
from sentloom.methods.method import Embeddings, MatryoshkaOptions, Method
from sentloom.methods.registry import read_presets
from sentloom.methods.settings import Positive


class CosentOptions(MatryoshkaOptions):
    """Scores may be on any scale, continuous or discrete: their order alone counts."""

    temperature: Positive = 0.05  # tau


class Cosent(Method):
    """log(1 + sum over all i, j with s_i > s_j of exp((cos(x_j, y_j) - cos(x_i, y_i))/tau))."""

    NAME = "cosent"
    Options = CosentOptions
    options: CosentOptions
    PRESETS = read_presets(__file__)
    SHAPES = (Shape.SCORED_PAIRS,)

    def embed(self, batch: Batch) -> Embeddings:
        """The vectors x and y, each (n, d)."""
        x, y = self.encode(batch.first, batch.second).chunk(2)
        return x, y

    def loss(self, embeddings: Embeddings, batch: Batch) -> Tensor:
        """All pairs of pairs in the batch whose scores differ."""
        x, y = embeddings
        return cosent(x, y, scores_of(batch, x), temperature=self.options.temperature)


def scores_of(batch: Batch, like: Tensor) -> Tensor:
    """The scores s, (b,), in double precision: rounding makes no ties."""
    return torch.tensor(batch.scores, dtype=torch.float64, device=like.device)
