"""What all baselines share: the interface for scoring."""

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

import numpy as np

from sentloom.data.distinct import as_texts, distinct, texts_at
from sentloom.encoder.encoder import Vectors
from sentloom.encoder.prompts import Role


class Baseline(Protocol):
    """Can be scored like an Encoder. Baselines that are fitted on the scored text also have a `fit(texts)`."""

    def fingerprint(self) -> str:
        """Return a hash of everything a vector depends on, except the text that it is yet to be fitted on."""

    def encode(self, texts: Sequence[str], *, role: Role = "symmetric", show_progress: bool = False) -> Vectors:
        """Return the vectors (n, dimension) of texts. An unfitted baseline is fitted on these texts."""


def of_distinct(texts: Iterable[str], encode: Callable[[list[str]], Vectors]) -> Vectors:
    """Encode each distinct text once; an item that is not a string is an error that names its position."""
    sequence = as_texts([texts] if isinstance(texts, str) else texts)
    rows, first_of_row = distinct(sequence)
    vectors = encode(texts_at(sequence, rows))[np.searchsorted(rows, first_of_row)]
    return vectors[0] if isinstance(texts, str) else vectors
