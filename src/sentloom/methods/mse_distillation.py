"""Multilingual distillation: a student mimics a teacher in two languages (Reimers and Gurevych, EMNLP 2020).

Symbols: M the teacher, frozen; M^ the student; s_i a sentence, t_i its translation.
"""

from pathlib import Path
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor

from sentloom.data.batches import Batch
from sentloom.data.dataset import Dataset
from sentloom.data.shapes import Shape
from sentloom.encoder import Encoder
from sentloom.encoder.heads import normalize
from sentloom.methods.frozen_source import FrozenSource, Head, build_head, load_source
from sentloom.methods.method import Embeddings, Method, Options, Tell


class MseDistillationOptions(Options):
    """The head is needed where the widths differ."""

    MODELS = ("source",)
    source: str | None = None  # M: a folder, a hub name or embedded; None: the encoder that the stage gets, frozen
    source_pooling: str | None = None  # None: the source's own
    head: Head = "none"  # from the student's width to the teacher's
    keep_head: bool = True


TRAINING: dict[str, Any] = {
    "pooling": "mean",
    "max_length": 128,
    "batch": 64,
    "epochs": 20,
    "learning_rate": 2e-5,
    "eps": 1e-6,
    "schedule": "linear",
    "warmup": 0.1,
}


class MseDistillation(Method):
    """L = mean over i of 1/2 (||M(s_i) - M^(s_i)||^2 + ||M(s_i) - M^(t_i)||^2) / d."""

    NAME = "mse-distillation"
    Options = MseDistillationOptions
    options: MseDistillationOptions
    SHAPES = (Shape.PARALLEL, Shape.PAIRS)
    FROZEN = ("source",)
    PRESETS: ClassVar[dict[str, dict[str, Any]]] = {
        "default": TRAINING | {"epochs": 1, "learning_rate": 2e-4, "schedule": "cosine", "max_length": 64, "clip": 1.0},
        "paper": TRAINING,
        "official-code": TRAINING | {"epochs": 5, "clip": 1.0, "weight_decay": 0.01},
    }

    def __init__(self, encoder: Encoder, options: MseDistillationOptions) -> None:
        super().__init__(encoder, options)
        self.source = FrozenSource(load_source(options.source, options.source_pooling, encoder))
        head = build_head(self.NAME, options.head, encoder.dimension, self.source.encoder.dimension)
        self.head = None if options.keep_head else head
        if head is not None and options.keep_head:
            encoder.heads.append(head)
        if self.head is None:  # what is saved then mimics the teacher's vectors, and so their length
            encoder.unit_length = self.source.encoder.unit_length

    def prepare(self, data: Dataset, folder: Path, log: Tell = lambda text: None) -> None:
        """The teacher's vectors, once and for all."""
        self.source.prepare(data, folder, log)

    def embed(self, batch: Batch) -> Embeddings:
        """M^(s) and M^(t), each (n, d), in one pass; and M(s) where it is not on disk."""
        ids = [*self.encoder.tokenize(batch.first), *self.encoder.tokenize(batch.second)]
        student = self.encoder(ids, raw=True)
        student = student if self.head is None else self.head(student)
        of_source, of_target = (normalize(student) if self.source.encoder.unit_length else student).chunk(2)
        return {"of source": of_source, "of target": of_target, **self.source.embed(batch)}

    def loss(self, embeddings: Embeddings, batch: Batch) -> Tensor:
        """The mean squared error over both languages."""
        student = torch.cat([embeddings["of source"], embeddings["of target"]])
        teacher = embeddings["source"] if "source" in embeddings else self.source.vectors(batch, student)
        return F.mse_loss(student, teacher.detach().repeat(2, 1))
