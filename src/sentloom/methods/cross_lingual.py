"""Cross-lingual contrastive learning: a frozen source encoder, a trained target encoder, a memory queue.

From "Learning Monolingual Sentence Embeddings with Large-scale Parallel Translation Datasets" (anonymous submission to
ACL Rolling Review, 2022). Symbols: s_i the source encoder's vector of a sentence, t_i the target encoder's vector of
its translation; q the vectors in the queue; tau the temperature.
"""

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar, Literal

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
from sentloom.methods.frozen_source import FrozenSource, Head, build_head, load_source, set_pooling
from sentloom.methods.method import Embeddings, Method, Options, Positive, Tell, count_equal
from sentloom.methods.queue import Queue


class CrossLingualOptions(Options):
    """The paper prints no formula of its loss; its temperature is "parameter 1", read here as: learnt, from 1 on."""

    MODELS = ("source",)
    source: str | None = None  # a folder, a hub name or embedded; None: the encoder that the stage gets, frozen
    source_pooling: str | None = None  # None: the source's own
    source_trained: bool = False  # the trainable dual encoder
    shared: bool = False  # one encoder for both languages
    queue: int = Field(8192, ge=0)
    temperature: Positive = 1.0
    learn_temperature: bool = True  # start from `temperature`
    temperature_form: Literal["log-scale", "tau"] = "log-scale"  # what is learnt: theta, tau = exp(-theta); or tau
    greatest_scale: Positive = 100.0  # of 1 / tau, where it is learnt
    head: Head = "none"  # from the target encoder's width to the source's
    keep_head: bool = False
    inference_pooling: str | None = None  # None: that of training

    @model_validator(mode="after")
    def _consistent(self) -> "CrossLingualOptions":
        if self.queue and (self.source_trained or self.shared):
            raise ValueError("a queue would hold vectors of an encoder that has moved since: set queue: 0")
        if self.shared and (self.source_trained or self.source is not None or self.source_pooling is not None):
            raise ValueError("a shared encoder has no source of its own")
        if self.learn_temperature and self.temperature * self.greatest_scale < 1:
            raise ValueError("temperature is below 1 / greatest_scale")
        return self


TRAINING: dict[str, Any] = {
    "pooling": "mean",
    "max_length": 64,
    "batch": 64,
    "epochs": 1,
    "learning_rate": 2e-4,
    "schedule": "cosine",
    "warmup": 0.1,
    "clip": 1.0,
}
BASE: dict[str, Any] = {
    "pooling": "first",
    "max_length": 50,
    "batch": 400,
    "epochs": 2,
    "learning_rate": 2e-4,
    "schedule": "cosine",
    "dropout": 0.1,
    "queue": 10_000,
    "head": "linear-tanh",
}


