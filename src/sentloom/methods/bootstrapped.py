"""Bootstrapped sentence representations: no negatives, a moving-average target (Zhang et al., ACL 2021).

Symbols: f_theta the online encoder with predictor p_theta; f_xi the target, a moving average of f_theta.
"""

from typing import Any, ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from sentloom.data.batches import Batch
from sentloom.data.shapes import Shape
from sentloom.encoder import Encoder
from sentloom.losses import negative_cosine, nt_xent
from sentloom.methods.method import Embeddings, Method, Options, Positive, Share, count_equal, known_equal


class BootstrappedOptions(Options):
    """The paper's predictor is one MLP, the official code's three in series, with fewer BatchNorms."""

    objective: Literal["bootstrap", "nt-xent"] = "bootstrap"  # nt-xent: the paper's baseline with 2(n - 1) negatives
    momentum: Share = 0.999  # delta
    predictor_depth: int = Field(1, ge=1)  # MLPs in series
    predictor_width: int = Field(8, ge=1)  # k: hidden width over d
    batch_norm: Literal["all", "first"] = "all"  # behind which of an MLP's two hidden layers
    target_dropout: bool = False
    scale: Positive = 1.0  # of the loss; the official code sums 2 - 2 cos over both directions, four times the gradient
    temperature: Positive = 0.05  # of nt-xent
    mask_duplicates: bool = True  # of nt-xent: the bootstrap has no negatives


TRAINING: dict[str, Any] = {
    "pooling": "mean",
    "max_length": 64,
    "batch": 64,
    "epochs": 1,
    "optimizer": "adam",
    "learning_rate": 5e-4,
    "eps": 1e-6,
}


def predictor(width: int, depth: int, k: int, batch_norm: str) -> nn.Sequential:
    """p_theta: `depth` times d -> kd -> kd -> d, with BatchNorm and ReLU behind hidden layers."""
    hidden = k * width

    def mlp() -> list[nn.Module]:
        second = [nn.BatchNorm1d(hidden)] if batch_norm == "all" else []
        return [
            *(nn.Linear(width, hidden), nn.BatchNorm1d(hidden), nn.ReLU()),
            *(nn.Linear(hidden, hidden), *second, nn.ReLU()),
            nn.Linear(hidden, width),
        ]

    return nn.Sequential(*(layer for _ in range(depth) for layer in mlp()))


class Bootstrapped(Method):
    """L = 1/2 (-cos(p(f_theta(x1)), f_xi(x2))) + 1/2 (-cos(p(f_theta(x2)), f_xi(x1))), the target a constant."""

    NAME = "bootstrapped"
    Options = BootstrappedOptions
    options: BootstrappedOptions
    # Texts: both views are the sentence itself, told apart by dropout. Parallel: the two languages are the views.
    SHAPES = (Shape.PAIRS, Shape.TEXTS, Shape.PARALLEL)
    PRESETS: ClassVar[dict[str, dict[str, Any]]] = {
        "default": TRAINING,
        "paper": TRAINING | {"mask_duplicates": False, "weight_decay": 0.01},
        "official-code": TRAINING
        | {
            "mask_duplicates": False,
            "optimizer": "adamw",
            "learning_rate": 1e-4,
            "warmup": 0.1,
            "schedule": "linear",
            "clip": 1.0,
            "predictor_depth": 3,
            "predictor_width": 10,
            "batch_norm": "first",
            "target_dropout": True,
            "scale": 4.0,
        },
    }

    def __init__(self, encoder: Encoder, options: BootstrappedOptions) -> None:
        super().__init__(encoder, options)
        if options.objective == "bootstrap":
            self.target = encoder.copy().requires_grad_(False)
            self.predictor = predictor(
                encoder.dimension, options.predictor_depth, options.predictor_width, options.batch_norm
            )

    def train(self, mode: bool = True) -> "Bootstrapped":
        """The target's dropout is off unless told otherwise."""
        super().train(mode)
        if self.options.objective == "bootstrap":
            self.target.train(mode and self.options.target_dropout)
        return self

    def embed(self, batch: Batch) -> Embeddings:
        """Both views through the online encoder, and through the target; each (n, d)."""
        ids = [*self.encoder.tokenize(batch.first), *self.encoder.tokenize(batch.second)]
        online1, online2 = self.encoder(ids, raw=True).chunk(2)
        if self.options.objective == "nt-xent":
            return {"online1": online1, "online2": online2}
        with torch.no_grad():
            target1, target2 = self.target(ids, raw=True).chunk(2)
        return {"online1": online1, "online2": online2, "target1": target1, "target2": target2}

    def masked(self, batch: Batch) -> int:
        """Rows with an equal text: of nt-xent, since the bootstrap has no negatives."""
        return count_equal(batch, self.options.objective == "nt-xent" and self.options.mask_duplicates)

    def loss(self, embeddings: Embeddings, batch: Batch) -> Tensor:
        """Each view predicts the other's target; the predictor sees one view at a time, over the whole batch."""
        online1, online2 = embeddings["online1"], embeddings["online2"]
        if self.options.objective == "nt-xent":
            same = known_equal(batch, online1, self.options.mask_duplicates)
            return nt_xent(online1, online2, temperature=self.options.temperature, same=same)
        loss = (
            negative_cosine(self.predictor(online1), embeddings["target2"])
            + negative_cosine(self.predictor(online2), embeddings["target1"])
        ) / 2
        return self.options.scale * loss

    @torch.no_grad()
    def after_step(self) -> None:
        """Move the target: xi <- delta xi + (1 - delta) theta."""
        if self.options.objective == "bootstrap":
            for xi, theta in zip(self.target.parameters(), self.encoder.parameters(), strict=True):
                xi.mul_(self.options.momentum).add_(theta, alpha=1 - self.options.momentum)
