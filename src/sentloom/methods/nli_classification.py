"""SBERT's classification objective: softmax over (u, v, |u - v|) (Reimers and Gurevych, EMNLP 2019).

Symbols: u and v are the vectors of premise and hypothesis; W_t maps their features to the three labels.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from sentloom.data.batches import Batch
from sentloom.data.nli import CONTRADICTION, ENTAILMENT, NEUTRAL, NOT_ENTAILMENT
from sentloom.data.shapes import Shape
from sentloom.encoder import Encoder
from sentloom.methods.method import Embeddings, Method, Options
from sentloom.methods.registry import read_presets

CLASSES = {ENTAILMENT: 0, NEUTRAL: 1, CONTRADICTION: 2, NOT_ENTAILMENT: 1}


class NliClassificationOptions(Options):
    """The paper leaves nothing open."""


class NliClassification(Method):
    """o = softmax(W_t (u, v, |u - v|)), trained with cross-entropy; W_t is dropped at inference."""

    NAME = "nli-classification"
    Options = NliClassificationOptions
    options: NliClassificationOptions
    PRESETS = read_presets(__file__)
    SHAPES = (Shape.NLI,)

    def __init__(self, encoder: Encoder, options: NliClassificationOptions) -> None:
        super().__init__(encoder, options)
        self.W_t = nn.Linear(3 * encoder.dimension, 3, bias=False)

    def embed(self, batch: Batch) -> Embeddings:
        """The vectors u and v, each (n, d)."""
        u, v = self.encode(batch.first, batch.second).chunk(2)
        return u, v

    def loss(self, embeddings: Embeddings, batch: Batch) -> Tensor:
        """Cross-entropy over the three labels."""
        u, v = embeddings
        labels = torch.tensor([CLASSES[label] for label in batch.labels], device=u.device)
        logits = self.W_t(torch.cat([u, v, (u - v).abs()], dim=1))  # (b, 3)
        return F.cross_entropy(logits, labels)
