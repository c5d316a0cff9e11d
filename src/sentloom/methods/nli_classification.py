"""SBERT's classification of NLI pairs: softmax over (u, v, |u - v|) (Reimers and Gurevych, EMNLP 2019)."""

from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from sentloom.data.batches import Batch
from sentloom.data.nli import CONTRADICTION, ENTAILMENT, NEUTRAL, NOT_ENTAILMENT
from sentloom.data.shapes import Shape
from sentloom.encoder import Encoder
from sentloom.methods.method import Embeddings, Method, Options

CLASSES = {ENTAILMENT: 0, NEUTRAL: 1, CONTRADICTION: 2, NOT_ENTAILMENT: 1}

TRAINING: dict[str, Any] = {
    "pooling": "mean",
    "max_length": 128,
    "batch": 16,
    "epochs": 1,
    "optimizer": "adam",
    "learning_rate": 2e-5,
    "schedule": "linear",
    "warmup": 0.1,
}


class NliClassificationOptions(Options):
    """The paper leaves nothing open here."""


class NliClassification(Method):
    """Cross-entropy of W (u, v, |u - v|) over entailment, neutral and contradiction; W is left out at the end."""

    NAME = "nli-classification"
    Options = NliClassificationOptions
    options: NliClassificationOptions
    SHAPES = (Shape.NLI,)
    PRESETS: ClassVar[dict[str, dict[str, Any]]] = {
        "default": TRAINING,
        "paper": TRAINING,
        "official-code": TRAINING | {"clip": 1.0, "optimizer": "adamw", "weight_decay": 0.01},
    }

    def __init__(self, encoder: Encoder, options: NliClassificationOptions) -> None:
        super().__init__(encoder, options)
        self.W = nn.Linear(3 * encoder.dimension, 3, bias=False)

    def embed(self, batch: Batch) -> Embeddings:
        """Premises u and hypotheses v, each (n, d), in one pass."""
        ids = [*self.encoder.tokenize(batch.first), *self.encoder.tokenize(batch.second)]
        u, v = self.encoder(ids, raw=True).chunk(2)
        return {"u": u, "v": v}

    def loss(self, embeddings: Embeddings, batch: Batch) -> Tensor:
        """Cross-entropy over the three classes."""
        u, v = embeddings["u"], embeddings["v"]
        labels = torch.tensor([CLASSES[label] for label in batch.labels], device=u.device)
        return F.cross_entropy(self.W(torch.cat([u, v, (u - v).abs()], dim=1)), labels)
