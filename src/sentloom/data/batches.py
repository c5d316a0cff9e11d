"""Batches as a pure function of (seed, step): loaders are stateless, and a resumed run continues with the next step."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from typing import Any

import numpy as np
import numpy.typing as npt

from sentloom.data.dataset import Dataset
from sentloom.data.shapes import text_columns
from sentloom.errors import InputError

Rows = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Batch:
    """A batch of rows, or a part of one: `places` are the rows' positions in the whole batch."""

    texts: Mapping[str, Sequence[Any]]  # column -> n texts, or n lists of texts for `negatives`
    rows: Rows  # (n,) in the data set
    places: Rows  # (n,)
    key: tuple[int, int]  # (seed, step), which seeds all random choices
    labels: Sequence[str] = ()  # empty if the rows have none
    scores: Sequence[float] = ()  # likewise

    def __len__(self) -> int:
        return len(self.rows)

    def part(self, start: int, stop: int) -> "Batch":
        """Return the rows from `start` up to `stop`."""
        texts = {name: column[start:stop] for name, column in self.texts.items()}
        labels, scores = self.labels[start:stop], self.scores[start:stop]
        return Batch(texts, self.rows[start:stop], self.places[start:stop], self.key, labels, scores)

    def random(self, place: int) -> np.random.Generator:
        """Return a generator for the row at a place; its draws do not depend on how the batch is split into parts."""
        return np.random.default_rng([*self.key, place + 1])  # numpy reads [a, b, 0] as [a, b], an epoch's order

    @property
    def first(self) -> Sequence[str]:
        """Texts of the first column: the sentence itself, or its first view."""
        return next(iter(self.texts.values()))

    @property
    def second(self) -> Sequence[str]:
        """Texts of the second column, or of the first if there is only one."""
        return list(self.texts.values())[1] if len(self.texts) > 1 else self.first

    def equal(self) -> npt.NDArray[np.bool_]:
        """Return an (n, n) mask of the rows i != j that share a text, in either of the first two columns.

        Such rows must not serve as negatives for each other.
        """
        found = np.zeros((len(self), len(self)), bool)
        columns = [text_keys(self.first), text_keys(self.second)]
        for left in columns:
            for right in columns:
                found |= left[:, None] == right[None, :]
        np.fill_diagonal(found, False)
        return found


def text_keys(texts: Sequence[str]) -> npt.NDArray[np.uint64]:
    """Hash each text, ignoring case and spacing."""
    bare = (" ".join(text.casefold().split()) for text in texts)
    digests = (blake2b(text.encode(), digest_size=8).digest() for text in bare)
    return np.array([int.from_bytes(digest, "little") for digest in digests], np.uint64)


@dataclass(frozen=True)
class Batches:
    """The batches of a data set. Every epoch is a new permutation; its last, incomplete batch is dropped."""

    data: Dataset
    size: int
    seed: int

    def __post_init__(self) -> None:
        if len(self.data) < self.size:
            problem = f"{len(self.data)} rows are fewer than one batch of {self.size}"
            raise InputError(self.data.files[0], problem, "", "give more data or a smaller batch")

    @property
    def per_epoch(self) -> int:
        """Batches per epoch."""
        return len(self.data) // self.size

    def rows(self, step: int) -> Rows:
        """Return the rows of the batch at a step, counted from 0 over all epochs."""
        epoch, place = divmod(step, self.per_epoch)
        return epoch_order(len(self.data), self.seed, epoch)[place * self.size : (place + 1) * self.size]

    def batch(self, step: int) -> Batch:
        """Return the batch at a step."""
        rows = self.rows(step)
        cells = self.data.take(rows)
        texts = {name: cells[name] for name in text_columns(self.data.shape)}
        key, labels, scores = (self.seed, step), cells.get("label", ()), cells.get("score", ())
        return Batch(texts, rows, np.arange(len(rows)), key, labels, scores)


@lru_cache(maxsize=8)
def epoch_order(rows: int, seed: int, epoch: int, stream: int = 0) -> Rows:
    """Return the permutation of an epoch, read-only because it is cached; streams of one seed are independent."""
    order = np.random.default_rng([seed, epoch, 0, stream]).permutation(rows)
    order.flags.writeable = False
    return order
