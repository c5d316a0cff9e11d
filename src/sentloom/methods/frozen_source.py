"""Frozen encoders: a source to learn from, and a guide that tells which candidates are not negatives.

Their vectors of the training data are computed once and stored on disk.
"""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from sentloom.data.batches import Batch, text_keys
from sentloom.data.dataset import Dataset
from sentloom.data.sentences import texts_of
from sentloom.data.shapes import text_columns
from sentloom.encoder import Encoder
from sentloom.encoder.pooling import Pooling
from sentloom.encoder.tokens import Role, is_asymmetric
from sentloom.methods.method import Log
from sentloom.methods.vector_store import Stored, stored_vectors

TIMED_TEXTS = 64
MarginKind = Literal["absolute", "relative"]


class FrozenSource(nn.Module):
    """An encoder that never changes and is always in evaluation mode. It reads the first column of the data."""

    def __init__(self, encoder: Encoder) -> None:
        super().__init__()
        self.encoder = encoder.requires_grad_(False).eval()
        self.stored: Stored | None = None  # (rows of the dataset, d); None: computed at each step

    @torch.no_grad()
    def forward(self, batch: Batch) -> Tensor:
        """The vectors of the first column, (n, d): read from disk after `prepare`, computed without it."""
        if self.stored is None:
            return self.encoder(self.encoder.tokenize(batch.first))
        return torch.from_numpy(self.stored[batch.rows]).to(next(self.encoder.parameters()))

    def prepare(self, data: Dataset, folder: Path, log: Log = lambda text: None) -> None:
        """Encode the first column of the data, or use the vectors of an earlier run; on a full disk, neither."""
        content = f"{data.sha256} {data.shape} {sorted(data.used.items())}"
        self.stored = stored_vectors(self.encoder, data.column(text_columns(data.shape)[0]), content, folder, log)

    def train(self, mode: bool = True) -> "FrozenSource":
        """Stay in evaluation mode: dropout would be noise in the vectors to learn from."""
        return super().train(False)


def load_source(name: str | None, pooling: str | None, encoder: Encoder) -> Encoder:
    """The encoder of that name; without a name, a copy of the encoder that is about to be trained."""
    if name is not None:
        return Encoder.load(name, pooling=pooling)
    source = encoder.copy()
    if pooling is not None:
        set_pooling(source, pooling)
    return source


def set_pooling(encoder: Encoder, pooling: str) -> None:
    """Give an encoder another pooling, if it supports it."""
    chosen = Pooling.parse(pooling)
    encoder.check(chosen)
    encoder.pooling = chosen


class FalseNegatives(NamedTuple):
    """What is no negative."""

    forth: Tensor  # (b, b), of q among p
    back: Tensor  # (b, b), of p among q
    hard: Tensor  # (b, m), of q among hard negatives


class Guide(nn.Module):
    """An encoder that never changes, and its vectors of the data."""

    def __init__(self, encoder: Encoder) -> None:
        super().__init__()
        self.encoder = encoder.requires_grad_(False).eval()
        self.roles: tuple[Role, Role] = ("query", "document") if is_asymmetric(encoder.prompts) else ("symmetric",) * 2
        self.stored: dict[Role, Stored | None] = {}
        self.keys = self.order = np.empty(0, np.int64)  # of the stored texts, sorted, and the row of each

    def prepare(self, data: Dataset, folder: Path, log: Log = lambda text: None) -> None:
        """Encode every distinct text of the data, or use the vectors of an earlier run."""
        texts = texts_of(data).column("text")
        content = f"distinct {data.sha256} {data.shape} {sorted(data.used.items())}"
        self.stored = {role: stored_vectors(self.encoder, texts, content, folder, log, role) for role in self.roles}
        keys = np.concatenate([text_keys(chunk.to_pylist()) for chunk in texts.chunks])
        self.order = np.argsort(keys, kind="stable")
        self.keys = keys[self.order]

    def rehearse(self, data: Dataset) -> float:
        """Time the guide on a few texts; any vectors will do for the steps that are timed next."""
        texts = texts_of(data).column("text")
        sample = texts.slice(0, TIMED_TEXTS).to_pylist()
        start = time.perf_counter()
        self.encoder.encode(sample)
        seconds = (time.perf_counter() - start) / len(sample)
        self.stored = {role: np.zeros((1, self.encoder.dimension), np.float32) for role in self.roles}
        self.keys, self.order = np.zeros(1, np.uint64), np.zeros(1, np.int64)
        return seconds * len(texts) * len(self.stored)

    def forward(self, texts: Sequence[str], role: Role = "symmetric") -> Tensor:
        """Unit vectors of texts, (n, d): read from disk after `prepare`, computed without it."""
        stored = self.stored.get(role)
        if stored is None:
            vectors = self.encoder.encode(list(texts), role=role)
        else:
            places = np.searchsorted(self.keys, text_keys(texts))
            rows = self.order[np.minimum(places, len(self.keys) - 1)]  # "", a missing hard negative, may be beyond
            vectors = stored[rows]
        return F.normalize(torch.from_numpy(np.array(vectors)).to(next(self.encoder.parameters())), dim=-1)

    def false_negatives(
        self, batch: Batch, negatives: Sequence[str], margin: float, kind: MarginKind
    ) -> "FalseNegatives":
        """What the guide finds closer than the positive, less the margin."""
        query, document = self.roles
        q, others = self(batch.first, query), self([*batch.second, *negatives], document)
        p, hard = others.split([len(batch.second), len(negatives)])
        scores, own = q @ p.T, (q * p).sum(dim=1)
        return FalseNegatives(*(false_negatives(s, own, margin, kind) for s in (scores, scores.T, q @ hard.T)))

    def train(self, mode: bool = True) -> "Guide":
        """Stay in evaluation mode."""
        return super().train(False)


def false_negatives(scores: Tensor, right: Tensor, margin: float, kind: MarginKind) -> Tensor:
    """(b, m), (b,) -> (b, m): candidates that the guide finds closer to q_i than its positive, less the margin.

    The limit is s(q_i, p_i) - margin (absolute) or (1 - margin) s(q_i, p_i) (relative).
    """
    limit = right - margin if kind == "absolute" else right - margin * right.abs()
    return scores > limit[:, None]
