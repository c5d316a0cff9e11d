"""AnglE: scored pairs in order of their angles in complex space (Li and Li, ACL 2024).

Symbols: x_i and y_i are the vectors of pair i, s_i is its score; w1, w2 and w3 weigh the three parts of the loss.
"""

from collections.abc import Callable

import numpy as np
import torch
from pydantic import model_validator
from torch import Tensor

from sentloom.data.batches import Batch
from sentloom.data.shapes import Shape
from sentloom.encoder import Encoder
from sentloom.errors import InputError
from sentloom.losses import angle, cosent, info_nce
from sentloom.methods.cosent import scores_of
from sentloom.methods.method import Embeddings, MatryoshkaOptions, Method, NegativesOptions
from sentloom.methods.registry import read_presets
from sentloom.methods.settings import Positive, Share, Weight


class AngleOptions(NegativesOptions, MatryoshkaOptions):
    """The paper's L_ibn takes pairs labelled 1 as positives; with other scores, those in the upper end of the range."""

    cosine_weight: Weight = 1.0  # w1
    in_batch_weight: Weight = 1.0  # w2
    angle_weight: Weight = 1.0  # w3
    temperature: Positive = 0.05  # of L_cos and L_ibn
    angle_temperature: Positive = 1.0  # of L_angle
    positive_from: Share = 0.8  # a pair is a positive of L_ibn if its score is this far up the range of the batch

    @model_validator(mode="after")
    def _some_part(self) -> "AngleOptions":
        if not (self.cosine_weight or self.in_batch_weight or self.angle_weight):
            raise ValueError("all three weights are 0")
        return self


class Angle(Method):
    """L = w1 L_cos + w2 L_ibn + w3 L_angle."""

    NAME = "angle"
    Options = AngleOptions
    options: AngleOptions
    PRESETS = read_presets(__file__)
    SHAPES = (Shape.SCORED_PAIRS,)

    def __init__(self, encoder: Encoder, options: AngleOptions) -> None:
        super().__init__(encoder, options)
        odd = [width for width in (encoder.dimension, *(options.dimensions or ())) if width % 2]
        if odd:
            problem = f"vectors of {odd[0]} dimensions have no two halves"
            raise InputError("angle", problem, "an even number: real and imaginary parts", "use the method cosent")

    def embed(self, batch: Batch) -> Embeddings:
        """The vectors x and y, each (n, d)."""
        x, y = self.encode(batch.first, batch.second).chunk(2)
        return x, y

    def loss(self, embeddings: Embeddings, batch: Batch) -> Tensor:
        """The three parts; one whose weight is 0 is not computed."""
        x, y = embeddings
        options, s = self.options, scores_of(batch, x)
        parts: list[tuple[float, Callable[[], Tensor]]] = [
            (options.cosine_weight, lambda: cosent(x, y, s, temperature=options.temperature)),  # L_cos
            (options.in_batch_weight, lambda: self.in_batch(x, y, batch)),  # L_ibn
            (options.angle_weight, lambda: angle(x, y, s, temperature=options.angle_temperature)),  # L_angle
        ]
        return torch.stack([weight * part() for weight, part in parts if weight]).sum()

    def in_batch(self, x: Tensor, y: Tensor, batch: Batch) -> Tensor:
        """L_ibn, both ways: InfoNCE of the pairs with high scores, all other rows as negatives; 0 without any."""
        high = torch.from_numpy(self.positive(batch)).to(x.device)
        if not high.any():
            return (x.sum() + y.sum()) * 0
        same = self.same(batch)
        among = None if same is None else torch.cat([same[high][:, high], same[high][:, ~high]], dim=1)
        tau = self.options.temperature
        ways = [
            info_nce(u[high], v[high], negatives=v[~high], temperature=tau, same=among) for u, v in ((x, y), (y, x))
        ]
        return torch.stack(ways).mean()

    def positive(self, batch: Batch) -> np.ndarray:
        """(b,): the pairs in the upper end of the range of the batch's scores; none if all scores are equal."""
        s = np.array(batch.scores, float)
        low, high = s.min(), s.max()
        return (s >= low + self.options.positive_from * (high - low)) & (high > low)
