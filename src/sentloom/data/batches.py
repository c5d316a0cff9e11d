"""Batches as a pure function of (seed, step): no loader has a state, and a resumed run goes on with the next one."""

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
    """Some rows of a data set, or a part of them: `places` are the rows' positions in the whole batch."""

    texts: Mapping[str, Sequence[Any]]  # column -> n texts; of the column negatives, n lists of them
    rows: Rows  # (n,) in the data set
    places: Rows  # (n,)
    key: tuple[int, int]  # (seed, step): what random choices depend on
    labels: Sequence[str] = ()  # where rows have one

    def __len__(self) -> int:
        return len(self.rows)

    def part(self, start: int, stop: int) -> "Batch":
        """The rows from `start` up to `stop`."""
        texts = {name: column[start:stop] for name, column in self.texts.items()}
        return Batch(texts, self.rows[start:stop], self.places[start:stop], self.key, self.labels[start:stop])

    def random(self, place: int) -> np.random.Generator:
        """A generator for the row at a place of the whole batch: its draws do not depend on how the batch is cut."""
        return np.random.default_rng([*self.key, place + 1])  # numpy reads [a, b, 0] as [a, b]: an epoch's order

    @property
    def first(self) -> Sequence[str]:
        """The texts of the first column: the sentence itself, or its first view."""
        return next(iter(self.texts.values()))

    @property
    def second(self) -> Sequence[str]:
        """The texts of the second column; a data set of texts alone has the sentence itself there."""
        return list(self.texts.values())[1] if len(self.texts) > 1 else self.first

    def equal(self) -> npt.NDArray[np.bool_]:
        """(n, n): whether the first or second texts of rows i and j are equal, crosswise too; false for i = j.

        Then neither row is a negative of the other.
        """
        found = np.zeros((len(self), len(self)), bool)
        columns = [text_keys(self.first), text_keys(self.second)]
        for left in columns:
            for right in columns:
                found |= left[:, None] == right[None, :]
        np.fill_diagonal(found, False)
        return found


def text_keys(texts: Sequence[str]) -> npt.NDArray[np.uint64]:
    """A number for each text, the same for texts that differ in case and spacing alone."""
    bare = (" ".join(text.casefold().split()) for text in texts)
    digests = (blake2b(text.encode(), digest_size=8).digest() for text in bare)
    return np.array([int.from_bytes(digest, "little") for digest in digests], np.uint64)


@dataclass(frozen=True)
class Batches:
    """The batches of a data set. Every epoch is a permutation; its last, incomplete batch is left out."""

    data: Dataset
    size: int
    seed: int

    def __post_init__(self) -> None:
        if len(self.data) < self.size:
            found = f"{len(self.data)} rows"
            wanted = f"at least one batch of {self.size}"
            raise InputError(self.data.files[0], found, wanted, "give more data or a smaller batch")

    @property
    def an_epoch(self) -> int:
        """Batches of an epoch."""
        return len(self.data) // self.size

    def rows(self, step: int) -> Rows:
        """The rows of the batch of a step, counted from 0 over all epochs."""
        epoch, place = divmod(step, self.an_epoch)
        return epoch_order(len(self.data), self.seed, epoch)[place * self.size : (place + 1) * self.size]

    def batch(self, step: int) -> Batch:
        """The batch of a step."""
        rows = self.rows(step)
        cells = self.data.take(rows)
        texts = {name: cells[name] for name in text_columns(self.data.shape)}
        return Batch(texts, rows, np.arange(len(rows)), (self.seed, step), cells.get("label", ()))


@lru_cache(maxsize=8)
def epoch_order(rows: int, seed: int, epoch: int, stream: int = 0) -> Rows:
    """The permutation of an epoch, read-only since it is kept; streams of one seed are independent of each other."""
    order = np.random.default_rng([seed, epoch, 0, stream]).permutation(rows)
    order.flags.writeable = False
    return order
