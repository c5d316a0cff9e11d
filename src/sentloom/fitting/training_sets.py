"""Step 3, training sets: the training rows in the form that methods take, written to files that recipes name."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from sentloom.data.dataset import Dataset
from sentloom.data.sentences import texts_of
from sentloom.data.shapes import COLUMNS, Shape
from sentloom.data.writers import write
from sentloom.errors import InputError
from sentloom.files import new_file
from sentloom.fitting.inputs import Input
from sentloom.fitting.split import Split

LENGTH = 64  # tokens that a sentence is truncated to, for training only
FEWEST_ROWS = 10  # training rows of an input
HIGH = 0.8  # of the way from the lowest to the highest score: such pairs mean much the same
MOST_SEARCHED = 200_000  # texts that `sentloom search MODEL` looks in


@dataclass(frozen=True)
class TrainingSet:
    """The training rows of one shape: how many, in which files, and the language of their first column."""

    shape: Shape
    rows: int
    files: tuple[str, ...]
    language: str | None = None
    length: int = LENGTH


def training_rows(given: Input, split: Split, *, as_read: bool = False) -> Dataset:
    """The training rows of an input in the form that methods take, or as they were read; too few are refused."""
    rows = split.train if as_read else training_form(split.train)
    if len(rows) < FEWEST_ROWS:
        high = " with a high score" if rows.shape != split.train.shape else ""
        problem = f"{len(rows):,} training rows{high}"
        raise InputError(given.name, problem, f"at least {FEWEST_ROWS}", "give more rows")
    return rows


def training_form(data: Dataset) -> Dataset:
    """Scored pairs become the pairs with a high score, labelled texts become texts; the rest stays as it is."""
    if data.shape is Shape.SCORED_PAIRS:
        return high_pairs(data)
    return texts_of(data) if data.shape in (Shape.CLASSIFICATION, Shape.TEXTS) else data


def high_pairs(data: Dataset) -> Dataset:
    """The pairs that people scored high, without their scores."""
    scores = data.column("score")
    least, greatest = pc.min(scores).as_py(), pc.max(scores).as_py()
    high = data.select(np.asarray(scores.to_numpy() >= least + HIGH * (greatest - least)))
    names = {"sentence1": "anchor", "sentence2": "positive"}
    table = high.table.drop_columns(["score"])
    renamed = table.rename_columns([names.get(name, name) for name in table.column_names])
    return high.derive(renamed, "high scores as pairs", Shape.PAIRS)


def training_file(folder: Path, number: int, rows: Dataset) -> Path:
    """The file of the training rows of an input; inputs are numbered from 1."""
    return folder / f"{number}-{rows.shape}.parquet"


def write_training_sets(
    inputs: Sequence[Input], rows: Sequence[Dataset], length: int, folder: Path
) -> tuple[TrainingSet, ...]:
    """Write the training rows of each input; those of one shape form one training set."""
    found: dict[Shape, TrainingSet] = {}
    for number, (given, data) in enumerate(zip(inputs, rows, strict=True), 1):
        path = training_file(folder, number, data)
        write(data, path)
        known = found.get(data.shape, TrainingSet(data.shape, 0, (), given.language))
        language = known.language if known.language == given.language else None
        files = (*known.files, str(path.resolve()))
        found[data.shape] = TrainingSet(data.shape, known.rows + len(data), files, language, length)
    return tuple(found.values())


def write_search_corpus(inputs: Sequence[Input], path: Path) -> None:
    """Write the texts that `sentloom search MODEL` looks in: the answers of pairs, the first texts of other rows."""
    texts: dict[str, None] = {}
    for given in inputs:
        shape = given.data.shape
        column = COLUMNS[shape][1] if shape in (Shape.PAIRS, Shape.TRIPLETS) else COLUMNS[shape][0]
        texts.update(dict.fromkeys(given.data.column(column).slice(0, MOST_SEARCHED).to_pylist()))
    with new_file(path) as part:
        pq.write_table(pa.table({"text": list(texts)[:MOST_SEARCHED]}), part, write_page_checksum=True)
