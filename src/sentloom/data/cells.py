"""Validate the cells of each role and convert a chunk of rows to an Arrow record batch."""

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import Enum, auto
from itertools import chain
from typing import Any, NamedTuple, assert_never

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sentloom.data.dataset import FILE, LINE
from sentloom.data.findings import EMPTY_CELLS, Findings
from sentloom.data.layout import Layout
from sentloom.data.limits import LONGEST, shown
from sentloom.data.nli import nli_label
from sentloom.data.scan import OTHER_ENCODING
from sentloom.data.shapes import Kind, arrow_type, form_of

MISSING_VALUES = "values that were already missing in the source of the data"
LISTS = "a list of positives is read as a row for each of them"
UNUSABLE = object()  # marks a cell that is invalid for its role
WITHOUT_GOLD = "rows without a gold label"


class Chunk(NamedTuple):
    """Some rows: the line (or row) number of each, and the cells of each column that is read, by column position."""

    places: Sequence[int]
    columns: Mapping[int, Sequence[object]]
    files: Sequence[int] = ()  # of an input of several files, the number of each row's file


class Cause(Enum):
    """Why a cell is invalid for its role."""

    EMPTY = auto()
    ENCODING = auto()
    OTHER = auto()


class CellFault(Exception):
    """A cell is invalid for its role."""

    def __init__(self, problem: str, expected: str, cause: Cause = Cause.OTHER) -> None:
        super().__init__(problem)
        self.problem, self.expected, self.cause = problem, expected, cause


def as_text(cell: object) -> str:
    """Parse a sentence: a string that is not blank."""
    if not isinstance(cell, str) or not cell.strip():
        raise _unlike(cell, "text")
    return _clean(cell)


def as_texts(cell: object) -> list[str]:
    """Parse one sentence or a list of sentences, which may be empty: the row then has no hard negatives."""
    if not isinstance(cell, list):
        return [as_text(cell)]
    return [as_text(item) for item in cell]


def as_texts_if_any(cell: object) -> list[str]:
    """Parse one sentence, several or none: of several columns of negatives, some may be empty."""
    return [] if cell is None or cell == [] or (isinstance(cell, str) and not cell.strip()) else as_texts(cell)


def as_score(cell: object) -> float:
    """Parse a finite number, given as a number or as text; true and false are 1 and 0."""
    try:
        value = float(cell)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        value = math.nan
    if not math.isfinite(value):
        raise _unlike(cell, "a finite number")
    return value


def as_nli_label(cell: object) -> str | None:
    """Parse an NLI label to its canonical word, or to None if there is no gold label."""
    try:
        return nli_label(cell)
    except KeyError:
        expected = "entailment, neutral, contradiction, not_entailment, or 0, 1, 2 for the first three"
        raise _unlike(cell, expected) from None


def as_label(cell: object) -> str:
    """Parse the name of a class; numbers become text."""
    if not isinstance(cell, str | int | float) or not str(cell).strip():
        raise _unlike(cell, "a label")
    return _clean(str(cell).strip())


def as_kept(cell: object) -> str:
    """Convert any value to text; None becomes the empty string, lists and objects JSON."""
    if isinstance(cell, list | dict):
        return _clean(json.dumps(cell, ensure_ascii=False, default=str))
    return "" if cell is None else _clean(str(cell))


def as_count(cell: str) -> float:
    """How often something was clicked; what is no number counts once."""
    try:
        return as_score(cell)
    except CellFault:
        return 1.0


def _clean(text: str) -> str:
    if len(text) > LONGEST:
        raise CellFault(f"{len(text):,} characters", f"at most {LONGEST:,}")
    if "\0" in text:
        raise CellFault(f"NUL character at character {text.index(chr(0)) + 1}", "text")
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise _half(ord(text[error.start]), error.start + 1) from None
    return text


def _half(surrogate: int, place: int) -> CellFault:
    """Explain a lone surrogate: it was in the text, or it represents a byte that could not be decoded."""
    if 0xDC80 <= surrogate <= 0xDCFF:
        return CellFault(f"invalid byte 0x{surrogate - 0xDC00:02X} at character {place}", "UTF-8", Cause.ENCODING)
    return CellFault(f"lone surrogate U+{surrogate:04X} at character {place}", "whole characters")


def _unlike(cell: object, expected: str) -> CellFault:
    if cell is None or (isinstance(cell, str) and not cell.strip()):
        return CellFault("empty cell", expected, Cause.EMPTY)
    return CellFault(_shown(cell), expected)


def _shown(cell: object) -> str:
    try:
        text = ascii(cell) if isinstance(cell, bytes) else repr(cell)
    except (RecursionError, ValueError):  # deeply nested, or a number of thousands of digits
        text = f"a {type(cell).__name__} too large to show"
    return f"found {text}" if len(text) <= 40 else f"found {text[:40]}..."


def schema_of(layout: Layout) -> pa.Schema:
    """Return the schema of a layout: canonical columns, extra columns kept on request, origin."""
    fields = [(role, arrow_type(role)) for role in layout.roles]
    kept = [(name, pa.large_string()) for name in layout.kept]
    return pa.schema([*fields, *kept, (FILE, pa.int32()), (LINE, pa.int64())])


