"""Parquet and Arrow: typed columns, unpacked in small parts, so that a small file cannot fill the memory."""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from sentloom.data.cells import Chunk
from sentloom.data.dataset import BATCH_ROWS
from sentloom.data.findings import Findings
from sentloom.data.inputs import Input
from sentloom.data.limits import BATCH_BYTES, packed_room
from sentloom.errors import first_line

DAMAGE = (pa.ArrowException, OSError, UnicodeDecodeError)  # raised by Arrow for broken files, the last for names
ROW_BYTES = 8  # minimum per row, whatever it holds
Batches = Callable[[list[str]], Iterable[pa.RecordBatch]]  # reads some columns


@dataclass(frozen=True)
class Typed:
    """Opened data: the schema, how to read some of its columns, and how many bytes they may unpack to."""

    schema: pa.Schema
    batches: Batches
    room: int
    findings: Findings

    @property
    def names(self) -> list[str]:
        """The column names."""
        return list(self.schema.names)

    def peek(self, at: int) -> object:
        """Return the first cell of a column."""
        return next((chunk.columns[at][0] for chunk in self.chunks([at], [at]) if chunk.places), None)

    def chunks(self, positions: Sequence[int], labels: Sequence[int]) -> Iterator[Chunk]:
        """Yield the rows of some columns. In label columns, the numbers of named classes are replaced by the names."""
        classes = _class_names(self.schema)
        for row, batch in self._numbered([self.names[at] for at in positions]):
            cells = {at: _cells(batch.column(number)) for number, at in enumerate(positions)}
            for at in labels:
                words = classes.get(self.names[at], {})
                cells[at] = [words.get(cell, cell) for cell in cells[at]] if words else cells[at]
            yield Chunk(range(row, row + batch.num_rows), cells)

    def _numbered(self, names: list[str]) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Yield each part with the number of its first row, from 1; a decompression bomb is refused."""
        row, unpacked = 1, 0
        try:
            for batch in self.batches(names):
                unpacked += _unpacked(batch)
                if unpacked > self.room:
                    _stop_at_bomb(row, unpacked, self.room, self.findings)
                for part in _parts(batch):
                    yield row, part
                    row += part.num_rows
        except DAMAGE as error:
            stop_at_damage(error, row, self.findings)


def open_parquet(entry: Input, findings: Findings) -> Typed:
    """Open a parquet file."""
    file = pq.ParquetFile(entry.paths[0], page_checksum_verification=True)
    room = packed_room(entry.paths[0].stat().st_size)
    if file.metadata.num_rows * ROW_BYTES > room:
        _stop_at_bomb(0, file.metadata.num_rows * ROW_BYTES, room, findings)
    return Typed(file.schema_arrow, partial(_parquet_batches, entry.paths[0], file), room, findings)


def _parquet_batches(path: Path, file: pq.ParquetFile, names: list[str]) -> Iterator[pa.RecordBatch]:
    """Yield few rows at a time if texts are long: a dictionary may hold one long text for many rows."""
    leaves = [file.metadata.schema.column(at) for at in range(file.metadata.num_columns)]
    texts = [leaf.path for leaf in leaves if leaf.physical_type == "BYTE_ARRAY"]
    packed = pq.ParquetFile(path, read_dictionary=texts, page_checksum_verification=True)
    for group in range(file.metadata.num_row_groups):
        first = next(packed.iter_batches(1, [group], names), None)
        longest = max((_longest(column) for column in first.columns), default=0) if first else 0
        rows = max(1, min(BATCH_ROWS, BATCH_BYTES // (longest + 1)))
        yield from file.iter_batches(rows, [group], names)


def _longest(column: pa.Array) -> int:
    """Return the length of the longest text in a column's dictionary, or 0 if it has none."""
    while pa.types.is_list(column.type) or pa.types.is_large_list(column.type):
        column = column.values
    if not pa.types.is_dictionary(column.type) or not len(column.dictionary):
        return 0
    return pc.max(pc.binary_length(column.dictionary)).as_py() or 0


def open_arrow(entry: Input, findings: Findings) -> Typed:
    """Open Arrow streams, as the `datasets` package stores them."""
    if not entry.paths:
        findings.stop(0, "the data set is empty", "at least one row")
    with pa.memory_map(str(entry.paths[0])) as file, pa.ipc.open_stream(file) as stream:
        schema = stream.schema
    room = packed_room(sum(path.stat().st_size for path in entry.paths))
    return Typed(schema, partial(_arrow_batches, entry.paths), room, findings)


def _arrow_batches(paths: Sequence[Path], names: list[str]) -> Iterator[pa.RecordBatch]:
    for path in paths:
        with pa.memory_map(str(path)) as file, pa.ipc.open_stream(file) as stream:
            for batch in stream:
                part = batch.select(names)
                part.validate(full=True)  # otherwise offsets are not checked and could point anywhere
                yield part


def _unpacked(batch: pa.RecordBatch) -> int:
    """Return the bytes that the cells of a batch take without dictionary encoding."""
    return ROW_BYTES * int(batch.num_rows) + sum(_written_out(column) for column in batch.columns)


def _written_out(column: pa.Array) -> int:
    if pa.types.is_dictionary(column.type) and _is_text(column.type.value_type):
        return pc.sum(pc.take(pc.binary_length(column.dictionary), column.indices)).as_py() or 0
    return int(column.nbytes)


def _is_text(kind: pa.DataType) -> bool:
    return any(test(kind) for test in (pa.types.is_string, pa.types.is_large_string, pa.types.is_binary))


def _parts(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Split a batch into parts that are small when unpacked."""
    if batch.num_rows > 1 and (batch.num_rows > BATCH_ROWS or _unpacked(batch) > BATCH_BYTES):
        half = batch.num_rows // 2
        yield from _parts(batch.slice(0, half))
        yield from _parts(batch.slice(half))
    else:
        yield batch


def _stop_at_bomb(row: int, unpacked: int, room: int, findings: Findings) -> NoReturn:
    problem = f"the data unpacks to {unpacked:,} bytes or more"
    expected = f"at most {room:,} bytes from a file of this size"
    findings.stop(row, problem, expected, "if you trust the file, convert it to jsonl and give that file")


def stop_at_damage(error: Exception, row: int, findings: Findings) -> NoReturn:
    """Report the first line of Arrow's error."""
    problem = f"the data cannot be read ({first_line(error)})"
    findings.stop(row, problem, "a complete file", "download or write it again")


def _cells(column: pa.Array) -> list[Any]:
    if pa.types.is_dictionary(column.type):  # equal cells share one object
        values = _cells(column.dictionary)
        return [None if at is None else values[at] for at in column.indices.to_pylist()]
    try:
        return list(column.to_pylist())
    except UnicodeDecodeError:
        return [_cell(scalar) for scalar in column]


def _cell(scalar: pa.Scalar) -> object:
    """Return a cell's value, or its bytes if its text is not UTF-8; no role accepts bytes."""
    try:
        return scalar.as_py()
    except UnicodeDecodeError as error:
        return error.object


def _class_names(schema: pa.Schema) -> dict[str, dict[int, str]]:
    """Return the class names of numeric columns, which the `datasets` package stores in the schema."""
    try:
        features = json.loads(schema.metadata[b"huggingface"])["info"]["features"]
        named = {name: kind["names"] for name, kind in features.items() if kind.get("_type") == "ClassLabel"}
        return {name: dict(enumerate(map(str, words))) for name, words in named.items()}
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError):
        return {}
