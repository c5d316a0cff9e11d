"""Contrastive learning from pairs and triplets: Sentence-T5 (Ni et al., 2022) and supervised SimCSE (Gao et al., 2021).

Symbols: a_i an anchor, p_i its positive, n_ik its hard negatives; tau the temperature.
"""

import math
from collections.abc import Sequence
from typing import Any, ClassVar, Literal

import numpy as np
import torch
from pydantic import Field, model_validator
from torch import Tensor, nn

from sentloom.data.batches import Batch, text_keys
from sentloom.data.shapes import Shape
from sentloom.encoder import Encoder
from sentloom.encoder.heads import Projection
from sentloom.encoder.prompts import Role
from sentloom.losses import contrastive
from sentloom.methods.method import Embeddings, Method, Options, Positive, count_equal, known_equal

GREATEST_SCALE = 100.0  # upper bound of a learned 1 / tau


class ContrastiveOptions(Options):
    """Sentence-T5's paper prints one direction, its code sums both; SimCSE has a head behind [CLS]."""

    temperature: Positive = 0.05
    learn_temperature: bool = False  # start from `temperature`
    directions: Literal["one", "both"] = "one"
    margin: float = 0.0
    negatives: int = Field(1, ge=0)  # hard negatives used a row; of more, as many are drawn at each step
    hard_negative_weight: float = 0.0  # added to the logits of a row's own
    projection: int | None = Field(None, ge=1)  # a linear map without bias to this width, kept, with unit length
    head: bool = False  # linear and tanh, d to d, kept
    asymmetric: bool = False  # anchors are queries, the others documents: for models with such prompts
    mask_duplicates: bool = True

    @model_validator(mode="after")
    def _within_bounds(self) -> "ContrastiveOptions":
        if self.learn_temperature and self.temperature * GREATEST_SCALE < 1:
            raise ValueError(f"a learned temperature starts at {1 / GREATEST_SCALE:g} or above")
        return self


# The second stage; the first has batch 2,048.
SENTENCE_T5: dict[str, Any] = {
    "mask_duplicates": False,
    "temperature": 0.01,
    "projection": 768,
    "batch": 512,
    "epochs": 1,
    "optimizer": "adafactor",
    "scale_parameter": True,
    "learning_rate": 1e-3,
    "warmup": 0.1,
}


