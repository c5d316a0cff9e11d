"""Open inputs: the column names, a peek at the first row, and then the cells in chunks with their places."""

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate, chain, islice, zip_longest
from pathlib import Path
from typing import Any

from sentloom.data.beir import Judged
from sentloom.data.cells import Chunk
from sentloom.data.dataset import BATCH_ROWS
from sentloom.data.delimited import DelimitedRows, dialect_of
from sentloom.data.documents import rows as passages
from sentloom.data.encodings import WESTERN
from sentloom.data.findings import Findings
from sentloom.data.in_memory import MemoryColumns, open_rows
from sentloom.data.inputs import BEIR, DOCUMENTS, MEMORY, SHEET, TWINS, Input
from sentloom.data.json_rows import ARRAY_NOTE, array_records, jsonl_records
from sentloom.data.layout import Layout, ShapeRequest
from sentloom.data.limits import LONGEST_NAME, MOST_COLUMNS, shown
from sentloom.data.nested import parse_path, suggested, with_inner
from sentloom.data.scan import Digest, text_blocks, text_chunks, text_lines, twin_lines
from sentloom.data.sheets import Sheet
from sentloom.data.typed import DAMAGE, Typed, open_arrow, open_parquet, stop_at_damage
from sentloom.errors import InputError, option
from sentloom.files import sha256

ESCAPED = re.compile("[\udc80-\udcff]")  # bytes that are not UTF-8
NULL = r"\N"  # how MySQL and PostgreSQL write a missing value in delimited files


@dataclass(frozen=True)
class Source:
    """An opened input. `peek` returns the first cell of a column; `sha256` is available once all chunks are read.

    `size` is the number of bytes read so far, or 0 for Arrow, which does not report it.
    """

    names: Sequence[str]
    peek: Callable[[int], object]
    chunks: Callable[[Layout], Iterable[Chunk]]
    sha256: Callable[[], str]
    size: Callable[[], int]
    suggested: tuple[str, ...] = ()  # names of texts inside the objects of a row
    others: tuple[str, ...] = ()  # the sheets that are not read, unless one was asked for


def open_source(entry: Input, request: ShapeRequest, findings: Findings) -> Source:
    """Open an input of any kind."""
    if request.by_number and entry.kind not in ("txt", "csv", "tsv", MEMORY):
        raise InputError(
            entry.name,
            "columns cannot be given by number here",
            "column names, which this data has",
            f"correct {option('columns')}",
        )
    openers: dict[str, Callable[[Input, ShapeRequest, Findings], Source]] = {
        "txt": _open_txt,
        TWINS: _open_twins,
        "csv": _open_table,
        "tsv": _open_table,
        "jsonl": _open_json,
        "json": _open_json,
        "parquet": partial(_typed, open_parquet),
        "arrow": partial(_typed, open_arrow),
        DOCUMENTS: _open_documents,
        SHEET: _open_sheet,
        BEIR: _open_judged,
        MEMORY: _open_memory,
    }
    try:
        source = openers[entry.kind](entry, request, findings)
    except DAMAGE as error:
        stop_at_damage(error, 0, findings)
    _check_names(source.names, findings)
    return source


def _check_names(names: Sequence[str], findings: Findings) -> None:
    if len(names) > MOST_COLUMNS:
        problem = f"{len(names):,} columns are too many"
        findings.stop(0, problem, f"at most {MOST_COLUMNS:,}", "keep only the columns you need")
    if long := next((name for name in names if len(name) > LONGEST_NAME), None):
        problem = f"the column name {shown(long)!r} has {len(long):,} characters"
        findings.stop(0, problem, f"at most {LONGEST_NAME:,}", "check that the first line contains the column names")


def joined_hash(hashes: Sequence[tuple[str, str]]) -> str:
    """Return the hash of the only file, or of several files the hash of their list as `sha256sum` prints it."""
    if len(hashes) == 1:
        return hashes[0][1]
    return hashlib.sha256("".join(f"{value}  {Path(name).name}\n" for name, value in hashes).encode()).hexdigest()


def _read_head(records: Iterator[tuple[Any, ...]], rows: int, findings: Findings) -> list[list[Any]]:
    """Read from the front until there are `rows` rows or the records end; each field of a record is a sequence."""
    head: list[list[Any]] = [[]]
    for record in records:
        head = [[*old, *new] for old, new in zip_longest(head, record, fillvalue=())]
        if len(head[0]) >= rows:
            break
    if not head[0] and findings.total:
        raise findings.error()
    if not head[0]:
        findings.stop(0, "the file is empty", "at least one row")
    return head


