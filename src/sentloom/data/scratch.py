"""Tables on disk instead of in memory: record batches are written to an unnamed file, which is mapped as one table."""

import mmap
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO

import numpy as np
import pyarrow as pa

from sentloom.errors import SentloomError
from sentloom.files import cache_folder

FOLDER_VARIABLE = "SENTLOOM_SCRATCH"
BATCH_ROWS = 1 << 14  # rows held in memory at a time: some megabytes of sentences


def scratch_folder() -> Path:
    """Where scratch files go: the user's cache unless the variable names another, since /tmp is often memory."""
    named = os.environ.get(FOLDER_VARIABLE)
    return Path(named) if named else cache_folder()


@contextmanager
def _disk_errors(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise SentloomError(
            f"scratch folder {folder}",
            error.strerror or str(error),
            "a writable folder with space for a copy of the data",
            f"free some space there, or set {FOLDER_VARIABLE} to a folder on a larger disk.",
        ) from error


def _unnamed_file(folder: Path) -> IO[bytes]:
    with _disk_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
        return TemporaryFile(dir=folder)


def scratch_table(schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> pa.Table:
    """Write the batches to an unnamed temporary file and map it; the space is freed with the table."""
    folder = scratch_folder()
    file = _unnamed_file(folder)
    try:
        writer = pa.ipc.new_file(file, schema)
        for batch in batches:  # outside the guard: an error of the producer is not one of this folder
            with _disk_errors(folder):
                writer.write_batch(batch)
        with _disk_errors(folder):
            writer.close()
            file.flush()
            mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    finally:
        with suppress(OSError):  # closing flushes again, and a full disk was reported above
            file.close()
    return pa.ipc.open_file(pa.py_buffer(mapped)).read_all()


def take_rows(table: pa.Table, rows: np.ndarray) -> pa.Table:
    """Return the given rows in order. Table.take would first join all chunks, which copies the map to memory."""
    if len(rows) == 0:
        return table.slice(0, 0)
    chunks = table.to_batches()
    ends = np.cumsum([chunk.num_rows for chunk in chunks])
    order = np.argsort(rows, kind="stable")
    ordered = np.asarray(rows)[order]
    owner = np.searchsorted(ends, ordered, side="right")
    touched, first = np.unique(owner, return_index=True)
    parts = [
        chunks[number].take(pa.array(part - (ends[number] - chunks[number].num_rows)))
        for number, part in zip(touched, np.split(ordered, first[1:]), strict=True)
    ]
    back = np.argsort(order, kind="stable")
    return pa.Table.from_batches(parts).combine_chunks().take(pa.array(back))


def keep_rows(table: pa.Table, keep: np.ndarray) -> pa.Table:
    """Copy the rows where the mask is true to a new scratch table."""
    return scratch_table(table.schema, _kept(table, keep))


def _kept(table: pa.Table, keep: np.ndarray) -> Iterator[pa.RecordBatch]:
    start = 0
    for batch in table.to_batches(max_chunksize=BATCH_ROWS):
        yield batch.filter(pa.array(keep[start : start + batch.num_rows]))
        start += batch.num_rows
