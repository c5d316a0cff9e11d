"""Sets of the hub whose tables are not pairs or texts a row: texts apart from judgements, lists in cells."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from sentloom.data.inputs import find_inputs
from sentloom.errors import InputError, MissingPart


def hub_columns(part: str, names: Sequence[str], *wanted: Sequence[str]) -> list[list[Any]]:
    """Columns of a table on the hub, which is tried under each of its names; so is each column.

    `part` is what messages call it. What cannot be had from the hub is missing; what has other columns is refused.
    """
    table = _first(part, names)
    found = [next((name for name in choices if name in table.column_names), None) for choices in wanted]
    if None in found:
        columns = "; ".join("|".join(choices) for choices in wanted)
        raise InputError(names[0], f"the columns {', '.join(table.column_names)}", columns, "give a data folder")
    return [table.column(name).to_pylist() for name in found]


def hub_texts(part: str, names: Sequence[str]) -> dict[str, str]:
    """The text of each query or document by its id; the title of one that has it, since titles are what is compared."""
    numbers, titles, texts = hub_columns(part, names, ("_id", "id"), ("title", "text"), ("text",))
    return {str(number): title or text for number, title, text in zip(numbers, titles, texts, strict=True)}


def _first(part: str, names: Sequence[str]) -> pa.Table:
    for name in names:
        try:
            return _table(find_inputs(name)[0].paths)
        except InputError as error:
            reason = error
    raise MissingPart(part, reason.problem, f"the set {names[0]} on the hub", reason.fix) from reason


def _table(paths: Sequence[Path]) -> pa.Table:
    tables = []
    for path in paths:
        with pa.memory_map(str(path)) as file, pa.ipc.open_stream(file) as stream:
            tables.append(stream.read_all())
    return pa.concat_tables(tables)
