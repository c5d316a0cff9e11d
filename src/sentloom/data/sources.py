"""Opened inputs: the column names, a glance at the first row, and then the cells chunk by chunk with their places."""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate, chain, zip_longest
from pathlib import Path
from typing import Any

from sentloom.data.cells import Chunk
from sentloom.data.delimited import DelimitedRows
from sentloom.data.dialects import dialect_of
from sentloom.data.findings import Findings
from sentloom.data.inputs import TWINS, Input
from sentloom.data.json_arrays import NOTE as ARRAY_NOTE
from sentloom.data.json_arrays import array_records
from sentloom.data.json_lines import jsonl_records
from sentloom.data.limits import LONGEST_NAME, MOST_COLUMNS, shown
from sentloom.data.scan import Digest, text_blocks, text_lines, text_pieces, twin_lines
from sentloom.data.shapes import Layout, ShapeRequest
from sentloom.data.typed import DAMAGE, Typed, open_arrow, open_parquet, stop_at_damage
from sentloom.errors import InputError
from sentloom.files import sha256

NULL = r"\N"  # how MySQL and PostgreSQL write a missing value in delimited files


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


def open_source(entry: Input, request: ShapeRequest, findings: Findings) -> Source:
    """Open an input of any kind."""
    if request.by_number and entry.kind not in ("txt", "csv", "tsv"):
        raise InputError(
            entry.name, "columns by number", "columns by name, since these data name them", "correct --columns"
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
    }
    try:
        source = openers[entry.kind](entry, request, findings)
    except DAMAGE as error:
        stop_at_damage(error, 0, findings)
    _check_names(source.names, findings)
    return source


def _check_names(names: Sequence[str], findings: Findings) -> None:
    if len(names) > MOST_COLUMNS:
        findings.stop(0, f"{len(names):,} columns", f"at most {MOST_COLUMNS:,}", "keep only the columns you need")
    if long := next((name for name in names if len(name) > LONGEST_NAME), None):
        found = f"a column name of {len(long):,} characters, {shown(long)!r}"
        findings.stop(0, found, f"names of at most {LONGEST_NAME:,}", "check that the first line names the columns")


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


def _open_txt(entry: Input, request: ShapeRequest, findings: Findings) -> Source:
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


def _open_twins(entry: Input, request: ShapeRequest, findings: Findings) -> Source:
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


def _open_table(entry: Input, request: ShapeRequest, findings: Findings) -> Source:
    """A csv or tsv file: the first row is the header, unless columns are asked for by number."""
    dialect, digest = dialect_of(entry, request, findings), Digest()
    rows = dialect.rows(text_blocks(entry.paths[0], digest, findings), findings)
    begun = DelimitedRows(*_begin(rows, 2, findings))
    width = begun.widths[0]
    names = _printable(begun.cells[:width])
    if request.by_number:
        names = [f"column {number}" for number in range(1, width + 1)]
    else:
        begun = DelimitedRows(begun.places[1:], begun.widths[1:], begun.cells[width:])
    first = dict(enumerate(begun.cells[: begun.widths[0]] if begun.widths else ()))
    whole = partial(_columns, width=width, decimal_comma=dialect.decimal_comma, findings=findings)
    return Source(
        names=names,
        peek=first.get,
        chunks=lambda layout: (whole(more, layout) for more in chain([begun], rows)),
        sha256=digest.hexdigest,
        size=lambda: digest.size,
    )


def _printable(names: Sequence[str]) -> list[str]:
    """Names may hold a lone surrogate, which cannot be printed."""
    return [name.encode(errors="replace").decode() for name in names]


def _columns(rows: DelimitedRows, layout: Layout, width: int, decimal_comma: bool, findings: Findings) -> Chunk:
    """Rows turned into columns; those with a cell too many or too few are noted and left out."""
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


def _note_width(place: int, found: int, wanted: int, findings: Findings) -> None:
    cells = f"{found} cell" if found == 1 else f"{found} cells"
    kind = f"rows with {cells} where {wanted} were expected"
    few, many = (
        "cells with line breaks that are not in quotes",
        "separators in the text of cells that are not in quotes",
    )
    findings.problem(place, cells, f"{wanted} cells, as in the first line", kind, few if found < wanted else many)


def _open_json(entry: Input, request: ShapeRequest, findings: Findings) -> Source:
    """JSON lines or one array: the keys of the first object are the columns."""
    digest, path = Digest(), entry.paths[0]
    if entry.kind == "json":
        findings.notes.append(f"{entry.name}: {ARRAY_NOTE}")
        records = array_records(text_pieces(path, digest, findings), findings)
    else:
        records = jsonl_records(text_blocks(path, digest, findings), findings)
    places, objects = _begin(records, 1, findings)
    first = objects[0]
    keys = list(first)
    return Source(
        names=_printable(keys),
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
                found = ", ".join(map(repr, missing))
                findings.problem(place, f"no {found}", "every column in every object", f"objects without {found}")
        places = [place for place, row in zip(places, rows, strict=True) if required <= row.keys()]
        rows = [row for row in rows if required <= row.keys()]
    return Chunk(places, {at: [row.get(keys[at]) for row in rows] for at in layout.positions})


def _typed(
    opener: Callable[[Input, Findings], Typed], entry: Input, request: ShapeRequest, findings: Findings
) -> Source:
    """Data with types of their own."""
    data = opener(entry, findings)
    return Source(
        names=data.names,
        peek=data.peek,
        chunks=lambda layout: data.chunks(layout.positions, layout.roles.get("label", ())),
        sha256=lambda: joined_hash([(path.name, sha256(path)) for path in entry.paths]),
        size=lambda: 0,
    )
