"""Join several data sets of one shape."""

import hashlib
from collections import Counter
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from sentloom.data.dataset import FILE, LINE, Dataset
from sentloom.data.shapes import COLUMNS
from sentloom.errors import InputError


def join(datasets: Sequence[Dataset]) -> Dataset:
    """Concatenate data sets; every row keeps its file and line."""
    first = datasets[0]
    if len(datasets) == 1:
        return first
    other = next((one for one in datasets if one.shape is not first.shape), None)
    if other is not None:
        problem = f"its shape is {other.shape}, but the shape of {first.files[0]} is {first.shape}"
        raise InputError(other.files[0], problem, "files of one shape", "put them in separate stages")
    tables, offset = [], 0
    for one in datasets:
        table = one.table.select([*COLUMNS[one.shape], FILE, LINE])
        files = pc.add(table.column(FILE), pa.scalar(offset, pa.int32()))
        tables.append(table.set_column(table.schema.get_field_index(FILE), FILE, files))
        offset += len(one.files)
    names = {one.place_name for one in datasets}
    skipped: Counter[str] = Counter()
    for one in datasets:
        skipped.update(one.skipped)
    return Dataset(
        shape=first.shape,
        table=pa.concat_tables(tables),
        files=tuple(file for one in datasets for file in one.files),
        place_name=names.pop() if len(names) == 1 else "row",
        sha256=hashlib.sha256(" ".join(one.sha256 for one in datasets).encode()).hexdigest(),
        used=first.used,
        ignored=tuple(dict.fromkeys(name for one in datasets for name in one.ignored)),
        skipped=skipped,
        notes=tuple(note for one in datasets for note in one.notes),
        left_out=sum(one.left_out for one in datasets),
        irregular=tuple(kind for one in datasets for kind in one.irregular),
        sources=tuple(number for number, one in enumerate(datasets) for _ in one.files),
    )
