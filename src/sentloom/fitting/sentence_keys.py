"""Sentences as hashes that ignore case, spacing and punctuation, for splits and leak checks."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sentloom.data.columns import among, flat, walk
from sentloom.data.dataset import Dataset
from sentloom.data.shapes import Shape, text_columns
from sentloom.hygiene.leaks import forms

FEWER = 0.8  # rows are grouped by their second text if it has fewer than this share of the first one's distinct texts

Keys = npt.NDArray[np.uint64]


@dataclass(frozen=True)
class Sentences:
    """The hashed sentences of a data set, and the hash that decides which side each row is on."""

    keys: Keys  # (sentences,)
    owners: npt.NDArray[np.int64]  # (sentences,): the row of each
    draws: Keys  # (rows,)

    def of(self, rows: npt.NDArray[np.bool_]) -> Keys:
        """The distinct sentences of some rows, sorted."""
        return np.unique(self.keys[rows[self.owners]])

    def touching(self, keys: Keys) -> npt.NDArray[np.bool_]:
        """(rows,): whether any of a row's sentences is among `keys`, which are sorted."""
        found = np.zeros(len(self.draws), bool)
        found[self.owners[among(self.keys, keys)]] = True
        return found

    @property
    def distinct_rows(self) -> int:
        """The number of rows that differ in more than case, spacing and punctuation."""
        sums = np.zeros(len(self.draws), np.uint64)
        np.add.at(sums, self.owners, self.keys)
        return len(np.unique(sums))


def sentences(data: Dataset) -> Sentences:
    """Hash every sentence of all text columns, in one pass."""
    names = text_columns(data.shape)
    keys: dict[str, list[Keys]] = {name: [np.empty(0, np.uint64)] for name in names}
    owners: dict[str, list[npt.NDArray[np.int64]]] = {name: [np.empty(0, np.int64)] for name in names}
    for start, batch in walk(data, names):
        for name in names:
            texts, owner = flat(batch.column(name))
            keys[name].append(forms(texts)[-1])
            owners[name].append(start + owner)
    columns = {name: np.concatenate(parts) for name, parts in keys.items()}
    rows = np.concatenate([part for name in names for part in owners[name]])
    return Sentences(np.concatenate([*columns.values()]), rows, columns[grouping_column(data.shape, columns)])


def grouping_column(shape: Shape, keys: dict[str, Keys]) -> str:
    """The column whose text decides where a row goes: the first, or the second if it has fewer distinct texts.

    Otherwise a few hundred answers to thousands of questions would be on every side, and all training rows dropped.
    """
    first, *others = [name for name in keys if name != "negatives"]
    if others and shape is not Shape.NLI and len(np.unique(keys[others[0]])) < FEWER * len(np.unique(keys[first])):
        return others[0]
    return first


def distinct_keys(datas: Sequence[Dataset]) -> Keys:
    """The distinct sentences of data sets, as sorted hashes."""
    return union([sentences(data).keys for data in datas])


def union(parts: Sequence[Keys]) -> Keys:
    """All keys once, sorted."""
    return np.unique(np.concatenate([np.empty(0, np.uint64), *parts]))