def _open_txt(entry: Input, request: ShapeRequest, findings: Findings) -> Source:
    digest = Digest()
    records = text_lines(text_blocks(entry.paths[0], digest, findings, entry.how.encoding), findings)
    places, lines = _read_head(records, 1, findings)
    return Source(
        names=("text",),
        peek=lambda at: None,
        chunks=lambda layout: (Chunk(numbers, {0: texts}) for numbers, texts in chain([(places, lines)], records)),
        sha256=digest.hexdigest,
        size=lambda: digest.size,
    )


def _open_twins(entry: Input, request: ShapeRequest, findings: Findings) -> Source:
    """Open two text files, the second of which translates the first line by line."""
    files = entry.files
    digests = [Digest() for _ in files]
    records = twin_lines(files, digests, findings, entry.how.encoding)
    places, rows = _read_head(records, 1, findings)
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


def _open_table(entry: Input, request: ShapeRequest, findings: Findings) -> Source:
    """Open a csv or tsv file: the first row is the header, unless columns are given by number."""
    dialect, digest = dialect_of(entry, request, findings), Digest()
    rows = dialect.rows(text_blocks(entry.paths[0], digest, findings, entry.how.encoding), findings)
    head = DelimitedRows(*_read_head(rows, 2, findings))
    width = head.widths[0]
    names = _printable(head.cells[:width])
    if request.by_number:
        names = [f"column {number}" for number in range(1, width + 1)]
    else:
        head = DelimitedRows(head.places[1:], head.widths[1:], head.cells[width:])
    first = dict(enumerate(head.cells[: head.widths[0]] if head.widths else ()))
    whole = partial(_columns, width=width, decimal_comma=dialect.decimal_comma, findings=findings)
    return Source(
        names=names,
        peek=first.get,
        chunks=lambda layout: (whole(more, layout) for more in chain([head], rows)),
        sha256=digest.hexdigest,
        size=lambda: digest.size,
    )


def _printable(names: Sequence[str]) -> list[str]:
    """Read bytes that are not UTF-8 as Windows-1252, as cleaning does; other lone surrogates cannot be printed."""

    def western(escaped: re.Match[str]) -> str:
        return escaped[0].encode(errors="surrogateescape").decode(WESTERN, "replace")

    return [ESCAPED.sub(western, name).encode(errors="replace").decode() for name in names]


def _columns(rows: DelimitedRows, layout: Layout, width: int, decimal_comma: bool, findings: Findings) -> Chunk:
    """Transpose rows to columns; rows with too many or too few cells are reported and left out."""
    places, cells = rows.places, rows.cells
    if set(rows.widths) - {width}:
        places, cells = [], []
        for place, own_width, end in zip(rows.places, rows.widths, accumulate(rows.widths), strict=True):
            if own_width == width:
                places.append(place)
                cells += rows.cells[end - width : end]
            else:
                _note_width(place, own_width, width, findings)
    columns = {at: _without_null(cells[at::width]) for at in layout.positions}
    if decimal_comma:
        columns |= {at: [cell.replace(",", ".") for cell in columns[at]] for at in layout.roles.get("score", ())}
    return Chunk(places, columns)


def _without_null(cells: Sequence[str]) -> Sequence[str]:
    return ["" if cell == NULL else cell for cell in cells] if NULL in cells else cells


def _note_width(place: int, width: int, expected: int, findings: Findings) -> None:
    cells = f"{width} cell" if width == 1 else f"{width} cells"
    kind = f"rows with {cells} where {expected} were expected"
    few, many = "line breaks in cells that are not quoted", "separators in cells that are not quoted"
    cause = few if width < expected else many
    findings.problem(place, f"found {cells}", f"{expected} cells, as in the first line", kind, cause)


def _open_json(entry: Input, request: ShapeRequest, findings: Findings) -> Source:
    """Open JSON Lines or a JSON array: the keys of the first object are the columns."""
    digest, path = Digest(), entry.paths[0]
    if entry.kind == "json":
        findings.notes.append(f"{entry.name}: {ARRAY_NOTE}")
        records = array_records(text_chunks(path, digest, findings, entry.how.encoding), findings)
    else:
        records = jsonl_records(text_blocks(path, digest, findings, entry.how.encoding), findings)
    places, objects = _read_head(records, 1, findings)
    first = objects[0]
    inner = {name: steps for name in map(str, request.named) if name not in first and (steps := parse_path(name))}
    keys = [*first, *inner]
    records = ((numbers, with_inner(rows, inner)) for numbers, rows in records) if inner else records
    objects = with_inner(objects, inner)
    first = objects[0]
    return Source(
        names=_printable(keys),
        peek=lambda at: first[keys[at]],
        suggested=tuple(suggested(first)),
        chunks=lambda layout: (
            _values(numbers, rows, keys, layout, findings) for numbers, rows in chain([(places, objects)], records)
        ),
        sha256=digest.hexdigest,
        size=lambda: digest.size,
    )


