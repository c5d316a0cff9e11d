"""Read hub tables that are not simply texts or pairs per row: texts separate from judgements, lists in cells."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from sentloom.data.inputs import find_inputs
from sentloom.errors import InputError, MissingPart, option


def hub_columns(part: str, names: Sequence[str], *wanted: Sequence[str]) -> list[list[Any]]:
    """Read columns of a table on the hub; the first existing name of the table and of each column is used.

    `part` is its name in messages. A table that cannot be downloaded is missing; one with other columns is refused.
    """
    table = _first(part, names)
    found = [next((name for name in choices if name in table.column_names), None) for choices in wanted]
    if None in found:
        columns = "; ".join("|".join(choices) for choices in wanted)
        problem = f"the columns are {', '.join(table.column_names)}"
        raise InputError(names[0], problem, columns, "give a data folder")
    return [table.column(name).to_pylist() for name in found]


def hub_texts(part: str, names: Sequence[str]) -> dict[str, str]:
    """Read the title (or the text, if there is no title) of each query or document by id."""
    numbers, titles, texts = hub_columns(part, names, ("_id", "id"), ("title", "text"), ("text",))
    return {str(number): title or text for number, title, text in zip(numbers, titles, texts, strict=True)}


def _first(part: str, names: Sequence[str]) -> pa.Table:
    for name in names:
        try:
            return _table(find_inputs(name)[0].paths)
        except (InputError, MissingPart) as error:
            reason = error
    fix = f"give a data folder: {option('data', 'DIR')}; or {reason.fix}"
    raise MissingPart(part, reason.problem, f"the set {names[0]} on the hub", fix) from reason


def _table(paths: Sequence[Path]) -> pa.Table:
    tables = []
    for path in paths:
        with pa.memory_map(str(path)) as file, pa.ipc.open_stream(file) as stream:
            tables.append(stream.read_all())
    return pa.concat_tables(tables)
