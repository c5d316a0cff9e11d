"""Write a data set to a file in the format of its extension; reading the file gives the same data."""

import csv
import gzip
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TextIO

import pyarrow as pa
import pyarrow.parquet as pq

from sentloom.data.dataset import FILE, LINE, Dataset
from sentloom.data.layout import ShapeRequest, layout_of
from sentloom.data.shapes import COLUMNS, Kind, Shape, form_of
from sentloom.errors import InputError
from sentloom.files import new_file

ROWS = 4096  # to write at a time
PARQUET = "parquet"
NEGATIVES = "negatives"
NUMBERED = re.compile(r"column \d+")  # what a column is called if the file has no header
FORMULA_STARTS = tuple("=+-@\t\r\n\uff1d\uff0b\uff0d\uff20")  # the last four are =, +, - and @ in full width


def write(data: Dataset, path: Path, spreadsheet_safe: bool = False, *, own_names: bool = False) -> None:
    """Write txt (texts only), csv, tsv, jsonl, each also .gz, or parquet. The write is atomic.

    Columns have their canonical names; with `own_names` those of the file that was read (`_own_names`).
    `spreadsheet_safe` changes the texts in csv and tsv files that a spreadsheet would run as a formula (`no_formula`).
    """
    _refuse_own_input(data, path)
    table = (data.table.rename_columns(_own_names(data)) if own_names else data.table).drop_columns([FILE, LINE])
    form = check_ending(path, data.shape, table.column_names)
    if form == PARQUET:
        with new_file(path) as part:
            pq.write_table(table, part, write_page_checksum=True)
        return
    with new_file(path) as part, _open(part, path) as file:
        rows = _rows(table)
        if spreadsheet_safe and form in ("csv", "tsv"):
            rows = ({name: no_formula(cell) for name, cell in row.items()} for row in rows)
        LINES[form](file, _flat_names(table), rows)


def _own_names(data: Dataset) -> list[str]:
    """The names of the columns in the file; canonical ones if it has no header, or the names would not differ."""
    canonical = data.table.column_names
    own = [_own_name(data, name) for name in canonical]
    return canonical if any(map(NUMBERED.fullmatch, own)) or len({*own}) < len(own) else own


def _own_name(data: Dataset, column: str) -> str:
    own = data.own_name(column) if column in COLUMNS[data.shape] else column
    return column if column == NEGATIVES and ", " in own else own  # several columns were read as one


def are_recognised(data: Dataset) -> bool:
    """Whether the names of the columns in the file say what the rows are, without the columns of a request."""
    names, is_nli = _own_names(data), Kind.NLI_LABEL in form_of(data.shape).columns.values()
    with suppress(InputError):
        layout = layout_of(data.files[0], names, lambda at: is_nli, ShapeRequest())
        own = {name: _own_name(data, name) for name in COLUMNS[data.shape]}
        return layout.shape is data.shape and layout.used == own
    return False


def _refuse_own_input(data: Dataset, path: Path) -> None:
    """Refuse to replace a file that the rows were read from."""
    if any(Path(name).resolve() == path.resolve() for name in data.files):
        raise InputError(str(path), "the rows were read from this file", "another file", "choose another name")


def no_formula(cell: Any) -> Any:
    """Prefix a cell that spreadsheets would run as a formula with an apostrophe. Numbers stay unchanged."""
    if isinstance(cell, list):
        return [no_formula(text) for text in cell]
    return f"'{cell}" if isinstance(cell, str) and cell.startswith(FORMULA_STARTS) else cell


def check_ending(path: Path, shape: Shape, names: Sequence[str] = ()) -> str:
    """Return the format of a path's extension, if columns of these names can be written in it."""
    form = path.name.lower().removesuffix(".gz").rpartition(".")[2]
    if path.suffix.lower() == f".{PARQUET}":
        return PARQUET
    if form not in LINES or (form == "txt" and (len(form_of(shape).columns) > 1 or len(names) != 1)):
        expected = "the extension .csv, .tsv, .jsonl (each also .gz) or .parquet; .txt for texts only"
        raise InputError(str(path), f"cannot write {shape} as {form!r}", expected, "choose another extension")
    return form


def _open(part: Path, path: Path) -> TextIO:
    if path.suffix.lower() == ".gz":
        return gzip.open(part, "wt", encoding="utf-8", newline="")
    return part.open("w", encoding="utf-8", newline="")


def _flat_names(table: pa.Table) -> list[str]:
    """Return the column names with one column per negative, as many as any row has."""
    names = []
    for name in table.column_names:
        column = table.column(name)
        if pa.types.is_list(column.type):
            most = max((len(cell) for chunk in column.chunks for cell in chunk), default=0)
            first = "negative" if name == NEGATIVES else name
            names += [first, *(f"{first}_{i}" for i in range(2, most + 1))]
        else:
            names.append(name)
    return names


def _rows(table: pa.Table) -> Iterator[Mapping[str, Any]]:
    for batch in table.to_batches(max_chunksize=ROWS):
        yield from batch.to_pylist()


def _flat(row: Mapping[str, Any]) -> list[Any]:
    return [cell for value in row.values() for cell in (value if isinstance(value, list) else [value])]


def _write_txt(file: TextIO, names: Sequence[str], rows: Iterator[Mapping[str, Any]]) -> None:
    file.writelines(_one_line(text, names[0]) + "\n" for row in rows for text in row.values())


def _write_csv(file: TextIO, names: Sequence[str], rows: Iterator[Mapping[str, Any]]) -> None:
    writer = csv.writer(file)
    writer.writerow(names)
    for row in rows:
        writer.writerow(_full(_flat(row), names))


def _write_tsv(file: TextIO, names: Sequence[str], rows: Iterator[Mapping[str, Any]]) -> None:
    file.write("\t".join(names) + "\n")
    for row in rows:
        cells = zip(_full(_flat(row), names), names, strict=True)
        file.write("\t".join(_one_line(str(cell), name, "\t") for cell, name in cells) + "\n")


def _write_jsonl(file: TextIO, names: Sequence[str], rows: Iterator[Mapping[str, Any]]) -> None:
    file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


LINES: dict[str, Callable[[TextIO, Sequence[str], Iterator[Mapping[str, Any]]], None]] = {
    "txt": _write_txt,
    "csv": _write_csv,
    "tsv": _write_tsv,
    "jsonl": _write_jsonl,
}


def _full(cells: list[Any], names: Sequence[str]) -> list[Any]:
    if len(cells) != len(names):
        problem = "rows have different numbers of negatives"
        raise InputError(
            "triplets", problem, "the same number in every row for csv and tsv", "write .jsonl or .parquet"
        )
    return cells


def _one_line(text: str, column: str, *others: str) -> str:
    if any(mark in text for mark in ("\n", "\r", *others)):
        problem = f"line break or tab in a cell of {column}"
        fix = "clean the white space, or write .csv, .jsonl or .parquet"
        raise InputError("writing", problem, "cells of one line", fix)
    return text
