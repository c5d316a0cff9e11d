"""Read a file as it is: every row in order, also blank ones, with all columns. For commands that add columns to it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sentloom.data.cells import CellFault, as_kept
from sentloom.data.dataset import FILE, LINE, Dataset
from sentloom.data.findings import Findings
from sentloom.data.inputs import find_inputs
from sentloom.data.json_rows import recognised
from sentloom.data.layout import EVERY, Layout, ShapeRequest, UnclearColumns, layout_of
from sentloom.data.limits import listed
from sentloom.data.shapes import LIKELY_TEXTS, TEXT_NAMES, Shape, squash
from sentloom.data.sources import open_source
from sentloom.errors import InputError, option

TEXT = "text"


@dataclass(frozen=True)
class FileRows:
    """The rows of a file."""

    name: str
    table: pa.Table  # columns by their names in the file
    column: str  # that has the texts

    @property
    def texts(self) -> list[str]:
        """The text of each row; empty where it has none."""
        return [as_kept(cell) for cell in self.table.column(self.column).to_pylist()]

    def take(self, rows: npt.NDArray[np.int64]) -> "FileRows":
        """Some of the rows, in this order."""
        return replace(self, table=self.table.take(pa.array(rows)))

    def with_columns(self, columns: Mapping[str, Sequence[object]]) -> Dataset:
        """The rows with more columns, to be written; names that are taken get `predicted_` in front."""
        taken = {*self.table.column_names} & {*columns}
        named = {f"predicted_{name}" if taken else name: cells for name, cells in columns.items()}
        table = self.table
        for name, cells in {**named, FILE: np.zeros(len(table), np.int32), LINE: np.arange(len(table))}.items():
            table = table.append_column(name, pa.array(cells))
        return Dataset(Shape.TEXTS, table, (self.name,), "row", "")


def read_as_it_is(name: str, column: str | None = None, usual: Sequence[str] = ()) -> FileRows:
    """Read a file. The texts are in `column`, else in one of the `usual` columns, else where the names say."""
    first, *others = find_inputs(name)
    if others:
        raise InputError(name, "these are several files", "one file", "name one file after the other")
    entry, findings = recognised(first), Findings()
    findings.begin(entry.name, entry.place_name)
    source = open_source(entry, ShapeRequest(keep=EVERY), findings)
    names = _distinct(source.names)
    at = _text_column(entry.name, names, column, usual)
    layout = Layout(Shape.TEXTS, tuple(names), {TEXT: (at,)}, {own: place for place, own in enumerate(names)})
    cells: list[list[object]] = [[] for _ in names]
    for chunk in source.chunks(layout):
        for place, own in enumerate(cells):
            own += chunk.columns[place]
        _note_unreadable(chunk.columns[at], chunk.places, names[at], findings)
    findings.judge(len(cells[at]))
    if not cells[at]:
        raise InputError(entry.name, "there are no rows", "at least one row", "check that this is the right file")
    return FileRows(entry.name, pa.table([*map(_column, cells)], names), names[at])


def _distinct(names: Sequence[str]) -> list[str]:
    """The names of all columns; a later one of the same name gets a number."""
    known = list[str]()
    for name in names:
        number, own = 1, name
        while own in known:
            number += 1
            own = f"{name}_{number}"
        known.append(own)
    return known


def _text_column(where: str, names: Sequence[str], column: str | None, usual: Sequence[str]) -> int:
    if column is not None:
        if column in names:
            return names.index(column)
        raise InputError(where, f"there is no column {column!r}", f"one of {listed([*names])}", "correct the name")
    if len(names) == 1:
        return 0
    for known in (usual, TEXT_NAMES, LIKELY_TEXTS):
        for at, name in enumerate(names):
            if squash(name) in map(squash, known):
                return at
    try:
        roles = layout_of(where, names, lambda at: False, ShapeRequest()).roles
        return roles[TEXT][0]
    except (UnclearColumns, KeyError):
        fix = f"say which one: {option('column', 'NAME')}"
        raise InputError(where, "no column is known to have the texts", f"one of {listed([*names])}", fix) from None


def _note_unreadable(cells: Sequence[object], places: Sequence[int], name: str, findings: Findings) -> None:
    for place, cell in zip(places, cells, strict=True):
        try:
            as_kept(cell)
        except CellFault as fault:
            kind = f"cells that are not {fault.expected} in column {name!r}"
            findings.problem(place, f"{fault.problem} in column {name!r}", fault.expected, kind)


def _column(cells: Sequence[Any]) -> pa.Array:
    """The cells as they are, or as text if they are of several types."""
    try:
        return pa.array(cells)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
        return pa.array([as_kept(cell) for cell in cells])
