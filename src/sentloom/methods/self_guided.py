"""Self-guided contrastive learning: BERT's own layers guide its [CLS] vector (Kim, Yoo and Lee, ACL 2021).

Symbols: c_i is the [CLS] vector of sentence i from the trained BERT_T; h_ik is layer k of the frozen BERT_F, pooled
over tokens; f is the projection head, shared by both; phi(u, v) = exp(cos(f(u), f(v)) / tau); K layers guide. The paper
names its losses but does not number them.
"""

from collections.abc import Sequence
from typing import Literal

import torch
from pydantic import Field, model_validator
from torch import Tensor, nn

from sentloom.data.batches import Batch
from sentloom.data.shapes import Shape
from sentloom.encoder import Encoder
from sentloom.errors import InputError
from sentloom.losses import guided_opt1, guided_opt3, info_nce, nt_xent
from sentloom.methods.method import Embeddings, MatryoshkaOptions, Method, NegativesOptions
from sentloom.methods.registry import read_presets
from sentloom.methods.settings import Positive

OBJECTIVES = {"sg": nt_xent, "opt1": guided_opt1, "opt2": info_nce, "opt3": guided_opt3}


class SelfGuidedOptions(NegativesOptions, MatryoshkaOptions):
    """The losses L^base (sg), L^opt1, L^opt2 and L^opt3; the last one is the paper's SG-OPT."""

    objective: Literal["sg", "opt1", "opt2", "opt3"] = "opt3"
    layer_pooling: Literal["max", "mean", "first"] = "max"
    layers: tuple[int, ...] | None = Field(None, min_length=1)  # of BERT_F; 0 is the embedding output; None: all
    temperature: Positive = 0.01  # tau
    head_width: int | None = Field(4096, ge=1)  # of f; None: no head
    regularizer: float = Field(0.1, ge=0)  # lambda
    guide_dropout: bool = False  # the official code leaves BERT_F's dropout on
    # c_i: the [CLS] vector, as in the paper, or the vector that the encoder pools itself, which is our reading of the
    # method for encoders with another pooling.
    vector: Literal["first", "pooled"] = "first"

    @model_validator(mode="after")
    def _dimensions_that_stay(self) -> "SelfGuidedOptions":
        refuse_cut_head(self.dimensions, self.head_width)
        return self


class SelfGuided(Method):
    """L = L^objective + lambda * L^reg, with L^reg = ||BERT_F - BERT_T||^2."""

    NAME = "self-guided"
    Options = SelfGuidedOptions
    options: SelfGuidedOptions
    PRESETS = read_presets(__file__)
    SHAPES = (Shape.TEXTS, Shape.PAIRS)  # pairs: BERT_F reads the second text, such as a back-translation
    POOLING = "first"  # c_i is the [CLS] vector

    @classmethod
    def needed_pooling(cls, options: SelfGuidedOptions) -> str | None:
        """[CLS], unless c_i is the vector that the encoder pools itself."""
        return None if options.vector == "pooled" else cls.POOLING

    def __init__(self, encoder: Encoder, options: SelfGuidedOptions) -> None:
        super().__init__(encoder, options)
        self.layers = guiding_layers(encoder, options.layers)
        self.guide = encoder.copy().requires_grad_(False)  # BERT_F
        self.f = projection_head(encoder.backbone.width, options.head_width)

    @property
    def frozen(self) -> tuple[str, ...]:
        """BERT_F."""
        return ("guide",)

    def embed(self, batch: Batch) -> Embeddings:
        """f(c), (n, e), and f(h): all layers, (n, K, e), for opt3; else one sampled layer per sentence, (n, e)."""
        c = self.encode(batch.first)
        with torch.no_grad():
            h = self.guide.layers(self.guide.tokenize(batch.second), self.options.layer_pooling, self.layers)
        if self.options.objective != "opt3":
            h = h[torch.arange(len(h)), self.sampled(batch).to(h.device)]
        return self.f(c), self.f(h)

    def sampled(self, batch: Batch) -> Tensor:
        """The uniform sampler sigma, (n,): which of the layers guides each sentence at this step."""
        return torch.tensor([int(batch.random(place).integers(len(self.layers))) for place in batch.places])

    def loss(self, embeddings: Embeddings, batch: Batch) -> Tensor:
        """L^objective."""
        c, h = embeddings
        objective = OBJECTIVES[self.options.objective]
        return objective(c, h, temperature=self.options.temperature, same=self.same(batch))

    def total_loss(self, embeddings: Embeddings, batch: Batch) -> Tensor:
        """L^objective, summed over the dimensions that vectors can be cut to, plus lambda * L^reg, once."""
        loss, strength = super().total_loss(embeddings, batch), self.options.regularizer
        return loss + strength * distance(self.encoder, self.guide) if strength else loss

    def train(self, mode: bool = True) -> "SelfGuided":
        """BERT_F has no dropout unless the options ask for it: it would be noise in the guide."""
        super().train(mode)
        self.guide.train(mode and self.options.guide_dropout)
        return self


def guiding_layers(encoder: Encoder, layers: tuple[int, ...] | None) -> tuple[int, ...]:
    """The layers of BERT_F that guide; refuses those that the encoder does not have."""
    last = encoder.backbone.num_layers
    if len(encoder.heads):
        problem = "the encoder has a projection after its pooling"
        raise InputError("self-guided", problem, "an encoder whose vectors are pooled states", "choose another base")
    if layers is not None and not all(0 <= layer <= last for layer in layers):
        problem = f"the encoder does not have all of the layers {', '.join(map(str, layers))}"
        raise InputError("self-guided", problem, f"layers from 0 to {last}", "correct the option layers")
    return layers or tuple(range(last + 1))


def refuse_cut_head(dimensions: Sequence[int] | None, head_width: int | None) -> None:
    """Refuse to cut f(c) and f(h): f is dropped after training, and its dimensions are not those of the vectors."""
    if dimensions and head_width is not None:
        raise ValueError("dimensions of a head that is dropped after training: set head_width: null")


def projection_head(width: int, hidden: int | None) -> nn.Module:
    """f: two linear layers, each followed by GELU; weights from N(0, 0.02), biases 0."""
    if hidden is None:
        return nn.Identity()
    first, second = nn.Linear(width, hidden), nn.Linear(hidden, hidden)
    for layer in (first, second):
        nn.init.normal_(layer.weight, std=0.02)
        nn.init.zeros_(layer.bias)
    return nn.Sequential(first, nn.GELU(), second, nn.GELU())


def distance(encoder: Encoder, start: Encoder) -> Tensor:
    """L^reg: the sum of squared differences over the parameters that are trained."""
    pairs = zip(encoder.backbone.parameters(), start.backbone.parameters(), strict=True)
    moved = [(now - then).square().sum() for now, then in pairs if now.requires_grad]
    return torch.stack(moved).sum() if moved else torch.zeros((), device=encoder.device)
