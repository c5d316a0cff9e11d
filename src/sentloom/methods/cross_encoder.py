"""What methods that learn from a cross-encoder share: its scores of each row's positive and hard negatives.

Symbols: q_i is an anchor, p_i its positive, n_ik its hard negatives; s is the student's similarity, t the teacher's
score. The teacher's scores of the training data are computed once and stored.
"""

import hashlib
import time
from functools import cached_property, partial
from pathlib import Path
from typing import Literal

import numpy as np
import torch
from pydantic import Field
from torch import Tensor

from sentloom.data.batches import Batch
from sentloom.data.dataset import BATCH_ROWS, Dataset
from sentloom.data.shapes import Shape
from sentloom.files import is_sealed, new_file, seal
from sentloom.locks import in_turn
from sentloom.losses import candidate_scores
from sentloom.methods.method import Embeddings, Log, MatryoshkaOptions, Method
from sentloom.methods.negatives import encode_candidates, sample_batch, sample_places
from sentloom.search.cross_encoder import CrossEncoder, PairScores, Scores, pair_scores

TIMED_PAIRS = 32


class TaughtOptions(MatryoshkaOptions):
    """Which teacher, and how the student's vectors are compared."""

    MODELS = ("teacher",)
    teacher: str = "reranker"  # a cross-encoder: a name of the catalogue, a folder or a hub name
    negatives: int = Field(1, ge=1)  # hard negatives per row; from rows with more, this many are sampled at each step
    similarity: Literal["cosine", "dot"] = "cosine"  # dot: for models whose vectors are searched by dot product
    asymmetric: bool = False  # q is a query, the others are documents: for models with such prompts


class TaughtMethod(Method):
    """A student that learns how a teacher scores the candidates of each anchor."""

    options: TaughtOptions
    SHAPES = (Shape.TRIPLETS,)
    stored: Scores | None = None  # (rows of the data, 1 + most negatives), NaN where a row has fewer; after `prepare`

    @cached_property
    def teacher(self) -> CrossEncoder:
        """The cross-encoder, loaded when something must be scored."""
        return CrossEncoder.load(self.options.teacher)

    def embed(self, batch: Batch) -> Embeddings:
        """The vectors of q and p, each (n, d), and of the sampled negatives, (n, m, d), in one pass."""
        return encode_candidates(self.encoder, batch, self.sampled(batch), self.options.asymmetric)

    def student_scores(self, embeddings: Embeddings) -> Tensor:
        """s, (b, 1 + m), the positive's first."""
        return candidate_scores(*embeddings, similarity=self.options.similarity)

    def teacher_scores(self, batch: Batch, like: Tensor) -> Tensor:
        """t, (b, 1 + m), the positive's first; NaN where a row has fewer negatives."""
        stored = self.stored
        scores = _scores(self.teacher.score, *_candidates(batch)) if stored is None else stored[batch.rows]
        sampled = np.full((len(batch), 1 + self.options.negatives), np.nan, np.float32)
        sampled[:, 0] = scores[:, 0]
        for row, (negatives, place) in enumerate(zip(batch.texts["negatives"], batch.places, strict=True)):
            chosen = sample_places(len(negatives), self.options.negatives, batch.random(int(place)))
            sampled[row, 1 : 1 + len(chosen)] = scores[row, 1 + chosen]
        return torch.from_numpy(sampled).to(like)

    def sampled(self, batch: Batch) -> list[list[str]]:
        """For each of the n rows, m hard negatives; "" where a row has fewer."""
        return sample_batch(batch, self.options.negatives)

    def prepare(self, data: Dataset, folder: Path, log: Log = lambda text: None) -> None:
        """Score all candidates of the data, or use the scores of an earlier run."""
        content = f"{self.teacher.identity} {data.sha256} {data.shape} {sorted(data.used.items())}"
        path = folder / f"teacher-{hashlib.sha256(content.encode()).hexdigest()[:20]}.npy"
        with in_turn(path, log):
            if not is_sealed(path):
                scores = _all_scores(self.teacher, data)
                with new_file(path) as part:
                    np.save(part, scores)
                seal(path)
            self.stored = np.load(path)

    def rehearse(self, data: Dataset) -> float:
        """Time the teacher on a few pairs; any scores will do for the steps that are timed next."""
        first = data.take(range(min(len(data), TIMED_PAIRS)))
        start = time.perf_counter()
        self.teacher.score(list(zip(first["anchor"], first["positive"], strict=True)))
        seconds = (time.perf_counter() - start) / len(first["anchor"])
        counts = [len(negatives) for negatives in data.column("negatives").to_pylist()]
        self.stored = np.zeros((len(data), 1 + max(counts)), np.float32)
        return seconds * (len(data) + sum(counts))


def _candidates(batch: Batch) -> tuple[list[str], list[list[str]]]:
    """The anchors, and for each its positive and all its hard negatives."""
    pairs = zip(batch.second, batch.texts["negatives"], strict=True)
    return list(batch.first), [[positive, *negatives] for positive, negatives in pairs]


def _all_scores(teacher: CrossEncoder, data: Dataset) -> Scores:
    """(rows, 1 + most negatives)."""
    parts = []
    for batch in data.table.select(["anchor", "positive", "negatives"]).to_batches(max_chunksize=BATCH_ROWS):
        anchors, positives, negatives = (column.to_pylist() for column in batch.columns)
        lists = [[positive, *others] for positive, others in zip(positives, negatives, strict=True)]
        parts.append(_scores(partial(pair_scores, teacher, show_progress=True), anchors, lists))
    widest = max(part.shape[1] for part in parts)
    padded = [np.pad(part, ((0, 0), (0, widest - part.shape[1])), constant_values=np.nan) for part in parts]
    return np.concatenate(padded)


def _scores(score: PairScores, anchors: list[str], lists: list[list[str]]) -> Scores:
    """Anchors, and the candidates of each -> (n, most candidates), NaN where there are fewer."""
    pairs = [(anchor, text) for anchor, texts in zip(anchors, lists, strict=True) for text in texts]
    sizes = np.array([len(texts) for texts in lists])
    scores = np.full((len(lists), sizes.max()), np.nan, np.float32)
    scores[np.arange(sizes.max()) < sizes[:, None]] = score(pairs)
    return scores
