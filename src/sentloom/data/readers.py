"""Read data of any kind into one table and check every row, and join several data sets of one shape."""

import hashlib
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from sentloom.arguments import typed
from sentloom.data.cells import as_count, make_batch
from sentloom.data.dataset import FILE, LINE, Dataset, scratch_table
from sentloom.data.documents.folder import Unread
from sentloom.data.findings import EMPTY, Findings
from sentloom.data.in_memory import Data, name_of
from sentloom.data.inputs import DOCUMENTS, MEMORY, File, Input, cleaning_options, find_inputs, named
from sentloom.data.json_rows import recognised
from sentloom.data.layout import Columns, Layout, ShapeRequest, UnclearColumns, as_columns, layout_of
from sentloom.data.limits import STRICT, Allowance, listed
from sentloom.data.nli import is_nli_word
from sentloom.data.shapes import CLICKED, COLUMNS, COUNT, Shape, as_shape, form_of, squash
from sentloom.data.sources import Source, joined_hash, open_source
from sentloom.errors import InputError, SentloomError, option
from sentloom.progress import progress


@typed
def read(
    data: Data,
    *,
    shape: Shape | str | None = None,
    columns: Columns = None,
    keep: Sequence[str] = (),
    quoted: bool | None = None,
    allow: Allowance = STRICT,
    show_progress: bool = False,
    **how: Any,
) -> Dataset:
    """Read a file, a folder, a name on the hub or rows in memory, and check every row (see `sentloom.read`)."""
    request = ShapeRequest(as_shape(shape), as_columns(columns), tuple(keep), quoted)
    if isinstance(data, Dataset):
        return _unchanged(data, request)
    name = named(data, **how) if isinstance(data, str | Path) else ""
    inputs = find_inputs(name) if name else [Input(name_of(data), MEMORY, (), rows=data)]
    if (share := inputs[0].how.max_unusable) is not None:
        allow = replace(allow, share=share, rows=0)
    findings = Findings(allow, cleaning_options(name, request) if name else ())
    reading = _Reading(request, [*map(recognised, inputs)], findings)
    if quoted is not None and any(entry.kind != "tsv" for entry in reading.inputs):
        raise InputError(
            inputs[0].name, f"quoted={quoted} is only for tsv files", "", "leave out `quoted` for this data"
        )
    with progress("reading", sum(map(_kilobytes, reading.inputs)), "kB", show_progress) as advance:
        batches = reading.batches(advance)
        first = next(batches)
        table = scratch_table(first.schema, chain([first], batches))
    layout = reading.layouts[0]
    return Dataset(
        shape=layout.shape,
        table=table,
        files=tuple(name for entry in reading.inputs for name in entry.names),
        place_name=reading.inputs[0].place_name,
        sha256=reading.sha256(),
        used=layout.used,
        ignored=layout.ignored,
        skipped=dict(findings.skipped),
        notes=tuple(findings.notes),
        left_out=findings.lost,
        irregular=findings.irregular(),
        unread=tuple(findings.unread),
    )


def _unchanged(data: Dataset, request: ShapeRequest) -> Dataset:
    """Return a Dataset as it is; shape and columns cannot be changed after reading."""
    if request.columns is not None or request.shape not in (None, data.shape):
        requested = "columns" if request.columns is not None else f"the shape {request.shape}"
        problem = f"a Dataset of {data.shape} cannot be given {requested}"
        raise InputError(data.files[0], problem, "", "leave this out, or set it when you read the file")
    return data


def _kilobytes(entry: Input) -> int:
    return sum(_size(file) for file in entry.files if file.exists()) // 1000


def _size(file: File) -> int:
    return file.root.getinfo(file.at).file_size if isinstance(file, zipfile.Path) else file.stat().st_size


