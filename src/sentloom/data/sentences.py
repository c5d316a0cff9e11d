"""The distinct sentences of a data set, each with the file and line of its first occurrence."""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from sentloom.data.dataset import FILE, LINE, Dataset, shape_schema
from sentloom.data.distinct import distinct
from sentloom.data.scratch import BATCH_ROWS, keep_rows, scratch_table
from sentloom.data.shapes import Shape, text_columns

SCHEMA = shape_schema(Shape.TEXTS)


def texts_of(dataset: Dataset) -> Dataset:
    """Return the distinct sentences of all text columns: a repeated one would be among its own negatives."""
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
        rows = np.repeat(np.arange(len(lists)), [len(one) for one in lists])
        texts = pa.array([text for one in lists for text in one], pa.large_string())
        yield pa.record_batch(
            [texts, *(batch.column(name).take(pa.array(rows)) for name in (FILE, LINE))], schema=SCHEMA
        )
