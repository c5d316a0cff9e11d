"""Batches as a pure function of (seed, step): no loader has a state, and a resumed run goes on with the next one."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b

import numpy as np
import numpy.typing as npt

from sentloom.data.dataset import Dataset
from sentloom.data.shapes import text_columns
from sentloom.errors import InputError

Rows = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Batch:
    """Some rows of a data set, or a part of them: `places` are the rows' positions in the whole batch."""

    texts: Mapping[str, Sequence[str]]  # column -> n texts
    rows: Rows  # (n,) in the data set
    places: Rows  # (n,)
    key: tuple[int, int]  # (seed, step): what random choices depend on

    def __len__(self) -> int:
        return len(self.rows)

    def part(self, start: int, stop: int) -> "Batch":
        """The rows from `start` up to `stop`."""
        texts = {name: column[start:stop] for name, column in self.texts.items()}
        return Batch(texts, self.rows[start:stop], self.places[start:stop], self.key)

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
        """(n, n): whether rows i and j share a text, so that neither is a negative of the other; false for i = j."""
        found = np.zeros((len(self), len(self)), bool)
        columns = [np.array([_hash(text) for text in column], np.uint64) for column in self.texts.values()]
        for left in columns:
            for right in columns:
                found |= left[:, None] == right[None, :]
        np.fill_diagonal(found, False)
        return found


def _hash(text: str) -> int:
    """Of a text without case and spacing."""
    bare = " ".join(text.casefold().split())
    return int.from_bytes(blake2b(bare.encode(), digest_size=8).digest(), "little")


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
        return _order(len(self.data), self.seed, epoch)[place * self.size : (place + 1) * self.size]

    def batch(self, step: int) -> Batch:
        """The batch of a step."""
        rows = self.rows(step)
        cells = self.data.take(rows)
        texts = {name: cells[name] for name in text_columns(self.data.shape)}
        return Batch(texts, rows, np.arange(len(rows)), (self.seed, step))


@lru_cache(maxsize=2)
def _order(rows: int, seed: int, epoch: int) -> Rows:
    """The permutation of an epoch, read-only since it is kept."""
    order = np.random.default_rng([seed, epoch]).permutation(rows)
    order.flags.writeable = False
    return order
