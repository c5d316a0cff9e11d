"""What all baselines share: the form in which they are scored, and what they say when they cannot be saved."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import NoReturn, Protocol

import numpy as np

from sentloom.data.distinct import as_texts, distinct, texts_at
from sentloom.encoder.encoder import Vectors
from sentloom.encoder.prompts import Role
from sentloom.errors import ModelError


class Baseline(Protocol):
    """What can be scored as an Encoder is. Those that are fitted on the scored text have a `fit(texts)` as well."""

    @property
    def name(self) -> str:
        """As it is asked for."""

    @property
    def dimension(self) -> int:
        """The width of a vector."""

    def fingerprint(self) -> str:
        """A hash of all that a vector depends on; of one yet to be fitted, without the text it will be fitted on."""

    def encode(self, texts: Sequence[str], *, role: Role = "symmetric", show_progress: bool = False) -> Vectors:
        """The vectors (n, dimension) of texts. One yet to be fitted is fitted on these."""

    def save(self, folder: str | Path) -> None:
        """Write a sentence-transformers folder, or refuse."""


def of_distinct(texts: Iterable[str], encode: Callable[[list[str]], Vectors]) -> Vectors:
    """Encode each distinct text once; what is no text is refused by its position."""
    sequence = as_texts([texts] if isinstance(texts, str) else texts)
    rows, first_of_row = distinct(sequence)
    vectors = encode(texts_at(sequence, rows))[np.searchsorted(rows, first_of_row)]
    return vectors[0] if isinstance(texts, str) else vectors


def refuse_to_save(name: str, folder: str | Path, reason: str) -> NoReturn:
    """For a baseline that no folder can carry."""
    raise ModelError(
        str(folder), f"the baseline {name}, {reason}", "a model that a folder can hold", "score it by name"
    )