class Contrastive(Method):
    """-log exp(cos(a_i, p_i)/tau) / sum_j (exp(cos(a_i, p_j)/tau) + sum_k exp(cos(a_i, n_jk)/tau)), mean over i."""

    NAME = "contrastive"
    REVISION = 2  # a learned temperature keeps its gradient at the bound
    Options = ContrastiveOptions
    options: ContrastiveOptions
    SHAPES = (Shape.TRIPLETS, Shape.PAIRS)
    PRESETS: ClassVar[dict[str, dict[str, Any]]] = {
        "default": {"batch": 64, "epochs": 1, "learning_rate": 2e-5, "schedule": "linear", "warmup": 0.1, "clip": 1.0},
        "paper": SENTENCE_T5 | {"schedule": "constant-then-linear"},
        "official-code": SENTENCE_T5 | {"schedule": "linear", "directions": "both", "dropout": 0.0},
        "simcse": {
            "mask_duplicates": False,
            "temperature": 0.05,
            "head": True,
            "pooling": "first",
            "max_length": 32,
            "batch": 512,
            "epochs": 3,
            "learning_rate": 5e-5,
            "schedule": "linear",
        },
        "gense": {
            "mask_duplicates": False,
            "temperature": 0.05,
            "batch": 512,
            "epochs": 3,
            "optimizer": "adafactor",
            "learning_rate": 5e-5,
            "schedule": "constant-then-linear",
            "warmup": 0.1,
        },
    }

    def __init__(self, encoder: Encoder, options: ContrastiveOptions) -> None:
        super().__init__(encoder, options)
        if options.head and not _has_head(encoder, encoder.dimension, bias=True, activation="tanh"):
            encoder.heads.append(Projection(encoder.dimension, encoder.dimension, activation="tanh"))
        if options.projection and not _has_head(encoder, options.projection, bias=False, activation="identity"):
            projection = Projection(encoder.dimension, options.projection, bias=False)
            nn.init.trunc_normal_(projection.linear.weight, std=encoder.dimension**-0.5)
            encoder.heads.append(projection)
        encoder.unit_length |= options.projection is not None
        if options.learn_temperature:
            self.log_scale = nn.Parameter(torch.tensor(-math.log(options.temperature)))

    @property
    def temperature(self) -> float | Tensor:
        """The temperature: fixed, or exp(-theta) for a learned theta."""
        if not self.options.learn_temperature:
            return self.options.temperature
        return torch.exp(-self.log_scale)

    @torch.no_grad()
    def after_step(self) -> None:
        """Bound a learned temperature here: a clamp in the forward pass has no gradient beyond the bound."""
        if self.options.learn_temperature:
            self.log_scale.clamp_(max=math.log(GREATEST_SCALE))

    def readings(self) -> dict[str, float]:
        """The temperature, if it is learned."""
        return {"temperature": torch.as_tensor(self.temperature).item()} if self.options.learn_temperature else {}

    def embed(self, batch: Batch) -> Embeddings:
        """Anchors (n, d), positives (n, d) and hard negatives (n, m, d) in one pass."""
        anchor: Role = "query" if self.options.asymmetric else "symmetric"
        document: Role = "document" if self.options.asymmetric else "symmetric"
        columns = [list(batch.first), list(batch.second)]
        drawn = self.drawn(batch)
        columns += [[row[k] for row in drawn] for k in range(self.options.negatives if drawn else 0)]
        ids = [
            *self.encoder.tokenize(columns[0], anchor),
            *(one for column in columns[1:] for one in self.encoder.tokenize(column, document)),
        ]
        anchors, positives, *negatives = self.encoder(ids, raw=True).split(len(batch))
        found = {"anchor": anchors, "positive": positives}
        return found | ({"negatives": torch.stack(negatives, dim=1)} if negatives else {})

    def drawn(self, batch: Batch) -> list[list[str]]:
        """As many hard negatives a row as are used: drawn from more; "" stands for one that is not there."""
        if "negatives" not in batch.texts or not self.options.negatives:
            return []
        wanted = self.options.negatives
        return [
            _draw(given, wanted, batch.random(int(place)))
            for given, place in zip(batch.texts["negatives"], batch.places, strict=True)
        ]

    def masked(self, batch: Batch) -> int:
        """Rows with an equal text."""
        return count_equal(batch, self.options.mask_duplicates)

    def loss(self, embeddings: Embeddings, batch: Batch) -> Tensor:
        """InfoNCE; a hard negative that says what the anchor or its positive says is none."""
        anchor, options = embeddings["anchor"], self.options
        barred = None
        if "negatives" in embeddings:
            barred = torch.from_numpy(self.barred(batch)).to(anchor.device)
        return contrastive(
            anchor,
            embeddings["positive"],
            embeddings.get("negatives"),
            temperature=self.temperature,
            margin=options.margin,
            own_weight=options.hard_negative_weight,
            same=known_equal(batch, anchor, options.mask_duplicates),
            barred=barred,
            both_ways=options.directions == "both",
        )

    def barred(self, batch: Batch) -> np.ndarray:
        """(b, b * m): which hard negatives do not count for which anchor."""
        texts = [text for row in self.drawn(batch) for text in row]
        found = np.repeat([[not text for text in texts]], len(batch), axis=0)
        if self.options.mask_duplicates:
            keys = text_keys(texts)
            for column in (batch.first, batch.second):
                found |= text_keys(column)[:, None] == keys[None, :]
        return found


def _has_head(encoder: Encoder, width: int, bias: bool, activation: str) -> bool:
    """Whether an earlier stage has put the head there: the papers' later stages go on with it."""
    last = encoder.heads[-1] if len(encoder.heads) else None
    return (
        isinstance(last, Projection)
        and last.linear.out_features == width
        and (last.linear.bias is not None) == bias
        and last.activation_name == activation
    )


def _draw(given: Sequence[str], wanted: int, random: np.random.Generator) -> list[str]:
    if len(given) <= wanted:
        return [*given, *[""] * (wanted - len(given))]
    return [given[place] for place in np.sort(random.choice(len(given), wanted, replace=False))]
