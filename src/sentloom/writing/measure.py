"""How well a synthesizer writes and judges: perplexity, accuracy, and the score that selects its best weights."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import torch

from sentloom.data.batches import Batch
from sentloom.data.dataset import Dataset
from sentloom.data.shapes import text_columns
from sentloom.writing.instances import instances, losses
from sentloom.writing.language_model import LanguageModel

ROWS = 256  # read at a time


@dataclass(frozen=True)
class WriterScores:
    """Measured on held-out rows. Perplexity is averaged over tokens; the official code averages over batches."""

    accuracy: float  # of the judgements, from 0 to 1
    perplexity: float  # per token of the sentences to write
    rows: int  # labelled sentences

    @property
    def score(self) -> float:
        """Accuracy in points minus ten times the perplexity."""
        return 100 * self.accuracy - 10 * self.perplexity


def measure(model: LanguageModel, data: Dataset) -> WriterScores:
    """Judge and write every row of held-out data, triplets or NLI."""
    right = judged = tokens = 0
    nll = 0.0
    true, false = model.verdict_ids
    with _still(model):
        for start in range(0, len(data), ROWS):
            for group, each, first in losses(model, instances(model, rows_of(data, start, start + ROWS))):
                for one, loss, logits in zip(group, each.tolist(), first, strict=True):
                    if one.judged:
                        judged += 1
                        right += bool(logits[true] > logits[false]) == (one.target[0] == true)
                    else:
                        nll += loss
                        tokens += len(one.target)
    return WriterScores(right / max(1, judged), math.exp(min(nll / max(1, tokens), 100.0)), judged)


def rows_of(data: Dataset, start: int, stop: int) -> Batch:
    """Consecutive rows of a dataset, as a batch."""
    rows = np.arange(start, min(stop, len(data)))
    cells = data.take(rows)
    texts = {name: cells[name] for name in text_columns(data.shape)}
    return Batch(texts, rows, np.arange(len(rows)), (0, 0), cells.get("label", ()))


@contextmanager
def _still(model: LanguageModel) -> Iterator[None]:
    """Without dropout and gradients; afterwards as before."""
    before = model.training
    model.eval()
    try:
        with torch.inference_mode():
            yield
    finally:
        model.train(before)
