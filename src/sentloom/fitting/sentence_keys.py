"""Sentences as hashes that ignore case, spacing and punctuation, for clusters, splits and leak checks.

Hard negatives connect no rows: many rows share them, and they say nothing about which texts belong together. A negative
that is a text of a held-out row is left out of its row instead.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sentloom.data.columns import among, flat, walk
from sentloom.data.dataset import Dataset
from sentloom.data.scratch import scratch_table
from sentloom.data.shapes import Shape, text_columns
from sentloom.hygiene.leaks import forms

NEGATIVES = "negatives"
FEWER = 0.8  # rows are grouped by their second text if it has fewer than this share of the first one's distinct texts

Keys = npt.NDArray[np.uint64]
Integers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Links:
    """What rows have: row `rows[i]` has the key `keys[i]`. Rows with a key in common are connected."""

    rows: Integers
    keys: Keys


def joined(parts: Sequence[Links]) -> Links:
    """All links of several parts."""
    return Links(np.concatenate([one.rows for one in parts]), np.concatenate([one.keys for one in parts]))


@dataclass(frozen=True)
class Sentences:
    """The hashed sentences of a data set, by column. The grouping text decides which side a row is on."""

    columns: Mapping[str, Links]
    grouping: str  # a column

    @property
    def connecting(self) -> list[str]:
        """The columns whose sentences connect rows: all but hard negatives."""
        return [name for name in self.columns if name != NEGATIVES]

    @property
    def texts(self) -> Links:
        """The sentences that connect rows."""
        return joined([self.columns[name] for name in self.connecting])

    @property
    def draws(self) -> Keys:
        """(rows,): the hash of the grouping text."""
        return self.columns[self.grouping].keys

    def of(self, rows: npt.NDArray[np.bool_]) -> Keys:
        """The distinct sentences of some rows, without hard negatives, sorted."""
        texts = self.texts
        return np.unique(texts.keys[rows[texts.rows]])

    def touching(self, keys: Keys) -> npt.NDArray[np.bool_]:
        """(rows,): whether any of a row's sentences, without hard negatives, is among `keys`, which are sorted."""
        found, texts = np.zeros(len(self.draws), bool), self.texts
        found[texts.rows[among(texts.keys, keys)]] = True
        return found

    @property
    def row_keys(self) -> Keys:
        """(rows,): a hash of all sentences of a row."""
        sums, texts = np.zeros(len(self.draws), np.uint64), joined(list(self.columns.values()))
        np.add.at(sums, texts.rows, texts.keys)
        return sums

    @property
    def distinct_rows(self) -> int:
        """The number of rows that differ in more than case, spacing and punctuation."""
        return len(np.unique(self.row_keys))


def sentences(data: Dataset) -> Sentences:
    """Hash every sentence of all text columns, in one pass."""
    names = text_columns(data.shape)
    parts = {name: [Links(np.empty(0, np.int64), np.empty(0, np.uint64))] for name in names}
    for start, batch in walk(data, names):
        for name in names:
            texts, owner = flat(batch.column(name))
            parts[name].append(Links(start + owner, forms(texts)[-1]))
    columns = {name: joined(some) for name, some in parts.items()}
    return Sentences(columns, grouping_column(data.shape, {name: one.keys for name, one in columns.items()}))


def grouping_column(shape: Shape, keys: Mapping[str, Keys]) -> str:
    """The column whose text decides where a row goes: the first, or the second if it has fewer distinct texts.

    Otherwise a few hundred answers to thousands of questions would be on every side, and all training rows dropped.
    """
    first, *others = [name for name in keys if name != NEGATIVES]
    if others and shape is not Shape.NLI and len(np.unique(keys[others[0]])) < FEWER * len(np.unique(keys[first])):
        return others[0]
    return first


def distinct_keys(datas: Sequence[Dataset]) -> Keys:
    """The distinct sentences of data sets, with hard negatives, as sorted hashes."""
    return union([links.keys for data in datas for links in sentences(data).columns.values()])


def connecting_keys(datas: Sequence[Dataset]) -> Keys:
    """The distinct sentences of data sets, without hard negatives, as sorted hashes."""
    return union([sentences(data).texts.keys for data in datas])


def apart_from(data: Dataset, keys: Keys) -> Dataset:
    """The rows that share no sentence with `keys`, which are sorted; hard negatives among these leave their rows."""
    touching = sentences(data).touching(keys)
    return without_negatives(data.select(~touching) if touching.any() else data, keys)


def without_negatives(data: Dataset, keys: Keys) -> Dataset:
    """The same rows without the hard negatives among `keys`, which are sorted. A row may be left with none."""
    if NEGATIVES not in text_columns(data.shape) or not len(keys):
        return data
    table = scratch_table(data.table.schema, (_without_negatives(batch, keys) for _, batch in walk(data)))
    return data.derive(table, f"without the negatives {hashlib.sha256(keys.tobytes()).hexdigest()}")


def _without_negatives(batch: pa.RecordBatch, keys: Keys) -> pa.RecordBatch:
    place = batch.schema.get_field_index(NEGATIVES)
    texts, owner = flat(batch.column(place))
    keep = ~among(forms(texts)[-1], keys)
    offsets = np.cumsum([0, *np.bincount(owner[keep], minlength=batch.num_rows)])
    kind = batch.schema.field(place).type
    lists = pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), texts.filter(pa.array(keep)), type=kind)
    return batch.set_column(place, batch.schema.field(place), lists)


def union(parts: Sequence[Keys]) -> Keys:
    """All keys once, sorted."""
    return np.unique(np.concatenate([np.empty(0, np.uint64), *parts]))
