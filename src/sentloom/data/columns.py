"""Text columns of a data set: iterate in batches, flatten and rebuild list columns, join and hash rows."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from hashlib import blake2b
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from sentloom.data.dataset import BATCH_ROWS, FILE, LINE, Dataset, take_rows
from sentloom.data.shapes import COLUMNS, Shape, form_of, squash, text_columns
from sentloom.errors import InputError, option

Texts: TypeAlias = pa.LargeStringArray
SEPARATOR = pa.scalar("\0", pa.large_string())  # readers refuse NUL, so joined cells stay distinct


def walk(dataset: Dataset, columns: tuple[str, ...] | None = None) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Yield (number of the first row, batch) for each non-empty batch, in constant memory."""
    table = dataset.table if columns is None else dataset.table.select(list(columns))
    start = 0
    for batch in table.to_batches(max_chunksize=BATCH_ROWS):
        if batch.num_rows:
            yield start, batch
        start += batch.num_rows


def text_column(dataset: Dataset, asked: str | None, argument: str = "column") -> str:
    """The one text column, or the one that was asked for, by its name in the file; canonical names are known too."""
    columns = [name for name in text_columns(dataset.shape) if name != "negatives"]
    if asked is None and len(columns) == 1:
        return columns[0]
    own = [dataset.own_name(column) for column in columns]
    known = ((own, asked), ([squash(name) for name in own], squash(asked)), (columns, asked)) if asked else ()
    for names, name in known:
        if names.count(name) == 1:
            return columns[names.index(name)]
    fix = f"choose one, as in {option(argument, own[-1])}"
    raise InputError(option(argument), _why_none(dataset, asked), f"one of {', '.join(own)}", fix)


def _why_none(dataset: Dataset, asked: str | None) -> str:
    """Why no text column was chosen."""
    if not asked:
        return f"{dataset.shape} have several text columns"
    names = (*dataset.own_name("negatives").split(", "), "negatives")  # in the file they may be several columns
    if "negatives" in COLUMNS[dataset.shape] and squash(asked) in map(squash, names):
        return f"the column {asked!r} holds negatives, which can be several texts per row, and cannot be chosen"
    return f"there is no text column {asked!r}"


def searched_column(dataset: Dataset, asked: str | None) -> str:
    """The text column that is searched: the one that was asked for, or else the answers of pairs."""
    answers = asked is None and form_of(dataset.shape).answers
    return COLUMNS[dataset.shape][1] if answers else text_column(dataset, asked)


def only_column(dataset: Dataset, name: str) -> Dataset:
    """Return one text column as a data set of texts; rows keep their origin."""
    table = dataset.table.select([name, FILE, LINE]).rename_columns(["text", FILE, LINE])
    return replace(dataset.derive(table, f"column {name}", Shape.TEXTS), used={"text": dataset.used.get(name, name)})


def evenly_spaced(count: int, most: int) -> npt.NDArray[np.int64]:
    """Return at most `most` of the numbers from 0 up to `count`, evenly spaced."""
    return np.unique(np.linspace(0, count - 1, min(count, most)).astype(np.int64))


def sampled_texts(dataset: Dataset, name: str, rows: int) -> list[str]:
    """Return the sentences of a text column from at most `rows` evenly spaced rows."""
    column = take_rows(dataset.table.select([name]), evenly_spaced(len(dataset), rows)).column(0).combine_chunks()
    return [str(text) for text in flat(column)[0].to_pylist()]


def is_list(column: pa.Array) -> bool:
    """Whether a cell holds several sentences (`negatives`)."""
    return bool(pa.types.is_list(column.type))


def flat(column: pa.Array) -> tuple[Texts, np.ndarray]:
    """Return a column's sentences, and for each sentence its row in the batch."""
    if is_list(column):
        return column.flatten(), pc.list_parent_indices(column).to_numpy()
    return column, np.arange(len(column))


def refill(column: pa.Array, texts: Texts) -> pa.Array:
    """Replace a column's sentences with as many others, in the same order."""
    if not is_list(column):
        return texts
    offsets = pc.subtract(column.offsets, column.offsets[0])  # a slice of a list column keeps its parent's offsets
    return pa.ListArray.from_arrays(offsets, texts, type=column.type)


def mask(values: pa.BooleanArray) -> np.ndarray:
    """Convert Arrow booleans to a numpy mask."""
    return np.asarray(values.to_numpy(zero_copy_only=False))


def any_sentence(batch: pa.RecordBatch, columns: tuple[str, ...], test: Callable[[Texts], np.ndarray]) -> np.ndarray:
    """For each row, whether any of its sentences passes the test."""
    passed = np.zeros(batch.num_rows, bool)
    for name in columns:
        texts, owner = flat(batch.column(name))
        passed[owner[test(texts)]] = True
    return passed


def identical(batch: pa.RecordBatch, columns: tuple[str, ...]) -> np.ndarray:
    """For each row, whether the first two columns hold the same text."""
    return mask(pc.equal(batch.column(columns[0]), batch.column(columns[1])))


def as_text(column: pa.Array) -> Texts:
    """Convert each cell to one string: lists are joined, numbers become text."""
    return pc.binary_join(column, SEPARATOR) if is_list(column) else column.cast(pa.large_string())


def joined(batch: pa.RecordBatch, columns: tuple[str, ...]) -> Texts:
    """Join the named cells of each row to one string; strings are equal exactly if all these cells are equal."""
    cells = [as_text(batch.column(name)) for name in columns]
    return pc.binary_join_element_wise(*cells, SEPARATOR, null_handling="replace")


def hashes(texts: Texts) -> np.ndarray:
    """Hash each text to 64 bits. Ten million distinct texts have a collision in one of 400,000 runs."""
    cells = texts.cast(pa.large_binary()).to_pylist()
    return np.frombuffer(b"".join([blake2b(cell, digest_size=8).digest() for cell in cells]), np.uint64)


def among(values: np.ndarray, ordered: np.ndarray) -> np.ndarray:
    """For each value, whether it occurs in the sorted array `ordered`."""
    if len(ordered) == 0:
        return np.zeros(len(values), bool)
    spot = np.minimum(np.searchsorted(ordered, values), len(ordered) - 1)
    return np.asarray(ordered[spot] == values)


class Seen:
    """A growing set of hashes, 8 bytes each: sorted runs that are merged when their sizes are similar."""

    def __init__(self) -> None:
        self._runs: list[np.ndarray] = []

    def repeats(self, values: np.ndarray) -> np.ndarray:
        """For each value, whether it occurred before in this or an earlier call; adds all values to the set."""
        distinct, first, inverse = np.unique(values, return_index=True, return_inverse=True)
        known = np.zeros(len(distinct), bool)
        for run in self._runs:
            known |= among(distinct, run)
        self._remember(distinct[~known])
        again = first[inverse] != np.arange(len(values))
        return np.asarray(known[inverse] | again)

    def _remember(self, run: np.ndarray) -> None:
        if len(run) == 0:
            return
        self._runs.append(run)
        while len(self._runs) > 1 and len(self._runs[-2]) <= 2 * len(self._runs[-1]):
            merged = np.concatenate([self._runs.pop(), self._runs.pop()])
            merged.sort(kind="stable")  # linear on two sorted runs
            self._runs.append(merged)
