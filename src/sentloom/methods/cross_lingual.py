"""Cross-lingual contrastive learning: a frozen source encoder, a trained target encoder, a queue of negatives.

From "Learning Monolingual Sentence Embeddings with Large-scale Parallel Translation Datasets" (anonymous submission to
ACL Rolling Review, 2022). Symbols: s_i is the source encoder's vector of a sentence, t_i the target encoder's vector of
its translation; q are the vectors in the queue; tau is the temperature. The paper prints no formula of its loss: its
eq. 1 to 7 are distances.
"""

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

import numpy as np
import torch
from pydantic import Field, model_validator
from torch import Tensor, nn

from sentloom.data.batches import Batch, text_keys
from sentloom.data.dataset import Dataset
from sentloom.data.shapes import Shape
from sentloom.encoder import Encoder
from sentloom.encoder.pooling import Pooling
from sentloom.losses import info_nce
from sentloom.methods.frozen_source import FrozenSource, load_source, set_pooling
from sentloom.methods.method import (
    Embeddings,
    Head,
    Log,
    MatryoshkaOptions,
    Method,
    NegativesOptions,
    attach_head,
    build_head,
)
from sentloom.methods.negatives import Queue
from sentloom.methods.registry import read_presets
from sentloom.methods.settings import Positive

MIN_TEMPERATURE = 0.01  # of a learned tau, as in CLIP
TRAINED_SOURCE = "source"  # its folder in that of the encoder


class CrossLingualOptions(NegativesOptions, MatryoshkaOptions):
    """The paper's temperature is "parameter 1": we read it as learned, starting at 1."""

    MODELS = ("source",)
    source: str | None = None  # a folder, a hub name or embedded; None: a frozen copy of the encoder to be trained
    source_pooling: str | None = None  # None: the source's own
    source_encoder: Literal["frozen", "trained", "shared"] = "frozen"  # the last two are the ablations of Table 5
    queue: int = Field(8192, ge=0)
    temperature: Positive = 1.0
    learn_temperature: bool = True  # starting at `temperature`
    temperature_speed: Positive = 1.0  # how many learning rates its logarithm moves in a step, at most, under Adam
    head: Head = "none"  # from the target encoder's width to the source's
    keep_head: bool = False
    inference_pooling: str | None = None  # None: the pooling of training

    @model_validator(mode="after")
    def _consistent(self) -> "CrossLingualOptions":
        if self.queue and self.source_encoder != "frozen":
            raise ValueError("a queue would hold vectors of an encoder that has changed since: set queue: 0")
        if self.source_encoder == "shared" and (self.source is not None or self.source_pooling is not None):
            raise ValueError("a shared encoder has no source of its own")
        if self.dimensions and self.head != "none" and not self.keep_head:
            raise ValueError("dimensions of a head that is dropped after training: set keep_head: true, or head: none")
        if self.learn_temperature and self.temperature < MIN_TEMPERATURE:
            raise ValueError(f"a learned temperature starts at {MIN_TEMPERATURE:g} or above")
        return self


