"""Unsupervised SimCSE: a sentence is its own positive, seen through two dropout masks (Gao, Yao and Chen, EMNLP 2021).

With two prompts that have a mask token, and without what these give around nothing, it is PromptBERT (Jiang et al.,
EMNLP 2022).

Symbols: z_i and z'_i are the vectors of sentence i under two dropout masks; tau is the temperature. h_i is a pooled
state behind a template, h^_i that of the template alone.
"""

import torch
from pydantic import model_validator
from torch import Tensor

from sentloom.data.batches import Batch
from sentloom.encoder import Encoder
from sentloom.encoder.heads import Projection
from sentloom.encoder.pooling import MASK_TOKEN
from sentloom.encoder.templates import check_template, template_bias
from sentloom.encoder.tokens import Prompt, prompt_for
from sentloom.errors import InputError
from sentloom.losses import info_nce
from sentloom.methods.method import Embeddings, MatryoshkaOptions, Method, NegativesOptions, attach_head
from sentloom.methods.registry import read_presets
from sentloom.methods.settings import Positive


class SimcseOptions(NegativesOptions, MatryoshkaOptions):
    """The head is linear + tanh, d to d; the paper trains with it and drops it at inference."""

    temperature: Positive = 0.05
    head: bool = True
    keep_head: bool = False
    other_prompt: Prompt | None = None  # around the sentence of z'; None: the encoder's own, as for z
    denoise: bool = False  # z is h - h^

    @model_validator(mode="after")
    def _dimensions_that_stay(self) -> "SimcseOptions":
        if self.dimensions and self.head and not self.keep_head:
            raise ValueError("dimensions of a head that is dropped: set head: false or keep_head: true")
        return self

    @model_validator(mode="after")
    def _a_head_for_whole_states(self) -> "SimcseOptions":
        if self.denoise and self.head and self.keep_head:
            raise ValueError("keep_head with denoise: inference, which subtracts nothing, would need another head")
        return self


class Simcse(Method):
    """Eq. 4: l_i = -log exp(cos(z_i, z'_i)/tau) / sum_j exp(cos(z_i, z'_j)/tau), mean over i."""

    NAME = "simcse"
    Options = SimcseOptions
    options: SimcseOptions
    PRESETS = read_presets(__file__)
    NEEDS_DROPOUT = True

    @classmethod
    def needed_pooling(cls, options: SimcseOptions) -> str | None:
        """The mask token's, of which the template's part is known."""
        return MASK_TOKEN if options.denoise else None

    def __init__(self, encoder: Encoder, options: SimcseOptions) -> None:
        super().__init__(encoder, options)
        own = prompt_for(encoder.prompts, "symmetric")
        self.prompts = (own, options.other_prompt or own)
        if options.denoise:
            _refuse_unknown_bias(encoder)
        if encoder.pooling.how == MASK_TOKEN:
            check_template(encoder.tokens, {"symmetric": self.prompts[1]})
        head = Projection(encoder.dimension, encoder.dimension, activation="tanh")
        self.head = attach_head(encoder, head if options.head else None, options.keep_head)

    def embed(self, batch: Batch) -> Embeddings:
        """The vectors z and z', each (n, d), in one pass: every row of it has a dropout mask of its own."""
        views = [self.encoder.tokens(batch.first, prompt) for prompt in self.prompts]
        states = self.encoder([*views[0], *views[1]], raw=True)
        if self.options.denoise:
            states = states - torch.cat([self._bias(*view) for view in zip(self.prompts, views, strict=True)])
        z, z_prime = self.head(states).chunk(2)
        return z, z_prime

    def _bias(self, prompt: Prompt, ids: list[list[int]]) -> Tensor:
        """h^ of each sentence, (n, d)."""
        return template_bias(self.encoder, prompt, [len(sentence) for sentence in ids])

    def loss(self, embeddings: Embeddings, batch: Batch) -> Tensor:
        """Eq. 4."""
        z, z_prime = embeddings
        return info_nce(z, z_prime, temperature=self.options.temperature, same=self.same(batch))


def _refuse_unknown_bias(encoder: Encoder) -> None:
    """What a template gives by itself is known if a model takes positions, and if nothing follows the pooling."""
    expected, fix = (
        "an encoder that runs packed, such as BERT, with mask pooling and no projection",
        "set denoise: false",
    )
    if encoder.pooling.how != MASK_TOKEN:
        raise InputError("denoise", f"the pooling is {encoder.pooling}", expected, f"{fix}, or pooling: {MASK_TOKEN}")
    if not encoder.backbone.packed:
        family = encoder.backbone.model.config.model_type
        raise InputError("denoise", f"positions cannot be given to a {family} model", expected, fix)
    if len(encoder.heads):
        raise InputError("denoise", "the encoder has a projection behind its pooling", expected, fix)
