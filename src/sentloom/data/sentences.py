"""Texts as a sequence, from a list, a column or a table, and the distinct ones of a sequence or a whole data set."""

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sentloom.arguments import kind_of
from sentloom.data.columns import searched_column
from sentloom.data.dataset import BATCH_ROWS, FILE, LINE, Dataset, keep_rows, scratch_table, shape_schema, take_rows
from sentloom.data.in_memory import is_table
from sentloom.data.readers import read
from sentloom.data.shapes import COLUMNS, Shape, form_of, text_columns
from sentloom.errors import InputError

Texts: TypeAlias = Sequence[str] | pa.ChunkedArray
SCHEMA = shape_schema(Shape.TEXTS)


def as_texts(texts: Any, *, answers: bool = False) -> Texts:
    """Return texts as an indexable sequence: lists, tuples and Arrow columns unchanged, a table's text column.

    With `answers`, that of pairs is the one with the answers.
    """
    if isinstance(texts, pa.Array):
        return pa.chunked_array([texts])
    if is_table(texts):
        return _text_column(texts, answers)
    if not isinstance(texts, Iterable) or isinstance(texts, Mapping | Set):  # a set has no order, a dict gives its keys
        raise InputError(
            "texts", f"found {kind_of(texts)}", "a string or a sequence of strings", "pass a list of strings"
        )
    return texts if isinstance(texts, (list, tuple, pa.ChunkedArray)) else list(texts)


def _text_column(table: Any, answers: bool) -> pa.ChunkedArray:
    """The texts of a Dataset, a DataFrame or the like, if there is one text column only, or else the answers."""
    data = read(table)
    if answers and form_of(data.shape).answers:
        return data.column(searched_column(data, None))
    if form_of(data.shape).sides > 1:
        names = [data.own_name(name) for name in COLUMNS[data.shape]]
        fix = f"pass one column, such as data[{names[0]!r}]"
        raise InputError(data.files[0], f"it has the columns {', '.join(names)}", "one column of texts", fix)
    return data.column("text")


def texts_at(texts: Texts, rows: NDArray[np.int64]) -> list[str]:
    """Return the texts of the given rows."""
    if isinstance(texts, pa.ChunkedArray):
        return list(take_rows(pa.table({"text": texts}), rows).column("text").to_pylist())
    return [texts[row] for row in rows]


def distinct(texts: Texts) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the rows where each distinct text first occurs, sorted, and for every row the first row with its text.

    Texts are compared by 128-bit hashes, so that ten million rows take megabytes instead of a copy of the texts.
    """
    digests = bytearray()
    for row, text in enumerate(_each(texts)):
        digests += _digest(row, text)
    keys = np.frombuffer(digests, dtype=np.uint64).reshape(-1, 2)
    order = np.lexsort((keys[:, 0], keys[:, 1]))  # stable: equal keys stay in row order
    fresh = np.ones(len(order), dtype=bool)
    fresh[1:] = (keys[order[1:]] != keys[order[:-1]]).any(axis=1)
    first_of_row = np.empty(len(order), dtype=np.int64)
    first_of_row[order] = order[fresh][np.cumsum(fresh) - 1]
    return np.sort(order[fresh]), first_of_row


def _each(texts: Texts) -> Iterator[str]:
    if isinstance(texts, pa.ChunkedArray):
        for chunk in texts.chunks:
            yield from chunk.to_pylist()
    else:
        yield from texts


def _digest(row: int, text: object) -> bytes:
    if not isinstance(text, str):
        problem = "found None" if text is None else f"found {type(text).__name__} {text!r}"
        raise InputError(f"texts, item {row}", problem[:80], "a string", "convert or drop it")
    try:
        return hashlib.blake2b(text.encode(), digest_size=16).digest()
    except UnicodeEncodeError as error:
        problem = f"found a lone surrogate at character {error.start}"
        raise InputError(f"texts, item {row}", problem, "valid Unicode", "decode the text again or drop it") from None


def texts_of(dataset: Dataset, *, repeats: bool = False) -> Dataset:
    """Return the distinct sentences of all text columns: a repeated one would be among its own negatives.

    With `repeats`, every sentence as often as it occurs.
    """
    if repeats:
        return dataset.derive(scratch_table(SCHEMA, _batches(dataset, BATCH_ROWS)), "all sentences", Shape.TEXTS)
    return dataset.derive(distinct_sentences(dataset), "distinct sentences", Shape.TEXTS)


def distinct_sentences(dataset: Dataset, batch_rows: int = BATCH_ROWS) -> pa.Table:
    """Collect the text and origin of every distinct sentence in all text columns, in order of first occurrence."""
    table = scratch_table(SCHEMA, _batches(dataset, batch_rows))
    fresh = np.zeros(len(table), dtype=bool)
    fresh[distinct(table.column("text"))[0]] = True
    return keep_rows(table, fresh)


def _batches(dataset: Dataset, batch_rows: int) -> Iterator[pa.RecordBatch]:
    names = text_columns(dataset.shape)
    for batch in dataset.table.to_batches(max_chunksize=batch_rows):
        cells = zip(*(batch.column(name).to_pylist() for name in names), strict=True)
        lists = [[text for cell in row for text in (cell if isinstance(cell, list) else [cell])] for row in cells]
        rows = np.repeat(np.arange(len(lists)), [len(sentences) for sentences in lists])
        texts = pa.array([text for sentences in lists for text in sentences], pa.large_string())
        yield pa.record_batch(
            [texts, *(batch.column(name).take(pa.array(rows)) for name in (FILE, LINE))], schema=SCHEMA
        )
