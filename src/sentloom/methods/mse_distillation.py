"""Distillation: a student mimics a teacher, of translations in both languages (Reimers and Gurevych, EMNLP 2020).

Symbols: M is the frozen teacher, M^ the student; s_i is a sentence, t_i its translation. Raw text has no t_i.
"""

from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor

from sentloom.data.batches import Batch
from sentloom.data.dataset import Dataset
from sentloom.data.shapes import Shape
from sentloom.encoder import Encoder
from sentloom.encoder.heads import normalize
from sentloom.methods.frozen_source import FrozenSource, load_source
from sentloom.methods.method import Embeddings, Head, Log, Method, Options, attach_head, build_head
from sentloom.methods.registry import read_presets


class MseDistillationOptions(Options):
    """The head is needed where the widths differ."""

    MODELS = ("source",)
    source: str | None = None  # M: a folder, a hub name or embedded; None: a frozen copy of the encoder to be trained
    source_pooling: str | None = None  # None: the source's own
    head: Head = "none"  # from the student's width to the teacher's
    keep_head: bool = True


class MseDistillation(Method):
    """L = mean over i of 1/2 (||M(s_i) - M^(s_i)||^2 + ||M(s_i) - M^(t_i)||^2) / d; of raw text, the first alone."""

    NAME = "mse-distillation"
    REVISION = 2
    Options = MseDistillationOptions
    options: MseDistillationOptions
    PRESETS = read_presets(__file__)
    SHAPES = (Shape.PARALLEL, Shape.PAIRS, Shape.TEXTS)

    def __init__(self, encoder: Encoder, options: MseDistillationOptions) -> None:
        super().__init__(encoder, options)
        self.source = FrozenSource(load_source(options.source, options.source_pooling, encoder))
        head = build_head(self.NAME, options.head, encoder.dimension, self.source.encoder.dimension)
        self.head = attach_head(encoder, head, options.keep_head)
        if head is None or options.keep_head:  # the saved encoder mimics the teacher's vectors, and so their length
            encoder.unit_length = self.source.encoder.unit_length

    @property
    def frozen(self) -> tuple[str, ...]:
        """The teacher M."""
        return ("source",)

    def embed(self, batch: Batch) -> Embeddings:
        """M^(s), M^(t) unless the rows are single texts, and M(s), each (n, d)."""
        columns = list(batch.texts.values())
        student = self.head(self.encode(*columns))
        of_each = (normalize(student) if self.source.encoder.unit_length else student).chunk(len(columns))
        return (*of_each, self.source(batch))

    def loss(self, embeddings: Embeddings, batch: Batch) -> Tensor:
        """The mean squared error over all columns."""
        *student, teacher = embeddings
        return F.mse_loss(torch.cat(student), teacher.detach().repeat(len(student), 1))

    def prepare(self, data: Dataset, folder: Path, log: Log = lambda text: None) -> None:
        """Store the teacher's vectors."""
        self.source.prepare(data, folder, log)
