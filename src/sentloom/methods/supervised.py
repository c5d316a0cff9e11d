"""Supervised contrastive learning from labelled texts (Khosla et al., NeurIPS 2020).

Symbols: z_i is the vector of text i; P(i) are the other texts of the batch with its label, A(i) those that it is
compared with; tau is the temperature.
"""

from typing import Literal

import numpy as np
import torch
from torch import Tensor

from sentloom.data.batches import Batch
from sentloom.data.shapes import Shape
from sentloom.losses import supervised_contrastive
from sentloom.methods.method import Embeddings, MatryoshkaOptions, Method, NegativesOptions
from sentloom.methods.registry import read_presets
from sentloom.methods.settings import Positive


class SupervisedOptions(NegativesOptions, MatryoshkaOptions):
    """The paper's batch is multi-viewed: two augmentations of every row. Ours are two dropout masks."""

    temperature: Positive = 0.05  # tau
    positives_below: bool = False  # A(i) holds all of P(i), as in the paper; false: none but the positive itself
    dropout_views: Literal[1, 2] = 1  # 2: every row is also its own positive, so that a label with one row learns too


class Supervised(Method):
    """Eq. 2, L_out: -1/|P(i)| sum_p log exp(z_i.z_p/tau) / sum_a exp(z_i.z_a/tau), mean over the i with a positive.

    The rows of a batch are balanced over labels by `data.batches`. With one view, a row whose label has no other
    row in the batch is a negative of the others but not an anchor.
    """

    NAME = "supervised"
    Options = SupervisedOptions
    options: SupervisedOptions
    PRESETS = read_presets(__file__)
    SHAPES = (Shape.CLASSIFICATION,)

    def embed(self, batch: Batch) -> Embeddings:
        """The vectors z, (n, d), once or twice, in one pass."""
        return self.encode(*[batch.first] * self.options.dropout_views).chunk(self.options.dropout_views)

    def loss(self, embeddings: Embeddings, batch: Batch) -> Tensor:
        """Eq. 2."""
        z = torch.cat(embeddings)  # (b or 2b, d)
        positives, negatives = (mask.to(z.device) for mask in self.pairs(batch))
        tau, below = self.options.temperature, self.options.positives_below
        return supervised_contrastive(z, positives, negatives, temperature=tau, positives_below=below)

    def pairs(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Which rows are positives and which are negatives, each (n, n) with n = b or 2b.

        Two rows with the same text are neither: their closeness teaches nothing, and their labels may differ.
        """
        labels = np.tile(np.unique(batch.labels, return_inverse=True)[1], self.options.dropout_views)
        alike = torch.from_numpy(labels[:, None] == labels[None, :])
        same = self.same(batch)
        barred = torch.eye(len(batch), dtype=torch.bool) if same is None else same.cpu()
        barred = barred.repeat(self.options.dropout_views, self.options.dropout_views)
        return alike & ~barred & ~torch.eye(len(alike), dtype=torch.bool), ~alike & ~barred
