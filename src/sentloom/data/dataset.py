"""A data set: one shape, one memory-mapped Arrow table, and for each row the file and line that it came from.

The rows that were read are in an unnamed scratch file, whose space is freed with the table.
"""

import hashlib
import mmap
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, TYPE_CHECKING, Any, overload

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sentloom.arguments import typed
from sentloom.data.documents.folder import Unread, read_and_unread
from sentloom.data.shapes import COLUMNS, Shape, arrow_type, text_columns
from sentloom.errors import InputError, MissingPart, SentloomError
from sentloom.files import cache_folder

if TYPE_CHECKING:
    import pandas as pd

RowNumbers = Sequence[int] | npt.NDArray[np.integer[Any]]

FILE, LINE = "_file", "_line"  # the origin columns: index into `files`, and line (parquet: row) from 1
PASSAGE = "passage"  # the place of a row in a document
BLANK_LINES = "blank lines"  # the only skipped items that are no rows
SHOWN = 60  # characters of a cell in the repr
FOLDER_VARIABLE = "SENTLOOM_SCRATCH"
BATCH_ROWS = 1 << 14  # rows held in memory at a time: some megabytes of sentences


@dataclass(frozen=True)
class Irregular:
    """Unusable rows that were left out, or places that were repaired, of one kind."""

    what: str  # in the plural: "rows with 1 cell where 2 were expected"
    count: int
    places: tuple[str, ...]  # the first few: "faq.csv, line 17", "20", "31"
    repaired: bool = False

    @property
    def where(self) -> str:
        """The first places, for display."""
        return ", ".join(self.places) + (" ..." if self.count > len(self.places) else "") if self.places else ""

    def __str__(self) -> str:
        return f"{self.count:,} {self.what}" + (f" ({self.where})" if self.places else "")


