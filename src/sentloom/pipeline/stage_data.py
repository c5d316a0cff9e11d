"""The rows of a stage: read, joined, reduced to a share, and searched for sentences of the evaluation sets."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from sentloom.corpus.opening import open_data
from sentloom.data.batches import text_keys
from sentloom.data.dataset import Dataset
from sentloom.data.joining import join
from sentloom.data.sentences import texts_of
from sentloom.data.shapes import text_columns
from sentloom.errors import InputError
from sentloom.hygiene.leaks import find_leaks, without_leaks
from sentloom.pipeline.references import named_stage

if TYPE_CHECKING:
    from sentloom.pipeline.stages.stage import DataStage

Opened = Callable[[str], Dataset]  # the rows that `stage:NAME` refers to
SLICES = 10_000  # rows are assigned to slices by the hash of their first text


def clean_data(stage: "DataStage", evaluated: Sequence[Dataset], opened: Opened | None = None) -> Dataset:
    """A stage's rows as one dataset, without rows that leak if the stage says so."""
    data = read_data(stage, opened)
    return without_leaks(data, evaluated) if stage.drop_leaks else data


def read_data(stage: "DataStage", opened: Opened | None = None) -> Dataset:
    """A stage's rows, or the wanted share of them, as one dataset, in the shape they have."""
    parts = [
        opened(name) if opened and named_stage(name) else open_data(name, shape=stage.shape, columns=stage.columns)
        for name in stage.data
    ]
    flat = len({part.shape for part in parts}) > 1 and stage.takes_texts
    return share_of(join([texts_of(part) for part in parts] if flat else parts), stage.data_share)


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
    """How many sentences of the evaluation sets are in the data; none may be, unless the stage says so."""
    if not evaluated:
        return 0
    leaks = find_leaks(data, evaluated)
    if leaks.leaked_sentences and not stage.transductive:
        one = leaks.first[0]
        raise InputError(
            f"stage {stage.name}, {one.training}",
            f"{leaks.leaked_sentences:,} of its sentences are also scored on, such as {one.text!r} of {one.evaluation}",
            "training data without them",
            "set drop_leaks: true to leave those rows out, or transductive: true to train on them, which reports state",
        )
    return leaks.leaked_sentences
