"""How fast an encoder reads. Encoding is paid for by the character: a long text takes as long as several short ones."""

import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sentloom.encoder import Encoder
from sentloom.evaluation.task import Task

TIMED_TEXTS = 64
PER_TOKEN = 5  # characters, roughly: an encoder reads so many times its greatest length of a text
BESIDES = 10  # characters that a text costs besides its own: special tokens and bookkeeping


@dataclass(frozen=True)
class Speed:
    """What encoding costs, measured on a sample of texts."""

    each: float  # seconds per text of the sample
    size: float  # of such a text, in characters
    longest: int  # characters that are read of a text

    def seconds(self, tasks: Sequence[Task]) -> float:
        """How long the texts of some tasks take."""
        texts = (text for task in tasks for some in task.texts.values() for text in some)
        return self.each / self.size * sum(_size(text, self.longest) for text in texts)


def measure_speed(encoder: Encoder, texts: Sequence[str]) -> Speed:
    """Encode a sample of texts by the clock."""
    sample = [texts[at] for at in np.linspace(0, len(texts) - 1, min(TIMED_TEXTS, len(texts))).astype(int)]
    start = time.perf_counter()
    encoder.encode(sample)
    each = (time.perf_counter() - start) / len(sample)
    longest = PER_TOKEN * encoder.tokens.max_length
    return Speed(each, sum(_size(text, longest) for text in sample) / len(sample), longest)


def _size(text: str, longest: int) -> int:
    return BESIDES + min(len(text), longest)