def _values(
    places: Sequence[int], rows: list[dict[str, object]], keys: list[str], layout: Layout, findings: Findings
) -> Chunk:
    """Convert objects to columns; objects that lack a key are reported and left out."""
    required = {keys[at] for positions in layout.roles.values() for at in positions}
    if not all(required <= row.keys() for row in rows):
        for place, row in zip(places, rows, strict=True):
            if missing := sorted(required - row.keys()):
                keys_missing = ", ".join(map(repr, missing))
                kind = f"objects without {keys_missing}"
                findings.problem(place, f"the object has no {keys_missing}", "every column in every object", kind)
        places = [place for place, row in zip(places, rows, strict=True) if required <= row.keys()]
        rows = [row for row in rows if required <= row.keys()]
    return Chunk(places, {at: [row.get(keys[at]) for row in rows] for at in layout.positions})


def _typed(
    opener: Callable[[Input, Findings], Typed], entry: Input, request: ShapeRequest, findings: Findings
) -> Source:
    """Open data with typed columns."""
    data = opener(entry, findings)
    return Source(
        names=data.names,
        peek=data.peek,
        chunks=lambda layout: data.chunks(layout.positions, layout.roles.get("label", ())),
        sha256=lambda: joined_hash([(path.name, sha256(path)) for path in entry.paths]),
        size=lambda: 0,
    )


def _open_documents(entry: Input, request: ShapeRequest, findings: Findings) -> Source:
    documents = passages.Documents(entry.folder, entry.paths, entry.how.encoding)

    def chunks(layout: Layout) -> Iterator[Chunk]:
        for part in documents.rows():
            yield Chunk(part.places, {at: [row[at] for row in part.rows] for at in layout.positions}, part.files)
        findings.unread += documents.unread

    return Source(
        names=passages.COLUMNS,
        peek=lambda at: None,
        chunks=chunks,
        sha256=documents.sha256,
        size=lambda: documents.size,
    )


def _open_sheet(entry: Input, request: ShapeRequest, findings: Findings) -> Source:
    sheet = Sheet(entry.paths[0], entry.how.sheet, findings)
    names = [f"column {at}" for at, _ in enumerate(sheet.names, 1)] if request.by_number else sheet.names
    rows, width = sheet.rows(with_header=request.by_number), len(names)

    def chunks(layout: Layout) -> Iterator[Chunk]:
        while part := [*islice(rows, BATCH_ROWS)]:
            cells = [[*cells, *[""] * (width - len(cells))] for _, cells in part]
            yield Chunk([number for number, _ in part], {at: [row[at] for row in cells] for at in layout.positions})

    return Source(names=names, peek=sheet.peek, chunks=chunks, sha256=sheet.sha256, size=lambda: 0, others=sheet.others)


def _open_judged(entry: Input, request: ShapeRequest, findings: Findings) -> Source:
    """Open a folder in the form of BEIR."""
    judged = Judged(entry, findings)

    def chunks(layout: Layout) -> Iterator[Chunk]:
        place = 1
        for rows in judged.rows():
            columns = {at: [row[at] for row in rows] for at in layout.positions}
            yield Chunk(range(place, place + len(rows)), columns)
            place += len(rows)

    return Source(
        names=judged.names,
        peek=lambda at: None,
        chunks=chunks,
        sha256=lambda: joined_hash(judged.hashes()),
        size=lambda: judged.size,
    )


def _open_memory(entry: Input, request: ShapeRequest, findings: Findings) -> Source:
    """Rows in memory. Their hash depends only on the values that are read, not on the type of the container."""
    data, digest = open_rows(entry.rows, request, findings), hashlib.sha256()

    def chunks(layout: Layout) -> Iterator[Chunk]:
        digest.update(repr([data.names[at] for at in layout.positions]).encode())
        for chunk in data.chunks(layout.positions, layout.roles.get("label", ())):
            for row in zip(*(chunk.columns[at] for at in layout.positions), strict=True):
                digest.update(f"{row!r}\n".encode())
            yield chunk

    inner = data.suggested if isinstance(data, MemoryColumns) else ()
    return Source(
        names=data.names, peek=data.peek, chunks=chunks, sha256=digest.hexdigest, size=lambda: 0, suggested=inner
    )
