"""Continuing a model: the rows that it was fitted to join the new ones, and stay on their side."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from sentloom.data.dataset import Dataset
from sentloom.data.hygiene.cleaning import CleanSettings, clean
from sentloom.data.hygiene.inspection import inspect
from sentloom.data.readers import join
from sentloom.errors import InputError
from sentloom.fitting.clusters import Keys, sentences, union
from sentloom.fitting.inputs import Earlier, FitInput
from sentloom.fitting.stored import stored_rows

if TYPE_CHECKING:
    from sentloom.fitting.request import Log

SIDES = ("train", "validation", "test")


def with_earlier_rows(inputs: Sequence[FitInput], folder: Path, log: "Log") -> list[FitInput]:
    """Every input with the rows of an earlier fit: the first of its inputs of the same shape that is left."""
    stored = {side: stored_rows(folder, side) for side in SIDES}
    left = sorted(stored["train"])
    joined = []
    for fit_input in inputs:
        numbers = [number for number in left if stored["train"][number][0].shape is fit_input.data.shape]
        if not numbers:
            shapes = ", ".join(sorted({str(rows[0].shape) for rows in stored["train"].values()}))
            problem = f"these are {fit_input.data.shape}, and the model was fitted to {shapes}"
            raise InputError(fit_input.name, problem, "more rows of the same kind", "fit a model of its own to them")
        left.remove(numbers[0])
        joined.append(_joined(fit_input, {side: stored[side].get(numbers[0], []) for side in SIDES}, log))
    for number in left:
        log(f"input {number} of {folder} is not continued: nothing new is like it")
    return joined


def _joined(fit_input: FitInput, earlier: dict[str, list[Dataset]], log: "Log") -> FitInput:
    before = [data for side in SIDES for data in earlier[side]]
    data, _ = clean(join([fit_input.data, *before]), CleanSettings())
    keys: dict[str, Keys] = {side: union([sentences(part).row_keys for part in earlier[side]]) for side in SIDES}
    count = sum(map(len, before))
    log(f"{fit_input.name}: {len(fit_input.data):,} rows, and {count:,} of the model that is continued")
    return replace(
        fit_input,
        data=data,
        inspection=inspect(data),
        groups=(),
        read=fit_input.read + count,
        lost={**fit_input.lost, "rows that the model has already": len(fit_input.data) + count - len(data)},
        earlier=Earlier(keys["train"], keys["test"]),
    )
