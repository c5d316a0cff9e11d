"""Rows that are in memory: lists, DataFrames, Arrow tables and `datasets.Dataset`, read and checked like a file.

pandas, polars and datasets are optional and never imported here: an object of a package that nobody has imported
cannot exist.
"""

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AnySet
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import numpy as np
import pyarrow as pa

from sentloom.arguments import kind_of
from sentloom.data.cells import Chunk
from sentloom.data.dataset import BATCH_ROWS, Dataset
from sentloom.data.findings import Findings
from sentloom.data.layout import ShapeRequest
from sentloom.data.limits import MOST_UNPACKED
from sentloom.data.nested import parse_path, suggested, value_at
from sentloom.data.nli import is_nli_word
from sentloom.data.shapes import COLUMNS, Shape
from sentloom.data.typed import Typed
from sentloom.errors import InputError

ACCEPTED = "strings, tuples or dicts, a DataFrame, an Arrow table or a datasets.Dataset"

if TYPE_CHECKING:
    import datasets
    import pandas as pd
    import polars as pl

    Lists: TypeAlias = Sequence[str] | Sequence[Sequence[Any]] | Sequence[Mapping[str, Any]]
    Rows: TypeAlias = Lists | pa.Table | pd.DataFrame | pd.Series[Any] | pl.DataFrame | pl.Series | datasets.Dataset
    Data: TypeAlias = str | Path | Dataset | Rows  # whatever can be read: a path or a name, or rows in memory
    Inputs: TypeAlias = Data | Sequence[Data]
else:  # what can be known of an argument before its rows are read
    Data = Inputs = Annotated[
        str | Path | Dataset | Iterable | pa.Table | pa.RecordBatch,
        f"a path, or a list of {ACCEPTED}",
        "pass the rows, or the path of a file; a polars LazyFrame needs .collect() first",
    ]

# Texts that repeat LABEL_REPEATS times on average, in LEAST_LABELLED rows or more, look like labels.
LEAST_LABELLED, LABEL_REPEATS = 20, 5


def is_table(data: object) -> bool:
    """Whether rows have named columns of their own: a table is not a sequence of texts."""
    kinds = (("pandas", "DataFrame"), ("polars", "DataFrame"), ("datasets", "Dataset"))
    return isinstance(data, Dataset | pa.Table) or any(_is(data, *kind) for kind in kinds)


def name_of(data: object) -> str:
    """Return the name of the data in messages."""
    if _is(data, "datasets", "Dataset"):
        return "the datasets.Dataset"
    if isinstance(data, pa.Table | pa.RecordBatch):
        return "the Arrow table"
    return "the DataFrame" if is_table(data) else "the list"


@dataclass(frozen=True)
class MemoryColumns:
    """Rows of Python values, column by column. `places` are the row numbers from 1."""

    names: Sequence[str]
    columns: Sequence[Sequence[object]]
    places: Sequence[int]
    suggested: tuple[str, ...] = ()  # names of texts inside the objects of a row

    def peek(self, at: int) -> object:
        """Return the first cell of a column."""
        return self.columns[at][0] if self.places else None

    def chunks(self, positions: Sequence[int], labels: Sequence[int]) -> Iterator[Chunk]:
        """Yield the rows of some columns, a few thousand at a time."""
        for start in range(0, len(self.places), BATCH_ROWS):
            part = slice(start, start + BATCH_ROWS)
            yield Chunk(self.places[part], {at: [_plain(cell) for cell in self.columns[at][part]] for at in positions})


def open_rows(data: Any, request: ShapeRequest, findings: Findings) -> MemoryColumns | Typed:
    """Open rows in memory of any accepted kind."""
    if _is(data, "pandas", "DataFrame"):
        names = [str(name) for name in data.columns]
        columns = [_pandas_cells(data.iloc[:, at]) for at in range(len(names))]
        return MemoryColumns(names, columns, range(1, len(data) + 1))
    if _is(data, "polars", "DataFrame"):
        return _arrow(data.to_arrow(), findings)
    if _is(data, "datasets", "Dataset"):
        return _arrow(data.with_format("arrow")[:], findings)
    if isinstance(data, pa.Table | pa.RecordBatch):
        return _arrow(pa.table(data), findings)
    return _open_list(_as_list(data), request, findings)


def _is(data: object, package: str, kind: str) -> bool:
    module = sys.modules.get(package)
    return module is not None and isinstance(data, getattr(module, kind, ()))


def _pandas_cells(series: Any) -> list[object]:
    """Convert cells to Python values; missing values become None."""
    return [None if missing else cell for cell, missing in zip(series.tolist(), series.isna().tolist(), strict=True)]


def _arrow(table: pa.Table, findings: Findings) -> Typed:
    return Typed(table.schema, lambda names: table.select(names).to_batches(), MOST_UNPACKED, findings)


def _as_list(data: object) -> list[object]:
    for convert in ("tolist", "to_list", "to_pylist"):  # numpy and pandas, polars, Arrow
        if hasattr(data, convert):
            return list(getattr(data, convert)())
    if isinstance(data, Mapping):
        fix = "choose one split, as in data['train'], or turn columns into a table: pandas.DataFrame(data)"
        raise InputError("data", f"found {kind_of(data)}", f"a list of {ACCEPTED}", fix)
    if isinstance(data, AnySet) or not isinstance(data, Iterable):
        ordered = isinstance(data, AnySet)
        fix = "make a list of it, so that the rows have an order" if ordered else "pass the rows, or the path of a file"
        raise InputError("data", f"found {kind_of(data)}", f"a path, or a list of {ACCEPTED}", fix)
    return list(data)


