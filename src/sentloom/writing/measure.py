"""How well a synthesizer writes and judges: perplexity, accuracy, and the score that selects its best weights."""

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch

from sentloom.data.batches import Batch
from sentloom.data.dataset import Dataset
from sentloom.data.shapes import text_columns
from sentloom.writing.instances import instances, losses
from sentloom.writing.language_model import LanguageModel

ROWS = 256  # read at a time
OFFICIAL_BATCH = 64  # sentences that the official code writes at a time
PerplexityBy = Literal["token", "batch"]


@dataclass(frozen=True)
class WriterScores:
    """Measured on held-out rows."""

    accuracy: float  # of the judgements, from 0 to 1
    perplexity: float  # per token of the sentences to write
    rows: int  # labelled sentences

    @property
    def score(self) -> float:
        """Accuracy in points minus ten times the perplexity."""
        return 100 * self.accuracy - 10 * self.perplexity


def measure(model: LanguageModel, data: Dataset, by: PerplexityBy = "token") -> WriterScores:
    """Judge and write every row of held-out data, triplets or NLI."""
    right = judged = 0
    written: list[tuple[float, int]] = []  # the loss and the tokens of every sentence, in order
    true, false = model.verdict_ids
    with _still(model):
        for start in range(0, len(data), ROWS):
            some = instances(model, rows_of(data, start, start + ROWS))
            found: dict[int, tuple[float, int]] = {}
            for group, each, first in losses(model, some):
                for one, loss, logits in zip(group, each.tolist(), first, strict=True):
                    if one.judged:
                        judged += 1
                        right += bool(logits[true] > logits[false]) == (one.target[0] == true)
                    else:
                        found[id(one)] = loss, len(one.target)
            written += [found[id(one)] for one in some if not one.judged]
    return WriterScores(right / max(1, judged), perplexity(written, by), judged)


def perplexity(written: Sequence[tuple[float, int]], by: PerplexityBy = "token") -> float:
    """Compute exp of the mean loss per token, over all sentences; by batch, of the mean over the official batches."""
    size = len(written) if by == "token" else OFFICIAL_BATCH
    batches = [written[start : start + size] for start in range(0, len(written), max(1, size))]
    means = [sum(loss for loss, _ in one) / max(1, sum(tokens for _, tokens in one)) for one in batches]
    return math.exp(min(sum(means) / max(1, len(means)), 100.0))


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