class CrossLingual(Method):
    """l_i = -log exp(cos(t_i, s_i)/tau) / [sum_j exp(cos(t_i, s_j)/tau) + sum_q exp(cos(t_i, q)/tau)], mean over i."""

    NAME = "cross-lingual"
    Options = CrossLingualOptions
    options: CrossLingualOptions
    SHAPES = (Shape.PARALLEL, Shape.PAIRS)  # pairs: the anchor goes to the source
    FROZEN: tuple[str, ...] = ("source",)
    PRESETS: ClassVar[dict[str, dict[str, Any]]] = {
        "default": TRAINING,
        "paper": BASE,
        "official-code": BASE,  # none was released
        "large": BASE | {"batch": 200, "learning_rate": 5e-5, "queue": 200_000},
    }

    def __init__(self, encoder: Encoder, options: CrossLingualOptions) -> None:
        super().__init__(encoder, options)
        source = None if options.shared else load_source(options.source, options.source_pooling, encoder)
        width = encoder.dimension if source is None else source.dimension
        self.source = source if source is None or options.source_trained else FrozenSource(source)
        if not isinstance(self.source, FrozenSource):
            self.FROZEN = ()
        head = build_head(self.NAME, options.head, encoder.dimension, width)
        self.head = None if options.keep_head else head
        if head is not None and options.keep_head:
            encoder.heads.append(head)
        self.training_pooling = encoder.pooling
        if options.inference_pooling is not None:
            set_pooling(encoder, options.inference_pooling)
        self.queue = Queue(options.queue, width, keys=2)
        self.waiting: list[tuple[Tensor, Tensor]] = []  # for the queue, until the step is done
        if options.learn_temperature:
            start = options.temperature if options.temperature_form == "tau" else -math.log(options.temperature)
            self.theta = nn.Parameter(torch.tensor(start))

    @property
    def temperature(self) -> float | Tensor:
        """tau: fixed, or learnt."""
        if not self.options.learn_temperature:
            return self.options.temperature
        return self.theta if self.options.temperature_form == "tau" else torch.exp(-self.theta)

    def readings(self) -> dict[str, float]:
        """The temperature, where it is learnt."""
        return {"temperature": torch.as_tensor(self.temperature).item()} if self.options.learn_temperature else {}

    def prepare(self, data: Dataset, folder: Path, log: Tell = lambda text: None) -> None:
        """A frozen source's vectors, once and for all."""
        if isinstance(self.source, FrozenSource):
            self.source.prepare(data, folder, log)

    def embed(self, batch: Batch) -> Embeddings:
        """t, (n, d), and s where it is not on disk."""
        if self.source is None:
            target, source = self.translated([*batch.second, *batch.first]).chunk(2)
            return {"target": target, "source": source}
        target = self.translated(batch.second)
        if isinstance(self.source, FrozenSource):
            return {"target": target, **self.source.embed(batch)}
        return {"target": target, "source": self.source(self.source.tokenize(batch.first), raw=True)}

    def translated(self, texts: Sequence[str]) -> Tensor:
        """The trained encoder's vectors, (n, d), as training sees them."""
        with pooled_as(self.encoder, self.training_pooling):
            vectors = self.encoder(self.encoder.tokenize(texts), raw=True)
        return vectors if self.head is None else self.head(vectors)

    def masked(self, batch: Batch) -> int:
        """Pairs with an equal text: rows of the batch, and rows with entries of the queue."""
        in_queue = int(equal(both_keys(batch), self.queue.entries()[1].cpu()).sum())
        return count_equal(batch, mask=True) + in_queue

    def loss(self, embeddings: Embeddings, batch: Batch) -> Tensor:
        """InfoNCE from target to source; what says the same in either language is no negative."""
        target = embeddings["target"]
        source = self._sources(embeddings, batch)
        negatives, their_keys = self.queue.entries()
        keys = both_keys(batch).to(target.device)
        if self.training and self.options.queue:
            self.waiting.append((source.detach(), keys))
        return info_nce(
            target,
            source,
            temperature=self.temperature,
            negatives=negatives.to(source),
            same=equal(keys, torch.cat([keys, their_keys])),
        )

    def _sources(self, embeddings: Embeddings, batch: Batch) -> Tensor:
        if not isinstance(self.source, FrozenSource):
            return embeddings["source"]
        if "source" in embeddings:
            return embeddings["source"].detach()
        return self.source.vectors(batch, embeddings["target"])

    @torch.no_grad()
    def after_step(self) -> None:
        """Fill the queue; keep a learnt temperature in its bounds, where it still has a gradient."""
        for vectors, keys in self.waiting:
            self.queue.enqueue(vectors, keys)
        self.waiting.clear()
        if self.options.learn_temperature:
            scale = self.options.greatest_scale
            if self.options.temperature_form == "tau":
                self.theta.clamp_(min=1 / scale)
            else:
                self.theta.clamp_(max=math.log(scale))


@contextmanager
def pooled_as(encoder: Encoder, pooling: Pooling) -> Iterator[None]:
    """An encoder with another pooling for a while."""
    own, encoder.pooling = encoder.pooling, pooling
    try:
        yield
    finally:
        encoder.pooling = own


def both_keys(batch: Batch) -> Tensor:
    """(n, 2): a number for the text of either language."""
    keys = np.stack([text_keys(batch.first), text_keys(batch.second)], axis=1)
    return torch.from_numpy(keys.view(np.int64))


def equal(keys: Tensor, others: Tensor) -> Tensor:
    """(n, 2), (m, 2) -> (n, m): whether any text of one is any text of the other."""
    found = torch.zeros(len(keys), len(others), dtype=torch.bool, device=keys.device)
    for mine in keys.T:
        for theirs in others.T:
            found |= mine[:, None] == theirs[None, :]
    return found
