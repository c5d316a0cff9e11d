"""Small data sets, built by hand: of several chunks, and with known places."""

from collections.abc import Sequence

import pyarrow as pa

from sentloom.data.dataset import FILE, LINE, Dataset
from sentloom.data.shapes import COLUMNS, Shape, arrow_type


def build_dataset(shape: Shape, rows: Sequence[tuple], file: str = "data.tsv", chunk: int = 3) -> Dataset:
    """A data set of the given rows, `chunk` to a record batch; row i is line i + 2 of the file."""
    schema = pa.schema([*((name, arrow_type(name)) for name in COLUMNS[shape]), (FILE, pa.int32()), (LINE, pa.int64())])
    batches = []
    for start in range(0, len(rows), chunk):
        cells = [(*row, 0, number + 2) for number, row in enumerate(rows[start : start + chunk], start)]
        columns = zip(*cells, strict=True)
        arrays = [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)]
        batches.append(pa.record_batch(arrays, schema=schema))
    return Dataset(shape, pa.Table.from_batches(batches, schema), (file,), "line", "0" * 64)
