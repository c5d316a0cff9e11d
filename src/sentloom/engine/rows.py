"""The rows that stages take, and how rows in memory become files that stages can name.

A stage's rows are read, joined, reduced to a share, and searched for sentences of the evaluation sets. What a caller in
Python passes as data is a name, a file, or rows in memory, which are written to the folder `inputs` of the output.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sentloom.data.batches import text_keys
from sentloom.data.corpus.opening import open_data
from sentloom.data.dataset import Dataset
from sentloom.data.hygiene.leaks import find_leaks, without_leaks
from sentloom.data.in_memory import Data, Inputs, is_table
from sentloom.data.readers import join
from sentloom.data.shapes import text_columns
from sentloom.data.writers import are_recognised, write
from sentloom.engine.artifacts import named_stage
from sentloom.errors import InputError

if TYPE_CHECKING:
    from sentloom.engine.stages.stage import DataStage

Opened = Callable[[str], Dataset]  # the rows of a file, or those that `stage:NAME` refers to
Changes = str | Mapping[str, Any] | Sequence[str]  # to a recipe: KEY=VALUE, one or several
SLICES = 10_000  # rows are assigned to slices by the hash of their first text
INPUTS = "inputs"  # a folder in the output folder
FILE_NAME = re.compile(r"\S+\.(csv|tsv|txt|jsonl?|parquet|arrow|ya?ml)(\.gz)?")  # a typo in it is not a text


# The rows of a stage


def clean_data(stage: "DataStage", evaluated: Sequence[Dataset], opened: Opened | None = None) -> Dataset:
    """A stage's rows as one dataset, without rows that leak if the stage says so."""
    data = read_data(stage, opened)
    return without_leaks(data, evaluated) if stage.drop_leaks else data


def read_data(stage: "DataStage", opened: Opened | None = None) -> Dataset:
    """A stage's rows, or the share of them that it takes, as one dataset in the shape that they have."""
    as_it_is = stage.shape is None and stage.columns is None
    parts = [
        opened(name)
        if opened and (named_stage(name) or as_it_is)
        else open_data(name, shape=stage.shape, columns=stage.columns)
        for name in stage.data
    ]
    flat = len({part.shape for part in parts}) > 1 and stage.takes_texts
    return share_of(join([stage.flattened(part) for part in parts] if flat else parts), stage.data_share)


def share_of(data: Dataset, share: float) -> Dataset:
    """A share of the rows, by a hash of their first text: rows of a smaller share are among those of a larger one."""
    if share == 1:
        return data
    first = data.column(text_columns(data.shape)[0])
    keys = np.concatenate([text_keys(chunk.to_pylist()) for chunk in first.chunks])
    keep = keys // SLICES % SLICES < round(share * SLICES)  # not the slices that premises are held out by
    if not keep.any():
        raise InputError(
            data.files[0], f"a share of {share} has no rows", "at least one", "give more data or a larger share"
        )
    return data.select(keep)


def refuse_leaks(stage: "DataStage", data: Dataset, evaluated: Sequence[Dataset]) -> int:
    """How many sentences of the evaluation sets are in the data: none may be, unless the stage says so."""
    if not evaluated:
        return 0
    leaks = find_leaks(data, evaluated)
    count = leaks.leaked_sentences
    if count and not stage.transductive:
        leak = leaks.first[0]
        raise InputError(
            f"stage {stage.name}, {leak.training}",
            f"{count:,} of its sentences are also scored on, such as {leak.text!r} of {leak.evaluation}",
            "training data without them",
            "set drop_leaks: true to leave those rows out, or transductive: true to train on them, which reports state",
        )
    return count


# The inputs of a call


@dataclass(frozen=True)
class InputFile:
    """The name of an input, and the rows to write there; None for what is a file or a name already."""

    name: str
    rows: Dataset | None = None
    label_column: str = ""  # which of several label columns these rows have
    lost: Mapping[str, int] = field(default_factory=dict)  # rows in memory that are not among these: reason -> rows
    label: str = ""  # what rows in memory are called in messages

    def write(self) -> None:
        """Write the rows, unless an earlier call has."""
        if self.rows is not None and not Path(self.name).exists():
            write(self.rows, Path(self.name), own_names=are_recognised(self.rows))


def input_file(
    data: Data, folder: Path, log: Callable[[str], None], *, label_column: str = "", **reading: Any
) -> InputFile:
    """A file or name as it is; rows in memory, once checked, as a file in the folder `inputs`."""
    if isinstance(data, str | Path):
        return InputFile(str(data))
    rows = open_data(data, **reading)
    for problem in rows.irregular:
        log(f"{rows.files[0]}: {problem}")
    if label_column:  # the same rows are written once for each
        rows = rows.derive(rows.table, f"label column {label_column}")
    lost = {} if rows is data else rows.lost  # rows that the caller has read are counted as they are
    return InputFile(str(folder / INPUTS / f"rows-{rows.sha256[:16]}.parquet"), rows, label_column, lost)


def labelled(inputs: Sequence[InputFile]) -> list[InputFile]:
    """The inputs, with what rows in memory are called in messages: "the list", or "the list (input 2)" of several."""
    labels = [_label(file) for file in inputs]
    return [
        replace(file, label=f"{label} (input {number})" if label and labels.count(label) > 1 else label)
        for number, (file, label) in enumerate(zip(inputs, labels, strict=True), 1)
    ]


def _label(file: InputFile) -> str:
    column = f": {file.label_column}" if file.label_column else ""
    return f"{file.rows.files[0]}{column}" if file.rows is not None else ""


def inputs_in(data: Inputs, *, scored: bool = False) -> list[Data]:
    """The inputs in an argument: one, or several in a list of Paths or tables.

    A list of strings is one input, texts, unless each of them is, or looks like, the name of a file. With `scored` the
    strings are names of sets or files: nothing can be scored on bare texts.
    """
    if not isinstance(data, list | tuple):
        return [data]
    several = any(isinstance(item, Path) or is_table(item) or (scored and isinstance(item, str)) for item in data)
    files = all(isinstance(item, str) and (_is_path(item) or FILE_NAME.fullmatch(item)) for item in data)
    return [*data] if several or files else [data]


def _is_path(name: str, folder: Path = Path()) -> bool:
    try:
        return bool(name) and (folder / name).exists()
    except (OSError, ValueError):  # a text that is too long for a path, or has a NUL character
        return False


def recipe_changes(changes: Changes, recipe: Path, folder: Path) -> tuple[list[str], list[InputFile]]:
    """Changes to a recipe as the command takes them, KEY=VALUE; rows in memory as files that are yet to be written."""
    if not isinstance(changes, Mapping):
        return [changes] if isinstance(changes, str) else [*changes], []
    stated, files = [], []
    for key, value in changes.items():
        if key.rpartition(".")[2] == "data" and not _names_files(value, recipe.parent):
            files.append(input_file(value, folder.resolve(), lambda line: None))
            value = files[-1].name
        stated.append(f"{key}={json.dumps(value, default=str)}")
    return stated, files


def _names_files(value: Any, folder: Path) -> bool:
    """Whether a stage's `data` is names, as in a YAML file."""
    if isinstance(value, str | Path):
        return True
    return isinstance(value, list | tuple) and all(
        isinstance(item, Path)
        or (isinstance(item, str) and (named_stage(item) or item.startswith("embedded") or _is_path(item, folder)))
        for item in value
    )
