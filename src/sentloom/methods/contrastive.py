"""Contrastive learning from pairs and triplets.

Sentence-T5 (Ni et al., Findings of ACL 2022), supervised SimCSE (Gao et al., EMNLP 2021), GenSE (Chen et al., EMNLP
2022). Symbols: v_i is a sentence, v_i+ its positive, v_ik- its hard negatives; tau is the temperature.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import torch
from pydantic import Field, model_validator
from torch import Tensor, nn

from sentloom.data.batches import Batch
from sentloom.data.dataset import Dataset
from sentloom.data.shapes import Shape
from sentloom.encoder import Encoder
from sentloom.encoder.heads import Projection
from sentloom.losses import NoNegatives, Variant, contrastive
from sentloom.methods.frozen_source import Guide, MarginKind, load_source
from sentloom.methods.method import Embeddings, Log, MatryoshkaOptions, Method, NegativesOptions
from sentloom.methods.mlm import MaskedTokens, MlmOptions
from sentloom.methods.negatives import KnownPairs, encode_candidates, missing, right_answers, sample_batch
from sentloom.methods.registry import read_presets
from sentloom.methods.settings import Positive


class ContrastiveOptions(NegativesOptions, MatryoshkaOptions):
    """Sentence-T5's paper prints one direction, its code sums both; SimCSE has a head on [CLS]."""

    MODELS = ("guide",)
    temperature: Positive = 0.05  # tau
    directions: Literal["one", "both"] = "one"
    margin: float = 0.0  # subtracted from the positives' cosines (Sentence-T5's code)
    negatives: int = Field(1, ge=0)  # hard negatives per row; from rows with more, this many are sampled at each step
    hard_negative_weight: float = 0.0  # added to the logits of a row's own hard negatives (SimCSE's and GenSE's code)
    projection: int | None = Field(None, ge=1)  # Sentence-T5: a linear map to this width without bias, then unit length
    head: bool = False  # SimCSE: linear + tanh, d to d, kept
    mlm_weight: float = Field(0.0, ge=0)  # SimCSE "w/ MLM": the weight of masked language modelling beside the loss
    asymmetric: bool = False  # v is a query, the others are documents: for models with such prompts
    guided: bool = False  # GISTEmbed: candidates that a frozen guide finds closer to v than v+ are not negatives
    guide: str | None = None  # a folder, a hub name or embedded; None: a frozen copy of the encoder to be trained
    guide_margin: float = 0.0  # subtracted from the guide's cosine of v and v+; more candidates are left out
    guide_margin_kind: MarginKind = "absolute"  # relative: the share of that cosine that is subtracted

    @model_validator(mode="after")
    def _a_guide_that_guides(self) -> "ContrastiveOptions":
        if self.guide is not None and not self.guided:
            raise ValueError("a guide, but not guided: true")
        if self.mlm_weight and self.dimensions:
            raise ValueError("mlm_weight with dimensions: its loss has none")
        return self


