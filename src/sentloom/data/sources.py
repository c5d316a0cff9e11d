"""Opened inputs: the column names, a glance at the first row, and then the cells chunk by chunk with their places."""

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate, chain, zip_longest
from pathlib import Path
from typing import Any, NoReturn

import pyarrow as pa
import pyarrow.parquet as pq

from sentloom.data.cells import Chunk
from sentloom.data.inputs import TWINS, Input
from sentloom.data.scan import (
    Digest,
    Findings,
    Rows,
    csv_rows,
    jsonl_records,
    text_blocks,
    text_lines,
    tsv_rows,
    twin_lines,
)
from sentloom.data.scratch import BATCH_ROWS
from sentloom.data.shapes import Layout, Request
from sentloom.errors import InputError
from sentloom.files import sha256

DAMAGE = (pa.ArrowException, OSError, UnicodeDecodeError)  # what Arrow raises at broken files; the last at names


@dataclass(frozen=True)
class Source:
    """An opened input. `peek` gives the first row's cell of a column; `sha256` is known once all chunks are read.

    `size` is how many bytes were read so far; Arrow does not tell.
    """

    names: Sequence[str]
    peek: Callable[[int], object]
    chunks: Callable[[Layout], Iterable[Chunk]]
    sha256: Callable[[], str]
    size: Callable[[], int]


def open_source(entry: Input, request: Request, findings: Findings) -> Source:
    """Open an input of any kind."""
    if request.by_number and entry.kind not in ("txt", "csv", "tsv"):
        raise InputError(
            entry.name, "columns by number", "columns by name, since these data name them", "mend --columns"
        )
    openers: dict[str, Callable[[Input, Request, Findings], Source]] = {
        "txt": _open_txt,
        TWINS: _open_twins,
        "csv": partial(_open_table, csv_rows),
        "tsv": partial(_open_table, tsv_rows),
        "jsonl": _open_jsonl,
        "parquet": _open_parquet,
        "arrow": _open_arrow,
    }
    try:
        return openers[entry.kind](entry, request, findings)
    except DAMAGE as error:
        _stop_at_damage(error, 0, findings)


def joined_hash(hashes: Sequence[tuple[str, str]]) -> str:
    """The hash of the only file; of several, the hash of their list as `sha256sum` prints it in their folder."""
    if len(hashes) == 1:
        return hashes[0][1]
    return hashlib.sha256("".join(f"{value}  {Path(name).name}\n" for name, value in hashes).encode()).hexdigest()


def _begin(records: Iterator[tuple[Any, ...]], wanted: int, findings: Findings) -> list[list[Any]]:
    """Records from the front, at least as many as wanted if there are; each field of a record is a sequence."""
    begun: list[list[Any]] = [[]]
    for record in records:
        begun = [[*old, *new] for old, new in zip_longest(begun, record, fillvalue=())]
        if len(begun[0]) >= wanted:
            break
    if not begun[0] and findings.total:
        raise findings.error()
    if not begun[0]:
        findings.stop(0, "an empty file", "at least one row")
    return begun


def _open_txt(entry: Input, request: Request, findings: Findings) -> Source:
    digest = Digest()
    records = text_lines(text_blocks(entry.paths[0], digest, findings), findings)
    places, lines = _begin(records, 1, findings)
    return Source(
        names=("text",),
        peek=lambda at: None,
        chunks=lambda layout: (Chunk(numbers, {0: texts}) for numbers, texts in chain([(places, lines)], records)),
        sha256=digest.hexdigest,
        size=lambda: digest.size,
    )


def _open_twins(entry: Input, request: Request, findings: Findings) -> Source:
    """Two files of lines, the second one the translations of the first."""
    files = entry.files
    digests = [Digest() for _ in files]
    records = twin_lines(files, digests, findings)
    places, rows = _begin(records, 1, findings)
    return Source(
        names=("source", "target"),
        peek=lambda at: rows[0][at],
        chunks=lambda layout: (
            Chunk(numbers, {at: [row[at] for row in more] for at in layout.positions})
            for numbers, more in chain([(places, rows)], records)
        ),
        sha256=lambda: joined_hash(
            [(file.name, digest.hexdigest()) for file, digest in zip(files, digests, strict=True)]
        ),
        size=lambda: sum(digest.size for digest in digests),
    )


def _open_table(split: Callable[..., Iterator[Rows]], entry: Input, request: Request, findings: Findings) -> Source:
    """A csv or tsv file: the first row is the header, unless columns are asked for by number."""
    digest = Digest()
    rows = split(text_blocks(entry.paths[0], digest, findings), findings)
    begun = Rows(*_begin(rows, 2, findings))
    width = begun.widths[0]
    names = begun.cells[:width]
    if request.by_number:
        names = [f"column {number}" for number in range(1, width + 1)]
    else:
        begun = Rows(begun.places[1:], begun.widths[1:], begun.cells[width:])
    first = dict(enumerate(begun.cells[: begun.widths[0]] if begun.widths else ()))
    return Source(
        names=names,
        peek=first.get,
        chunks=lambda layout: (_columns(more, width, layout, findings) for more in chain([begun], rows)),
        sha256=digest.hexdigest,
        size=lambda: digest.size,
    )


def _columns(rows: Rows, width: int, layout: Layout, findings: Findings) -> Chunk:
    """Rows turned into columns; those with a cell too many or too few are noted and left out."""
    places, cells = rows.places, rows.cells
    if set(rows.widths) - {width}:
        places, cells = [], []
        for place, own_width, end in zip(rows.places, rows.widths, accumulate(rows.widths), strict=True):
            if own_width == width:
                places.append(place)
                cells += rows.cells[end - width : end]
            else:
                findings.problem(place, f"{own_width} cells", f"{width} cells, as in the first line")
    return Chunk(places, {at: cells[at::width] for at in layout.positions})