class _Reading:
    """The state of one call of `read`."""

    def __init__(self, request: ShapeRequest, inputs: Sequence[Input], findings: Findings) -> None:
        self.request, self.inputs, self.findings = request, inputs, findings
        self.rows = 0
        self.layouts: list[Layout] = []
        self.hashes: list[tuple[str, str]] = []

    def batches(self, advance: Callable[[int], None]) -> Iterator[pa.RecordBatch]:
        """Yield at least one batch; raise an error if there are no rows or more problems than allowed."""
        number = 0  # of the first file of an input
        for entry in self.inputs:
            self.findings.unread += entry.unread
            if why := self._why_not(entry):
                self.findings.unread.append(Unread(entry.name, why))
                continue
            yield from self._batches_of(number, entry, advance)
            number += len(entry.names)
        self.findings.judge(self.rows)
        if not self.rows:
            raise self.findings.error()

    def _why_not(self, entry: Input) -> str:
        """Why a data file beside documents is not read: it costs itself only, so it is read to its end once before."""
        if entry is self.inputs[0] or self.inputs[0].kind != DOCUMENTS:
            return ""
        try:
            for _ in _Reading(self.request, [entry], Findings(self.findings.allowance)).batches(lambda size: None):
                pass
        except UnclearColumns:
            return f"without a column of texts (by its own name it is read with {option('columns', 'text=NAME')})"
        except SentloomError as error:
            return error.problem
        return ""

    def sha256(self) -> str:
        """Hash the bytes that were read and what was left out or repaired."""
        whole = joined_hash(self.hashes)
        irregular = self.findings.irregular()
        return hashlib.sha256(f"{whole} {irregular}".encode(errors="replace")).hexdigest() if irregular else whole

    def _batches_of(self, number: int, entry: Input, advance: Callable[[int], None]) -> Iterator[pa.RecordBatch]:
        self.findings.begin(entry.name, entry.place_name)
        before, rows, shown, notes = self.findings.total, 0, 0, len(self.findings.notes)
        source = open_source(entry, self.request, self.findings)
        layout = self._layout(entry, source)
        if layout is None:
            del self.findings.notes[notes:]  # of a file that is not read
            return
        for chunk in source.chunks(layout):
            self.findings.seen += len(chunk.places)
            batch = make_batch(layout, chunk, number, self.findings) if chunk.places else None
            if batch is not None and batch.num_rows:
                batch = self._counted(batch, entry.how.min_count)
                rows += batch.num_rows
                yield _with_columns(batch, self.layouts[0])
            advance(source.size() // 1000 - shown)
            shown = source.size() // 1000
        self.rows += rows
        if not rows and self.findings.total == before:
            self.findings.problem(0, EMPTY, "at least one row")
        self.hashes.append((entry.name, source.sha256()))

    def _counted(self, batch: pa.RecordBatch, least: int) -> pa.RecordBatch:
        """The pairs of a search log that were clicked often enough; counts are numbers."""
        if COUNT not in batch.schema.names or not least:
            return batch
        counts = [as_count(cell) for cell in batch.column(COUNT).to_pylist()]
        kept = [count >= least for count in counts]
        self.findings.skipped[f"pairs with fewer than {least:,} clicks"] += len(kept) - sum(kept)
        return batch.filter(pa.array(kept))

    def _layout(self, entry: Input, source: Source) -> Layout | None:
        """How an input is read; None if it is beside documents and holds something else than texts."""
        try:
            layout = layout_of(entry.name, source.names, lambda at: is_nli_word(source.peek(at)), self.request)
        except UnclearColumns as error:
            raise (self.findings.error() if self.findings.total else _with_hint(error, source)) from None
        except InputError as error:  # report damage first: it may be why the header cannot be understood
            raise (self.findings.error() if self.findings.total else error) from None
        self.layouts.append(layout)
        if layout.guessed:
            columns = ",".join(f"{role}={name}" for role, name in layout.used.items())
            guess = f"taken for {layout.shape} by the names of its columns, {option('columns', columns)}"
            self.findings.notes.append(f"{entry.name}: {guess}")
        if layout.shape is Shape.PAIRS and COUNT in layout.kept and squash(layout.used["positive"]) in CLICKED:
            clicks = f"{layout.names[layout.kept[COUNT]]!r} says how often it was clicked"
            self.findings.notes.append(f"{entry.name}: {clicks} ({option('min_count')} leaves out what is rare)")
        first = self.layouts[0]
        if layout.shape != first.shape and self.inputs[0].kind == DOCUMENTS:
            self.findings.unread.append(
                Unread(entry.name, f"with {form_of(layout.shape).noun} instead of texts (by its own name it is read)")
            )
            return None
        if layout.shape != first.shape:
            expected = f"{_in_words(first)}, as in {self.inputs[0].name}"
            self.findings.stop(0, f"found {_in_words(layout)}", expected, "read the two files separately")
        return layout


def _with_hint(error: UnclearColumns, source: Source) -> UnclearColumns:
    """The error, with the names of texts inside objects or of other sheets, if there are any."""
    if not (source.suggested or source.others):
        return error
    if source.suggested:
        names = source.suggested
        fix = f"texts inside objects are named {', '.join(names)}: {option('columns', f'text={names[0]}')}"
    else:
        fix = f"name another sheet with {option('sheet')}: {listed(source.others)}"
    return UnclearColumns(error.where, error.problem, error.expected, fix)


def _with_columns(batch: pa.RecordBatch, first: Layout) -> pa.RecordBatch:
    """A batch with the columns that the first input keeps; what another one lacks is empty."""
    names = [*first.roles, *first.kept, FILE, LINE]
    if batch.schema.names == names:
        return batch
    empty = pa.array([""] * batch.num_rows, pa.large_string())
    columns = [batch.column(name) if name in batch.schema.names else empty for name in names]
    return pa.record_batch(columns, names)


def _in_words(layout: Layout) -> str:
    return f"{layout.shape} with {', '.join([*layout.used.values(), *layout.kept])}"


def join(datasets: Sequence[Dataset]) -> Dataset:
    """Concatenate data sets; every row keeps its file and line."""
    first = datasets[0]
    if len(datasets) == 1:
        return first
    other = next((data for data in datasets if data.shape is not first.shape), None)
    if other is not None:
        problem = f"its shape is {other.shape}, but the shape of {first.files[0]} is {first.shape}"
        raise InputError(other.files[0], problem, "files of one shape", "put them in separate stages")
    tables, offset = [], 0
    for data in datasets:
        table = data.table.select([*COLUMNS[data.shape], FILE, LINE])
        files = pc.add(table.column(FILE), pa.scalar(offset, pa.int32()))
        tables.append(table.set_column(table.schema.get_field_index(FILE), FILE, files))
        offset += len(data.files)
    names = {data.place_name for data in datasets}
    skipped: Counter[str] = Counter()
    for data in datasets:
        skipped.update(data.skipped)
    return Dataset(
        shape=first.shape,
        table=pa.concat_tables(tables),
        files=tuple(file for data in datasets for file in data.files),
        place_name=names.pop() if len(names) == 1 else "row",
        sha256=hashlib.sha256(" ".join(data.sha256 for data in datasets).encode()).hexdigest(),
        used=first.used,
        ignored=tuple(dict.fromkeys(name for data in datasets for name in data.ignored)),
        skipped=skipped,
        notes=tuple(note for data in datasets for note in data.notes),
        left_out=sum(data.left_out for data in datasets),
        irregular=tuple(kind for data in datasets for kind in data.irregular),
        sources=tuple(number for number, data in enumerate(datasets) for _ in data.files),
    )