class Contrastive(Method):
    """-log exp(cos(v_i, v_i+)/tau) / sum_j (exp(cos(v_i, v_j+)/tau) + sum_k exp(cos(v_i, v_jk-)/tau)), mean over i.

    Sentence-T5's eq. 2 (eq. 1 without hard negatives), GenSE's eq. 2 and 3, with the -log that they leave out.
    """

    NAME = "contrastive"
    REVISION = 2
    Options = ContrastiveOptions
    options: ContrastiveOptions
    PRESETS = read_presets(__file__)
    SHAPES = (Shape.TRIPLETS, Shape.PAIRS)

    def __init__(self, encoder: Encoder, options: ContrastiveOptions) -> None:
        super().__init__(encoder, options)
        self.known: KnownPairs | None = None  # of all rows, after `prepare`
        self.guide = Guide(load_source(options.guide, None, encoder)) if options.guided else None
        self.masked_tokens = MaskedTokens(encoder, MlmOptions()) if options.mlm_weight else None
        if options.head and not _has_head(encoder, encoder.dimension, bias=True, activation="tanh"):
            encoder.heads.append(Projection(encoder.dimension, encoder.dimension, activation="tanh"))
        if options.projection and not _has_head(encoder, options.projection, bias=False, activation="identity"):
            projection = Projection(encoder.dimension, options.projection, bias=False)
            nn.init.trunc_normal_(projection.linear.weight, std=encoder.dimension**-0.5)
            encoder.heads.append(projection)
        encoder.unit_length |= options.projection is not None

    @property
    def frozen(self) -> tuple[str, ...]:
        """The guide of GISTEmbed."""
        return () if self.guide is None else ("guide",)

    def prepare(self, data: Dataset, folder: Path, log: Log = lambda text: None) -> None:
        """Collect the known pairs of all rows, and store the guide's vectors."""
        self.known = KnownPairs.of_data(data)
        if self.guide is not None:
            self.guide.prepare(data, folder, log)

    def rehearse(self, data: Dataset) -> float:
        """The time that the guide needs for the data."""
        return 0.0 if self.guide is None else self.guide.rehearse(data)

    def embed(self, batch: Batch) -> Embeddings:
        """The vectors v and v+, each (n, d), and with hard negatives v-, (n, m, d), in one pass."""
        sampled = self.sampled(batch)
        embeddings = encode_candidates(self.encoder, batch, sampled, self.options.asymmetric)
        if self.masked_tokens is None:
            return embeddings
        rows = list(zip(batch.first, batch.second, *zip(*sampled, strict=True), strict=True))
        draws = [batch.random(int(place)) for place in batch.places]
        return (*embeddings, self.masked_tokens(self.encoder, rows, draws))

    def loss(self, embeddings: Embeddings, batch: Batch) -> Tensor:
        """Eq. 2; with `mlm_weight`, plus that many times the mean over all masked tokens of the batch."""
        if self.masked_tokens is None:
            return self.similarity_loss(embeddings, batch)
        *embeddings_only, masked = embeddings
        total, count = masked.sum(dim=0)
        return self.similarity_loss(tuple(embeddings_only), batch) + self.options.mlm_weight * total / count.clamp(
            min=1
        )

    def similarity_loss(self, embeddings: Embeddings, batch: Batch) -> Tensor:
        """Eq. 2."""
        v, v_plus, *v_minus = embeddings
        options = self.options
        return contrastive(
            v,
            v_plus,
            v_minus[0] if v_minus else None,
            temperature=options.temperature,
            variant=Variant(options.margin, options.hard_negative_weight, both_ways=options.directions == "both"),
            excluded=self.no_negatives(batch),
        )

    def no_negatives(self, batch: Batch) -> NoNegatives:
        """What is not a negative, by text or by the guide: of v among v+, (b, b), of v+ among v, and of v among v-."""
        negatives = [text for row in self.sampled(batch) for text in row]  # b * m
        same, barred = self.same(batch), self.barred(batch, negatives)
        if self.guide is None:
            return NoNegatives(same, barred=barred)
        margin, kind = self.options.guide_margin, self.options.guide_margin_kind
        false = self.guide.false_negatives(batch, negatives, margin, kind)
        known = torch.zeros_like(false.forth) if same is None else same
        return NoNegatives(known | false.forth, known.T | false.back, barred | false.hard)

    def same(self, batch: Batch) -> Tensor | None:
        """(b, b): rows that share a text, and v_j+ that are known positives of v_i in any row of the data."""
        equal = super().same(batch)
        if equal is None:
            return None
        known = self.known or KnownPairs.of_texts(batch.first, batch.second)
        return equal | torch.from_numpy(known.of_other_rows(batch)).to(equal.device)

    def sampled(self, batch: Batch) -> list[list[str]]:
        """For each of the n rows, m hard negatives; "" where a row has fewer. Pairs have none at all."""
        return sample_batch(batch, self.options.negatives)

    def barred(self, batch: Batch, negatives: Sequence[str]) -> Tensor:
        """(b, b * m): hard negatives that are not used: missing, or equal to the row's v or a known positive of it."""
        barred = missing(batch, negatives)
        if self.options.mask_duplicates:
            barred |= right_answers(batch, negatives, self.known)
        return torch.from_numpy(barred).to(self.encoder.device)


def _has_head(encoder: Encoder, width: int, bias: bool, activation: str) -> bool:
    """Whether an earlier stage has added this head: later stages of the papers continue to train it."""
    last = encoder.heads[-1] if len(encoder.heads) else None
    return (
        isinstance(last, Projection)
        and last.linear.out_features == width
        and (last.linear.bias is not None) == bias
        and last.activation_name == activation
    )