def make_batch(layout: Layout, chunk: Chunk, file: int, findings: Findings) -> pa.RecordBatch | None:
    """Convert a chunk to Arrow without its unusable rows.

    Returns None once a single problem is enough to refuse the data; further rows are then only checked.
    """
    before, chunk = findings.total, _one_positive_each(layout, chunk, findings)

    def cells(parse: Callable[[Any], Any], at: int) -> Sequence[Any]:
        return _parsed(parse, layout.names[at], chunk.columns[at], chunk.places, findings)

    kinds = form_of(layout.shape).columns
    columns: list[Sequence[Any]] = []
    for role, positions in layout.roles.items():
        if len(positions) == 1:
            columns.append(cells(_parser(kinds[role]), positions[0]))
        else:
            rows = zip(*(cells(as_texts_if_any, at) for at in positions), strict=True)
            columns.append(_joined(rows, layout.names[positions[0]], chunk.places, findings))
    columns += [cells(as_kept, at) for at in layout.kept.values()]
    if findings.strict and findings.total:
        return None
    places, files = chunk.places, chunk.files or [0] * len(chunk.places)
    if findings.total > before:
        usable = [at for at, row in enumerate(zip(*columns, strict=True)) if UNUSABLE not in row]
        findings.repeated += findings.total - before - (len(places) - len(usable))
        places, files = [places[at] for at in usable], [files[at] for at in usable]
        columns = [[column[at] for at in usable] for column in columns]
    origin = [np.asarray(files, np.int32) + file, np.asarray(places, np.int64)]
    schema = schema_of(layout)
    arrays = [pa.array(values, kind) for values, kind in zip([*columns, *origin], schema.types, strict=True)]
    batch = pa.record_batch(arrays, schema=schema)
    return _with_gold(batch, findings) if Kind.NLI_LABEL in kinds.values() else batch


def _one_positive_each(layout: Layout, chunk: Chunk, findings: Findings) -> Chunk:
    """Rows with a list of positives as a row for each of them."""
    at = layout.roles.get("positive", (-1,))[0]
    cells = chunk.columns.get(at, ())
    if not any(isinstance(cell, list) for cell in cells):
        return chunk
    rows = [row for row, cell in enumerate(cells) for _ in (cell if isinstance(cell, list) and cell else [cell])]
    if LISTS not in findings.notes:
        findings.notes.append(LISTS)
    columns = {other: [column[row] for row in rows] for other, column in chunk.columns.items()}
    each = [item for cell in cells for item in (cell if isinstance(cell, list) and cell else [cell])]
    columns[at] = [None if item == [] else item for item in each]
    files = [chunk.files[row] for row in rows] if chunk.files else ()
    return Chunk([chunk.places[row] for row in rows], columns, files)


def _joined(rows: Iterable[Sequence[Any]], name: str, places: Sequence[int], findings: Findings) -> list[object]:
    """Concatenate the lists of several columns, of which one at least must have a text."""
    lists = [UNUSABLE if UNUSABLE in row else list(chain(*row)) for row in rows]
    return [cell or _parse_one(as_text, name, None, place, findings) for cell, place in zip(lists, places, strict=True)]


def _parser(kind: Kind) -> Callable[[Any], Any]:
    match kind:
        case Kind.TEXT:
            return as_text
        case Kind.NEGATIVES:
            return as_texts
        case Kind.SCORE:
            return as_score
        case Kind.LABEL:
            return as_label
        case Kind.NLI_LABEL:
            return as_nli_label
        case _:
            assert_never(kind)


def _parsed(
    parse: Callable[[Any], Any], name: str, cells: Sequence[Any], places: Sequence[int], findings: Findings
) -> Sequence[Any]:
    """Parse all cells; only if one fails, parse them again one by one to report which."""
    if parse is as_text and _sound(cells):
        return cells
    try:
        return [parse(cell) for cell in cells]
    except CellFault:
        return [_parse_one(parse, name, cell, place, findings) for place, cell in zip(places, cells, strict=True)]


def _parse_one(parse: Callable[[Any], Any], name: str, cell: object, place: int, findings: Findings) -> object:
    try:
        return parse(cell)
    except CellFault as fault:
        column = f"in column {shown(name)!r}"
        empty = fault.cause is Cause.EMPTY
        kind = f"{EMPTY_CELLS} {column}" if empty else f"cells that are not {fault.expected} {column}"
        cause = {Cause.EMPTY: MISSING_VALUES, Cause.ENCODING: OTHER_ENCODING}.get(fault.cause, "")
        findings.problem(place, f"{fault.problem} {column}", fault.expected, kind, cause)
        return UNUSABLE


def _sound(cells: Sequence[Any]) -> bool:
    """Whether `as_text` accepts every cell, checked in a few passes in C, ten times as fast as calling it."""
    try:
        text = "".join(cells)
        fits = len(text) <= LONGEST or max(map(len, cells)) <= LONGEST
        return fits and all(map(str.strip, cells)) and b"\0" not in text.encode()
    except (TypeError, UnicodeEncodeError):
        return False


def _with_gold(batch: pa.RecordBatch, findings: Findings) -> pa.RecordBatch:
    labels = batch.column("label")
    if labels.null_count:
        findings.skipped[WITHOUT_GOLD] += labels.null_count
        return batch.filter(pc.is_valid(labels))
    return batch
