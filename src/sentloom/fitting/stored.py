"""What the folder of a fit keeps for later: the model that its gate tested, and its rows."""

from collections.abc import Sequence
from itertools import chain
from pathlib import Path

import pyarrow.parquet as pq

from sentloom.data.dataset import Dataset
from sentloom.data.readers import read
from sentloom.data.shapes import Shape
from sentloom.encoder import Encoder
from sentloom.encoder.loading import shared_encoder
from sentloom.errors import InputError
from sentloom.evaluation.task import CLUSTER
from sentloom.files import at_its_name
from sentloom.fitting.clusters import Keys, connecting_keys, distinct_keys, sentences, union
from sentloom.fitting.result import FitResult
from sentloom.fitting.shapes import handler
from sentloom.fitting.shapes.texts import FEWEST_ITEMS
from sentloom.fitting.split import Split
from sentloom.fitting.tasks import MOST_CANDIDATES, HeldOut, held_out

REPORT, SUFFIX = "report.json", ".fit"
SIDES = ("train", "test")  # that every fit has


def is_fit(name: str | Path) -> bool:
    """Whether a name means the folder of a fit, which may be missing or damaged."""
    return Path(name).suffix == SUFFIX or (Path(name) / REPORT).is_file()


def read_fit(folder: Path) -> FitResult:
    """The result of a fit whose folder is complete."""
    _refuse_incomplete(folder)
    return FitResult.read(folder / REPORT)


def _refuse_incomplete(folder: Path) -> None:
    """Say that a fit is missing, or which part of it."""
    if not folder.is_dir():
        raise _incomplete(folder, "there is no such folder", "correct the name")
    if not (folder / REPORT).is_file():
        raise _incomplete(folder, f"its {REPORT} is missing", "run the fit to its end, or correct the name")
    stored = {side: {number for number, _ in _files(folder, side)} for side in SIDES}
    for side, numbers in stored.items():
        if not numbers or numbers != stored["train"]:
            raise _incomplete(folder, f"its {side} rows are missing in {folder / 'data'}", "fit again")


def _incomplete(folder: Path, problem: str, fix: str) -> InputError:
    return InputError(str(folder), problem, "the folder that `sentloom fit` wrote", fix)


def tested_encoder(folder: Path, result: FitResult) -> Encoder:
    """The model that the gate of a fit tested, whether or not it was written."""
    path = folder / result.tested
    if not result.tested or not at_its_name(path).is_dir():
        raise _incomplete(folder, "its model is missing", "fit again")
    return shared_encoder(path)


def seen_keys(folder: Path) -> Keys:
    """The sentences that a fit trained on, and those that connect other rows to the ones that it chose on."""
    trained, chosen_on = ([*chain(*stored_rows(folder, side).values())] for side in ("train", "validation"))
    return union([distinct_keys(trained), connecting_keys(chosen_on)])


def test_parts(folder: Path, result: FitResult, seen: Keys) -> tuple[list[HeldOut], int]:
    """The test rows of a fit that are not among `seen`, as it asked about them, and how many are.

    Where there are labels, raw text decides nothing.
    """
    parts, left_out = list[HeldOut](), 0
    validation, train = stored_rows(folder, "validation"), stored_rows(folder, "train")
    for number, (rows,) in stored_rows(folder, "test").items():
        test = rows.select(~sentences(rows).touching(seen))
        left_out += len(rows) - len(test)
        split = Split(train[number][0], validation.get(number, [test[:0]])[0], test, test[:0])
        part = _part(result.sources[number - 1].name, split, corpus_texts(folder, number)) if len(test) else None
        if part and min((task.item_count for task in part.tasks), default=0) >= FEWEST_ITEMS:
            parts.append(part)
    return [part for part in parts if part.labelled] or parts, left_out


def _part(name: str, split: Split, more: Sequence[str]) -> HeldOut:
    return held_out(name, split.test, handler(split.test).corpus(split, more, MOST_CANDIDATES))


def stored_rows(folder: Path, side: str) -> dict[int, list[Dataset]]:
    """The rows of one side of each input, by its number; documents with titles are pairs, and texts as well."""
    rows: dict[int, list[Dataset]] = {}
    for number, path in _files(folder, side):
        rows.setdefault(number, []).append(read(path, shape=_shape(path, side), keep=(CLUSTER,)))
    return rows


def _files(folder: Path, side: str) -> list[tuple[int, Path]]:
    """The files of one side, each with the number of its input."""
    paths = sorted((folder / "data").glob(f"*-{side}.parquet"))
    return [(int(path.name.partition("-")[0]), path) for path in paths]


def _shape(path: Path, side: str) -> Shape:
    return Shape(path.name.removesuffix(f"-{side}.parquet").partition("-")[2])


def corpus_texts(folder: Path, number: int) -> list[str]:
    """What the queries of an input searched in a fit: its own texts, and those of `--corpus`."""
    path = folder / "corpus.parquet"
    rows = pq.read_table(path).to_pylist() if path.is_file() else []
    return [row["text"] for row in rows if {"0", str(number)} & set(row.get("of", "0").split())]