def _open_list(rows: list[object], request: ShapeRequest, findings: Findings) -> MemoryColumns:
    first = rows[0] if rows else ""
    if isinstance(first, Mapping):
        return _of_dicts(rows, request, findings)
    if isinstance(first, tuple | list):
        _refuse_lists_of_rows(first)
        return _of_tuples(rows, len(first), request, findings)
    if not isinstance(first, str):
        fix = "convert the rows; columns can also be passed as a DataFrame"
        raise InputError("the list, row 1", f"found {kind_of(first)}", "a string, a tuple or a dict", fix)
    return MemoryColumns(("text",), (rows,), range(1, len(rows) + 1))


def _refuse_lists_of_rows(first: Sequence[object]) -> None:
    """Refuse several inputs, each a list of rows, in one list: its rows would be taken for cells."""
    if first and isinstance(first[0], tuple | list | Mapping):
        fix = "join the lists (a + b), or make each of them an input of its own: [sentloom.read(a), sentloom.read(b)]"
        raise InputError("the list, row 1", "found a list of rows", "a string, a tuple or a dict", fix)


def _of_dicts(rows: list[object], request: ShapeRequest, findings: Findings) -> MemoryColumns:
    """Use the keys of all dicts as columns, and asked values inside; a key that a dict lacks gives an empty cell."""
    valid = _rows_of_kind(rows, Mapping, "a dict", findings)
    keys = list(dict.fromkeys(key for _, row in valid for key in row))
    names, columns = [str(key) for key in keys], [[row.get(key) for _, row in valid] for key in keys]
    for name in map(str, request.named):
        if name not in names and (steps := parse_path(name)):
            names.append(name)
            columns.append([value_at(row, steps) for _, row in valid])
    return MemoryColumns(names, columns, [place for place, _ in valid], tuple(suggested(valid[0][1])) if valid else ())


def _of_tuples(rows: list[object], width: int, request: ShapeRequest, findings: Findings) -> MemoryColumns:
    valid = []
    for place, row in _rows_of_kind(rows, tuple | list, "a tuple", findings):
        if len(row) == width:
            valid.append((place, row))
        else:
            findings.problem(
                place, f"found {_values(len(row))}", f"{width}, as in the first row", "rows of another length"
            )
    columns = [[row[at] for _, row in valid] for at in range(width)]
    return MemoryColumns(_tuple_names(columns, request), columns, [place for place, _ in valid])


def _rows_of_kind(rows: list[object], kind: Any, expected: str, findings: Findings) -> list[tuple[int, Any]]:
    """Return the rows of this kind with their places; report a problem for each other row."""
    for place, row in enumerate(rows, 1):
        if not isinstance(row, kind):
            problem, kinds = f"found {kind_of(row)}", f"rows that are not {expected}"
            findings.problem(place, problem, f"{expected}, as in the first row", kinds)
    return [(place, row) for place, row in enumerate(rows, 1) if isinstance(row, kind)]


def _tuple_names(columns: Sequence[Sequence[object]], request: ShapeRequest) -> list[str]:
    """Name the columns of tuples, which have no header, by the request or by their length and first values."""
    width = len(columns)
    if request.by_number:
        return [f"column {number}" for number in range(1, width + 1)]
    if request.shape is None and width == 2:
        _refuse_labels(columns[1])
    names = COLUMNS[request.shape or _tuple_shape([_plain(column[0]) for column in columns])]
    if names[-1] == "negatives":
        return [*names[:-1], *(f"negative_{number}" for number in range(1, width - len(names) + 2))]
    if len(names) != width:
        problem, expected = f"the tuples have {_values(width)}", f"{len(names)} for {request.shape}: {', '.join(names)}"
        raise InputError("the list", problem, expected, "pass dicts or a DataFrame, which name their columns")
    return list(names)


def _refuse_labels(second: Sequence[object]) -> None:
    """Refuse pairs whose second texts look like labels: training on them as texts would go wrong without a word."""
    texts = [cell for cell in second if isinstance(cell, str)]
    different = len(set(texts))
    if len(texts) >= LEAST_LABELLED and different * LABEL_REPEATS <= len(texts):
        problem = f"the second values are {different} different texts in {len(texts):,} rows, which looks like labels"
        fix = "say what they are: sentloom.read(rows, shape='classification') for labels, shape='pairs' for texts"
        raise InputError("the list", problem, "", fix)


def _tuple_shape(first: Sequence[object]) -> Shape:
    """Infer the shape of (text,), (anchor, positive), (text, 3), (sentence, sentence, 0.5), and so on."""
    is_text = [isinstance(cell, str) for cell in first]
    if len(first) < 2:
        return Shape.TEXTS
    if len(first) == 2:
        return Shape.PAIRS if is_text[1] else Shape.CLASSIFICATION
    if len(first) == 3 and is_nli_word(first[2]):
        return Shape.NLI
    return Shape.SCORED_PAIRS if len(first) == 3 and isinstance(first[2], int | float) else Shape.TRIPLETS


def _values(count: int) -> str:
    return "1 value" if count == 1 else f"{count} values"


def _plain(cell: Any) -> object:
    """Convert a cell to a Python value: numpy values unpacked, NaN to None, tuples and arrays to lists."""
    if type(cell) is str:
        return cell
    if isinstance(cell, np.generic | np.ndarray):
        cell = cell.tolist()
    if isinstance(cell, tuple):
        return list(cell)
    return None if isinstance(cell, float) and cell != cell else cell