class CrossLingual(Method):
    """l_i = -log exp(cos(t_i, s_i)/tau) / [sum_j exp(cos(t_i, s_j)/tau) + sum_q exp(cos(t_i, q)/tau)], mean over i."""

    NAME = "cross-lingual"
    REVISION = 2
    Options = CrossLingualOptions
    options: CrossLingualOptions
    PRESETS = read_presets(__file__)
    SHAPES = (Shape.PARALLEL, Shape.PAIRS)  # pairs: the source reads the anchor

    def __init__(self, encoder: Encoder, options: CrossLingualOptions) -> None:
        super().__init__(encoder, options)
        self.source = build_source(encoder, options)
        width = encoder.dimension if self.source is None else self.source.encoder.dimension
        head = build_head(self.NAME, options.head, encoder.dimension, width)
        self.head = attach_head(encoder, head, options.keep_head)
        self.training_pooling = encoder.pooling
        if options.inference_pooling is not None:
            set_pooling(encoder, options.inference_pooling)
        self.queue = Queue(options.queue, width, keys=2)
        self.waiting: list[tuple[Tensor, Tensor]] = []  # vectors and keys that enter the queue after the step
        if options.learn_temperature:
            # tau = exp(-speed theta)
            self.theta = nn.Parameter(torch.tensor(-math.log(options.temperature) / options.temperature_speed))

    def embed(self, batch: Batch) -> Embeddings:
        """The vectors t and s, each (n, d)."""
        if self.source is None:
            t, s = self.target(batch.second, batch.first).chunk(2)
            return t, s
        return self.target(batch.second), self.source(batch)

    def target(self, *columns: Sequence[str]) -> Tensor:
        """The trained encoder's vectors, (columns * n, d), as training uses them."""
        with pooled_as(self.encoder, self.training_pooling):
            return self.head(self.encode(*columns))

    def loss(self, embeddings: Embeddings, batch: Batch) -> Tensor:
        """InfoNCE from target to source, also of the first dimensions of the vectors."""
        t, s = embeddings
        s = s.detach() if self.frozen else s
        q = self.queue.entries()[0][:, : s.shape[1]]  # (m, d)
        return info_nce(t, s, temperature=self.temperature, negatives=q.to(s), same=self.same(batch))

    def total_loss(self, embeddings: Embeddings, batch: Batch) -> Tensor:
        """The batch enters the queue after the step, with whole vectors."""
        _, s = embeddings
        if self.training and self.options.queue:
            self.waiting.append((s.detach(), both_keys(batch).to(s.device)))
        return super().total_loss(embeddings, batch)

    @property
    def frozen(self) -> tuple[str, ...]:
        """The source encoder, except in the ablations of Table 5."""
        return ("source",) if isinstance(self.source, FrozenSource) else ()

    @torch.no_grad()
    def after_step(self) -> None:
        """Fill the queue. Bound tau here: a clamp in the forward pass would have no gradient beyond the bound."""
        for vectors, keys in self.waiting:
            self.queue.enqueue(vectors, keys)
        self.waiting.clear()
        if self.options.learn_temperature:
            self.theta.clamp_(max=math.log(1 / MIN_TEMPERATURE) / self.options.temperature_speed)

    @property
    def temperature(self) -> float | Tensor:
        """tau, fixed or learned."""
        if not self.options.learn_temperature:
            return self.options.temperature
        return torch.exp(-self.options.temperature_speed * self.theta)

    def readings(self) -> dict[str, float]:
        """The learned temperature."""
        return {"temperature": torch.as_tensor(self.temperature).item()} if self.options.learn_temperature else {}

    def same(self, batch: Batch) -> Tensor | None:
        """(b, b + m): which candidates, in batch and queue, share a text with a row in either language."""
        if not self.options.mask_duplicates:
            return None
        keys = both_keys(batch).to(self.encoder.device)
        return equal(keys, torch.cat([keys, self.queue.entries()[1]]))

    def masked(self, batch: Batch) -> int:
        """Pairs of rows, plus pairs of a row and an entry of the queue."""
        b, same = len(batch), self.same(batch)
        if same is None:
            return 0
        return (int(same[:, :b].sum()) - b) // 2 + int(same[:, b:].sum())

    def save(self, folder: Path) -> None:
        """Write the encoder; a trained source goes below it."""
        super().save(folder)
        if isinstance(self.source, TrainedSource):
            self.source.encoder.save(folder / TRAINED_SOURCE, golden=False)

    def prepare(self, data: Dataset, folder: Path, log: Log = lambda text: None) -> None:
        """Store a frozen source's vectors."""
        if isinstance(self.source, FrozenSource):
            self.source.prepare(data, folder, log)


class TrainedSource(nn.Module):
    """Ablation: the source encoder is trained too."""

    def __init__(self, encoder: Encoder) -> None:
        super().__init__()
        self.encoder = encoder

    def forward(self, batch: Batch) -> Tensor:
        """(n, d)."""
        return self.encoder(self.encoder.tokenize(batch.first), raw=True)


def build_source(encoder: Encoder, options: CrossLingualOptions) -> FrozenSource | TrainedSource | None:
    """The source encoder; None: the target encoder reads both languages."""
    if options.source_encoder == "shared":
        return None
    source = load_source(options.source, options.source_pooling, encoder)
    return TrainedSource(source) if options.source_encoder == "trained" else FrozenSource(source)


@contextmanager
def pooled_as(encoder: Encoder, pooling: Pooling) -> Iterator[None]:
    """Use another pooling inside a `with` block."""
    own, encoder.pooling = encoder.pooling, pooling
    try:
        yield
    finally:
        encoder.pooling = own


def both_keys(batch: Batch) -> Tensor:
    """(n, 2): a hash of each row's text in either language."""
    keys = np.stack([text_keys(batch.first), text_keys(batch.second)], axis=1)
    return torch.from_numpy(keys.view(np.int64))


def equal(keys: Tensor, others: Tensor) -> Tensor:
    """(n, 2), (m, 2) -> (n, m): whether any text of one is any text of the other."""
    shared = torch.zeros(len(keys), len(others), dtype=torch.bool, device=keys.device)
    for mine in keys.T:
        for theirs in others.T:
            shared |= mine[:, None] == theirs[None, :]
    return shared