@dataclass(frozen=True, repr=False)
class Dataset:
    """Rows of one shape. `table` has the shape's canonical columns, those kept on request, and the origin.

    Indexing and iteration give rows as dicts; a slice or a list of row numbers is a Dataset again, and a column name,
    canonical or of the file, gives a list.

    >>> from sentloom import read
    >>> data = read(["Water boils.", "Ice melts.", "Steam rises."])
    >>> data
    Dataset of 3 rows (texts) from the list
      text: Water boils.
    >>> data[-1], len(data[:2]), data[[2, 0]]["text"]
    ({'text': 'Steam rises.'}, 2, ['Steam rises.', 'Water boils.'])
    >>> data["text"]
    ['Water boils.', 'Ice melts.', 'Steam rises.']
    """

    shape: Shape
    table: pa.Table
    files: tuple[str, ...]
    place_name: str  # "line", or "row" for sources without lines
    sha256: str  # of the bytes that were read and of the operations applied since
    used: Mapping[str, str] = field(default_factory=dict)  # canonical column -> the source's own name for it
    ignored: tuple[str, ...] = ()  # the source's other columns
    skipped: Mapping[str, int] = field(default_factory=dict)  # counts of skipped items: "blank lines" ...
    notes: tuple[str, ...] = ()  # how the files were read, if not as their extensions imply
    left_out: int = 0  # unusable rows
    irregular: tuple[Irregular, ...] = ()  # why rows are unusable, and what was repaired
    unread: tuple[Unread, ...] = ()  # files of the folder that were not read, with the reason
    sources: tuple[int, ...] = ()  # for each file, the number of its data set among those joined; empty if only one

    def __len__(self) -> int:
        return int(self.table.num_rows)

    @property
    def reading(self) -> list[str]:
        """How many files were read, and which were not, in words; nothing for a single file."""
        names = {name for name, _ in self.unread}
        return read_and_unread(len(names.union(self.files)), self.unread) if self.unread or self.of_documents else []

    @property
    def of_documents(self) -> bool:
        """Whether rows are passages of documents."""
        return self.place_name == PASSAGE

    @property
    def lost(self) -> dict[str, int]:
        """Rows that were there and are not among these: reason -> rows."""
        skipped = {what: count for what, count in self.skipped.items() if count and what != BLANK_LINES}
        kinds = {kind.what: kind.count for kind in self.irregular if not kind.repaired}
        if sum(kinds.values()) > self.left_out:  # some rows have several of these problems
            kinds = {"; ".join(kinds): self.left_out}
        return {**(kinds if self.left_out else {}), **skipped}

    @overload
    def __getitem__(self, at: int) -> dict[str, Any]: ...
    @overload
    def __getitem__(self, at: "slice | RowNumbers") -> "Dataset": ...
    @overload
    def __getitem__(self, at: str) -> list[Any]: ...
    def __getitem__(self, at: "int | slice | str | RowNumbers") -> "dict[str, Any] | Dataset | list[Any]":
        if isinstance(at, str):
            return self._cells(at)
        if isinstance(at, int | np.integer):
            return {name: cells[0] for name, cells in self.take(self._row_numbers([at])).items()}
        if not isinstance(at, slice):
            numbers = self._row_numbers(at)
            how = hashlib.sha256(numbers.tobytes()).hexdigest()
            return self.derive(take_rows(self.table, numbers), f"rows numbered {how}")
        rows = range(*at.indices(len(self)))
        whole = rows.step == 1  # such a slice copies nothing
        table = self.table.slice(rows.start, len(rows)) if whole else take_rows(self.table, np.array(rows, np.int64))
        return self.derive(table, f"rows {rows}")

    def own_name(self, column: str) -> str:
        """The name of a canonical column in the file: `answer` for `positive`."""
        return self.used.get(column, column)

    def others(self, *used: str) -> pa.Table:
        """All columns but these and the origin, by their names in the file."""
        table = self.table.drop_columns([*used, FILE, LINE])
        return table.rename_columns([self.own_name(name) for name in table.column_names])

    def _cells(self, name: str) -> list[Any]:
        if name in (FILE, LINE):
            raise self._no_column(name)
        return self.column(name).to_pylist()

    def _no_column(self, name: str) -> InputError:
        names = ", ".join(self.own_name(column) for column in self.table.column_names if column not in (FILE, LINE))
        return InputError("data", f"there is no column {name!r}", f"one of {names}", "correct the name")

    def _numbers(self, rows: "RowNumbers") -> npt.NDArray[np.int64]:
        """Row numbers as an array."""
        at = np.asarray(rows)
        if at.ndim != 1 or (at.size and not np.issubdtype(at.dtype, np.integer)):
            problem, fix = f"{rows!r:.100} does not name rows", "for a mask of booleans use select"
            raise InputError("data", problem, "a number, a slice, a list of row numbers or the name of a column", fix)
        return at.astype(np.int64)

    def _row_numbers(self, rows: "RowNumbers") -> npt.NDArray[np.int64]:
        """Row numbers from 0; negative ones count from the end."""
        numbers = self._numbers(rows)
        numbers[numbers < 0] += len(self)
        return self._in_range(numbers)

    def _in_range(self, numbers: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        if numbers.size and (numbers.min() < 0 or numbers.max() >= len(self)):
            raise IndexError(f"rows must be from 0 to {len(self) - 1}")
        return numbers

    def __iter__(self) -> Iterator[dict[str, Any]]:
        for batch in self.table.drop_columns([FILE, LINE]).to_batches():
            yield from batch.to_pylist()

    def __repr__(self) -> str:
        lines = [f"Dataset of {len(self):,} rows ({self.shape}) from {', '.join(self.files[:3])}"]
        lines[0] += f" and {len(self.files) - 3:,} more" if len(self.files) > 3 else ""
        for name, cell in self[0].items() if len(self) else ():
            text = " ".join(str(cell).split())
            lines.append(f"  {name}: {text if len(text) <= SHOWN else text[:SHOWN] + '...'}")
        return "\n".join(lines)

    def to_pandas(self) -> "pd.DataFrame":
        """The rows as a DataFrame, without their origin. Needs pandas."""
        try:
            return self.table.drop_columns([FILE, LINE]).to_pandas()
        except ImportError as error:
            raise MissingPart("to_pandas", "pandas is not installed", "", "pip install pandas") from error

    @typed
    def write(self, path: str | Path) -> None:
        """Write csv, tsv, jsonl (each also .gz), parquet, or txt for texts; `read` gives the same rows again."""
        from sentloom.data.writers import write

        write(self, Path(path))

    @typed
    def column(self, name: str) -> pa.ChunkedArray:
        """Return one column lazily, by its canonical name or its name in the file; nothing is copied out of the map."""
        roles = {own: column for column, own in self.used.items()}
        column = name if name in self.table.column_names else roles.get(name, name)
        if column not in self.table.column_names:
            raise self._no_column(name)
        return self.table.column(column)

    @cached_property
    def _parts(self) -> tuple[npt.NDArray[np.int64], dict[str, list[pa.Array]]]:
        """The first row of each batch, and each column's arrays (without the origin)."""
        batches = self.table.to_batches()
        starts = np.cumsum([0, *(batch.num_rows for batch in batches)])
        names = [name for name in self.table.column_names if name not in (FILE, LINE)]
        return starts, {name: [batch.column(name) for batch in batches] for name in names}

    def take(self, rows: RowNumbers) -> dict[str, list[Any]]:
        """Return the given rows as plain Python values, one list per column (without the origin).

        Reads cell by cell, because Arrow's `take` first joins all chunks of a list column, which copies the column.
        """
        at = self._in_range(self._numbers(rows))
        starts, columns = self._parts
        batch = np.searchsorted(starts, at, side="right") - 1
        cells = list(zip(batch.tolist(), (at - starts[batch]).tolist(), strict=True))
        return {name: [arrays[i][j].as_py() for i, j in cells] for name, arrays in columns.items()}

    @typed
    def place(self, row: int) -> str:
        """Return a readable origin of a row: "faq.csv, line 17"."""
        file = self.files[self.table.column(FILE)[row].as_py()]
        return f"{file}, {self.place_name} {self.table.column(LINE)[row].as_py()}"

    @typed
    def select(self, keep: npt.NDArray[np.bool_]) -> "Dataset":
        """Return the rows where the mask `keep` is true, memory-mapped as well."""
        if keep.dtype != bool or keep.shape != (len(self),):
            problem = f"found {keep.dtype} of shape {keep.shape}"
            raise InputError("keep", problem, f"bool of shape ({len(self)},)", "pass one truth value per row")
        return self.derive(keep_rows(self.table, keep), f"rows {hashlib.sha256(keep.tobytes()).hexdigest()}")

    def derive(self, table: pa.Table, how: str, shape: Shape | None = None) -> "Dataset":
        """Return a data set derived from this one; `how` identifies the operation and goes into the hash."""
        sha256 = hashlib.sha256(f"{self.sha256} {how}".encode()).hexdigest()
        return replace(self, table=table, shape=shape or self.shape, sha256=sha256)

    def sentences(self) -> Iterator[tuple[int, str, str]]:
        """Yield every sentence as (row, column, text), row by row, in constant memory."""
        names = text_columns(self.shape)
        row = 0
        for batch in self.table.select(list(names)).to_batches():
            columns = [batch.column(name).to_pylist() for name in names]
            for cells in zip(*columns, strict=True):
                for name, cell in zip(names, cells, strict=True):
                    for text in cell if isinstance(cell, list) else [cell]:
                        yield row, name, text
                row += 1


def shape_schema(shape: Shape) -> pa.Schema:
    """Return the schema of a table of this shape: its canonical columns and the origin."""
    columns = [(name, arrow_type(name)) for name in COLUMNS[shape]]
    return pa.schema([*columns, (FILE, pa.int32()), (LINE, pa.int64())])


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


def scratch_folder() -> Path:
    """Where scratch files go: the user's cache unless the variable names another, since /tmp is often memory."""
    named = os.environ.get(FOLDER_VARIABLE)
    return Path(named) if named else cache_folder()


def _unnamed_file(folder: Path) -> IO[bytes]:
    with _disk_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
        return TemporaryFile(dir=folder)


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