def _open_jsonl(entry: Input, request: Request, findings: Findings) -> Source:
    """A jsonl file: the keys of its first object are its columns."""
    digest = Digest()
    records = jsonl_records(text_blocks(entry.paths[0], digest, findings), findings)
    places, objects = _begin(records, 1, findings)
    first = objects[0]
    keys = list(first)
    return Source(
        names=[key.encode(errors="replace").decode() for key in keys],  # a key may hold a lone surrogate
        peek=lambda at: first[keys[at]],
        chunks=lambda layout: (
            _values(numbers, rows, keys, layout, findings) for numbers, rows in chain([(places, objects)], records)
        ),
        sha256=digest.hexdigest,
        size=lambda: digest.size,
    )


def _values(
    places: Sequence[int], rows: list[dict[str, object]], keys: list[str], layout: Layout, findings: Findings
) -> Chunk:
    """Objects turned into columns; those that lack one are noted and left out."""
    required = {keys[at] for positions in layout.roles.values() for at in positions}
    if not all(required <= row.keys() for row in rows):
        for place, row in zip(places, rows, strict=True):
            if missing := sorted(required - row.keys()):
                findings.problem(place, f"no {', '.join(map(repr, missing))}", "every column in every object")
        places = [place for place, row in zip(places, rows, strict=True) if required <= row.keys()]
        rows = [row for row in rows if required <= row.keys()]
    return Chunk(places, {at: [row.get(keys[at]) for row in rows] for at in layout.positions})


def _open_parquet(entry: Input, request: Request, findings: Findings) -> Source:
    file = pq.ParquetFile(entry.paths[0], page_checksum_verification=True)  # of pages that have one, such as ours
    batches = partial(file.iter_batches, BATCH_ROWS)
    return _open_typed(file.schema_arrow, lambda names: batches(columns=names), entry, findings)


def _open_arrow(entry: Input, request: Request, findings: Findings) -> Source:
    """Arrow streams, as the `datasets` package keeps them."""
    if not entry.paths:
        findings.stop(0, "an empty data set", "at least one row")
    with pa.memory_map(str(entry.paths[0])) as file, pa.ipc.open_stream(file) as stream:
        schema = stream.schema
    return _open_typed(schema, partial(_arrow_batches, entry.paths), entry, findings)


def _arrow_batches(paths: Sequence[Path], names: list[str]) -> Iterator[pa.RecordBatch]:
    for path in paths:
        with pa.memory_map(str(path)) as file, pa.ipc.open_stream(file) as stream:
            for batch in stream:
                part = batch.select(names)
                part.validate(full=True)  # offsets are taken on trust otherwise, and could lead anywhere
                yield part


def _open_typed(
    schema: pa.Schema, batches: Callable[[list[str]], Iterable[pa.RecordBatch]], entry: Input, findings: Findings
) -> Source:
    """Data with types of their own. Numbers that stand for named classes are read as the names where a label is."""
    names, classes = schema.names, _class_names(schema)

    def columns(positions: Sequence[int], labels: Sequence[int]) -> Iterator[Chunk]:
        for row, batch in _numbered(batches([names[at] for at in positions]), findings):
            cells = {at: _cells(batch.column(number)) for number, at in enumerate(positions)}
            for at in labels:
                words = classes.get(names[at], {})
                cells[at] = [words.get(cell, cell) for cell in cells[at]] if words else cells[at]
            yield Chunk(range(row, row + batch.num_rows), cells)

    def peek(at: int) -> object:
        return next((chunk.columns[at][0] for chunk in columns([at], [at]) if chunk.places), None)

    return Source(
        names=names,
        peek=peek,
        chunks=lambda layout: columns(layout.positions, layout.roles.get("label", ())),
        sha256=lambda: joined_hash([(path.name, sha256(path)) for path in entry.paths]),
        size=lambda: 0,
    )


def _numbered(batches: Iterable[pa.RecordBatch], findings: Findings) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Each batch with the number of its first row, from 1."""
    row = 1
    try:
        for batch in batches:
            yield row, batch
            row += batch.num_rows
    except DAMAGE as error:
        _stop_at_damage(error, row, findings)


def _stop_at_damage(error: Exception, row: int, findings: Findings) -> NoReturn:
    reason = (str(error).splitlines() or [type(error).__name__])[0]
    findings.stop(row, f"data that cannot be read ({reason})", "a whole, readable file", "fetch or write it anew")


def _cells(column: pa.Array) -> list[Any]:
    try:
        return list(column.to_pylist())
    except UnicodeDecodeError:
        return [_cell(scalar) for scalar in column]


def _cell(scalar: pa.Scalar) -> object:
    """A cell's value; where its text is not UTF-8, its bytes, which no role takes."""
    try:
        return scalar.as_py()
    except UnicodeDecodeError as error:
        return error.object


def _class_names(schema: pa.Schema) -> dict[str, dict[int, str]]:
    """The classes behind a column's numbers, which the `datasets` package leaves in the schema."""
    try:
        features = json.loads(schema.metadata[b"huggingface"])["info"]["features"]
        named = {name: kind["names"] for name, kind in features.items() if kind.get("_type") == "ClassLabel"}
        return {name: dict(enumerate(map(str, words))) for name, words in named.items()}
    except (KeyError, TypeError, ValueError, AttributeError):
        return {}
