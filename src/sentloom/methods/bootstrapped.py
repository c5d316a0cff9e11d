"""BSL, bootstrapped sentence representations without negatives (Zhang et al., ACL 2021).

Symbols: x1 and x2 are two views of a sentence; f_theta is the online encoder, p_theta its predictor; f_xi is the target
encoder, a moving average of f_theta with momentum delta; z = p_theta(f_theta(x)) and h = f_xi(x).
"""

from typing import Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from sentloom.data.batches import Batch
from sentloom.data.shapes import Shape
from sentloom.encoder import Encoder
from sentloom.losses import negative_cosine
from sentloom.methods.method import Embeddings, Method, Options
from sentloom.methods.registry import read_presets
from sentloom.methods.settings import Positive, Share


class BootstrappedOptions(Options):
    """The paper's predictor is one MLP; the official code has three in series, with fewer BatchNorms."""

    momentum: Share = 0.999  # delta
    predictor_depth: int = Field(1, ge=1)  # MLPs in series
    predictor_width: int = Field(8, ge=1)  # k: the hidden width is k * d
    batch_norm: Literal["all", "first"] = "all"  # after which of an MLP's two hidden layers
    target_dropout: bool = False
    scale: Positive = 1.0  # of the loss: the official code sums 2 - 2 cos in both directions, 4 times the gradient


class Bootstrapped(Method):
    """Eq. 2: L = 1/2 D(z1, h2) + 1/2 D(z2, h1), with D(z, h) = -cos(z, h) (eq. 1) and h constant."""

    NAME = "bootstrapped"
    Options = BootstrappedOptions
    options: BootstrappedOptions
    PRESETS = read_presets(__file__)
    # Texts: both views are the sentence itself under two dropout masks. Parallel: the two languages are the views.
    SHAPES = (Shape.PAIRS, Shape.TEXTS, Shape.PARALLEL)

    def __init__(self, encoder: Encoder, options: BootstrappedOptions) -> None:
        super().__init__(encoder, options)
        self.target = encoder.copy().requires_grad_(False)
        self.predictor = predictor(
            encoder.dimension, options.predictor_depth, options.predictor_width, options.batch_norm
        )

    def embed(self, batch: Batch) -> Embeddings:
        """f_theta and f_xi of both views, each (n, d). The predictor follows in the loss: BatchNorm mixes rows."""
        ids = [*self.encoder.tokenize(batch.first), *self.encoder.tokenize(batch.second)]
        online1, online2 = self.encoder(ids, raw=True).chunk(2)
        with torch.no_grad():
            h1, h2 = self.target(ids, raw=True).chunk(2)
        return online1, online2, h1, h2

    def loss(self, embeddings: Embeddings, batch: Batch) -> Tensor:
        """Eq. 2. The views go through the predictor one after the other, each with its own batch statistics."""
        online1, online2, h1, h2 = embeddings
        loss = (negative_cosine(self.predictor(online1), h2) + negative_cosine(self.predictor(online2), h1)) / 2
        return self.options.scale * loss

    @torch.no_grad()
    def after_step(self) -> None:
        """Eq. 4: xi <- delta xi + (1 - delta) theta."""
        for xi, theta in zip(self.target.parameters(), self.encoder.parameters(), strict=True):
            xi.mul_(self.options.momentum).add_(theta, alpha=1 - self.options.momentum)

    def train(self, mode: bool = True) -> "Bootstrapped":
        """The target has no dropout unless the options ask for it."""
        super().train(mode)
        self.target.train(mode and self.options.target_dropout)
        return self


def predictor(width: int, depth: int, k: int, batch_norm: str) -> nn.Sequential:
    """p_theta: `depth` MLPs d -> kd -> kd -> d in series, with BatchNorm and ReLU after hidden layers."""
    hidden = k * width

    def mlp() -> list[nn.Module]:
        second = [nn.BatchNorm1d(hidden)] if batch_norm == "all" else []
        return [
            *(nn.Linear(width, hidden), nn.BatchNorm1d(hidden), nn.ReLU()),
            *(nn.Linear(hidden, hidden), *second, nn.ReLU()),
            nn.Linear(hidden, width),
        ]

    return nn.Sequential(*(layer for _ in range(depth) for layer in mlp()))
