"""Self-guided contrastive learning: a frozen copy's layers guide the [CLS] vector (Kim, Yoo and Lee, ACL 2021).

Symbols: c_i the [CLS] vector of the trained BERT_T; h_ik the pooled layer k of the frozen BERT_F; f the shared head;
phi(u, v) = exp(cos(f(u), f(v)) / tau).
"""

from typing import Any, ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from sentloom.data.batches import Batch
from sentloom.data.shapes import Shape
from sentloom.encoder import Encoder
from sentloom.errors import InputError
from sentloom.losses import guided_opt1, guided_opt3, info_nce, nt_xent
from sentloom.methods.method import Embeddings, Method, Options, Positive, count_equal, known_equal


class SelfGuidedOptions(Options):
    """`layers` leaves out some of BERT_F's layers (0 is the embedding output); None takes all."""

    objective: Literal["sg", "opt1", "opt2", "opt3"] = "opt3"
    layer_pooling: Literal["max", "mean", "first"] = "max"
    layers: tuple[int, ...] | None = Field(None, min_length=1)
    temperature: Positive = 0.01
    head_width: int | None = Field(4096, ge=1)  # None: no head
    regularizer: float = Field(0.1, ge=0)  # lambda
    guide_dropout: bool = False  # the official code turns the frozen copy's dropout on again
    mask_duplicates: bool = True


TRAINING: dict[str, Any] = {
    "pooling": "first",
    "max_length": 128,
    "batch": 16,
    "epochs": 1,
    "learning_rate": 5e-5,
    "betas": (0.9, 0.9),
    "schedule": "linear",
    "warmup": 0.1,
    "clip": 1.0,
    "freeze_layers": 0,
}


def projection_head(width: int, hidden: int) -> nn.Sequential:
    """f: two layers with GELU, weights N(0, 0.02), biases 0."""
    first, second = nn.Linear(width, hidden), nn.Linear(hidden, hidden)
    for layer in (first, second):
        nn.init.normal_(layer.weight, std=0.02)
        nn.init.zeros_(layer.bias)
    return nn.Sequential(first, nn.GELU(), second, nn.GELU())


def distance(encoder: Encoder, start: Encoder) -> Tensor:
    """||BERT_F - BERT_T||^2: the sum of squares of what training changed in an encoder."""
    pairs = zip(encoder.backbone.parameters(), start.backbone.parameters(), strict=True)
    moved = [(now - then).square().sum() for now, then in pairs if now.requires_grad]
    return torch.stack(moved).sum() if moved else torch.zeros((), device=encoder.device)


class SelfGuided(Method):
    """L = L_objective + lambda * ||BERT_F - BERT_T||^2 (eq. 4 of the paper)."""

    NAME = "self-guided"
    Options = SelfGuidedOptions
    options: SelfGuidedOptions
    SHAPES = (Shape.TEXTS, Shape.PAIRS)  # pairs: the back-translation goes to the frozen side
    FROZEN = ("guide",)
    POOLING = "first"  # c_i is the [CLS] vector
    PRESETS: ClassVar[dict[str, dict[str, Any]]] = {
        "default": TRAINING,
        "paper": TRAINING | {"mask_duplicates": False},
        "official-code": TRAINING
        | {"mask_duplicates": False, "layer_pooling": "mean", "guide_dropout": True, "weight_decay": 0.01, "eps": 1e-6},
    }

    def __init__(self, encoder: Encoder, options: SelfGuidedOptions) -> None:
        super().__init__(encoder, options)
        if len(encoder.heads):
            found = "an encoder with a projection behind its pooling"
            raise InputError("self-guided", found, "one whose vectors are pooled states", "choose another base")
        self.guide = encoder.copy().requires_grad_(False)
        self.layers = options.layers or tuple(range(encoder.backbone.num_layers + 1))
        if not all(0 <= layer <= encoder.backbone.num_layers for layer in self.layers):
            found, wanted = f"layers {self.layers}", f"layers from 0 to {encoder.backbone.num_layers}"
            raise InputError("self-guided", found, wanted, "choose among those")
        width = encoder.backbone.width
        self.f = projection_head(width, options.head_width) if options.head_width else nn.Identity()

    def train(self, mode: bool = True) -> "SelfGuided":
        """BERT_F stays in evaluation mode unless told otherwise: its dropout would be noise in the guide."""
        super().train(mode)
        self.guide.train(mode and self.options.guide_dropout)
        return self

    def embed(self, batch: Batch) -> Embeddings:
        """f(c), (n, e), and f(h), (n, K, e): all layers for OPT3, one drawn a sentence for the others."""
        c = self.encoder(self.encoder.tokenize(batch.first), raw=True)
        with torch.no_grad():
            h = self.guide.layers(self.guide.tokenize(batch.second), self.options.layer_pooling, self.layers)
        if self.options.objective != "opt3":
            h = h[torch.arange(len(h)), self.sampled(batch).to(h.device)][:, None]
        return {"c": self.f(c), "h": self.f(h)}

    def sampled(self, batch: Batch) -> Tensor:
        """The uniform sampler, (n,): for each sentence, at each step, which of the chosen layers guides it."""
        return torch.tensor([int(batch.random(place).integers(len(self.layers))) for place in batch.places])

    def masked(self, batch: Batch) -> int:
        """Rows with an equal text."""
        return count_equal(batch, self.options.mask_duplicates)

    def loss(self, embeddings: Embeddings, batch: Batch) -> Tensor:
        """The objective, and the distance from the start."""
        c, h = embeddings["c"], embeddings["h"]
        tau, same = self.options.temperature, known_equal(batch, c, self.options.mask_duplicates)
        objective = self.options.objective
        if objective == "opt3":
            loss = guided_opt3(c, h, temperature=tau, same=same)
        elif objective == "opt2":
            loss = info_nce(c, h[:, 0], temperature=tau, same=same)
        elif objective == "opt1":
            loss = guided_opt1(c, h[:, 0], temperature=tau, same=same)
        else:
            loss = nt_xent(c, h[:, 0], temperature=tau, same=same)
        strength = self.options.regularizer
        return loss + strength * distance(self.encoder, self.guide) if strength else loss
