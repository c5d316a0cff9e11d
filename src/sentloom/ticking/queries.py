"""What is asked and searched: the test rows of a fit, one per cluster, look for texts in the corpus of the fit."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

from sentloom.data.dataset import Dataset
from sentloom.data.shapes import COLUMNS, Shape
from sentloom.encoder import Encoder
from sentloom.errors import InputError
from sentloom.evaluation.bench import Memory, vectors_of
from sentloom.evaluation.task import CLUSTER, Scores, Task
from sentloom.fitting.compare_fits import REPORT, stored_rows
from sentloom.fitting.panel import distinct_texts
from sentloom.fitting.result import FitResult
from sentloom.search.vectors import Vectors
from sentloom.views.maker import seed_for

CORPUS = "corpus.parquet"
MOST_DOCUMENTS = 10_000  # that queries search: both models encode all of them
SEED = 0  # of the sample, if there are more


@dataclass(frozen=True)
class Searched:
    """Distinct texts that queries search, and how many there are in all."""

    texts: tuple[str, ...]
    of: int


def read_fit(folder: Path) -> FitResult:
    """The result of a finished fit, by its folder."""
    if not (folder / REPORT).is_file() or not (folder / CORPUS).is_file():
        problem = "there is no finished fit" if folder.is_dir() else "there is no such folder"
        fix = "name the folder MODEL.fit, and run the fit to its end"
        raise InputError(str(folder), problem, "the folder that `sentloom fit` wrote", fix)
    return FitResult.read(folder / REPORT)


def read_queries(folder: Path) -> tuple[str, ...]:
    """The first texts of the test rows, one per cluster: rows of a cluster would be asked the same thing twice.

    If some inputs have labels, raw text is left out, as it is for the verdict of the fit.
    """
    parts = [rows for (rows, *_) in stored_rows(folder, "test").values()]
    labelled = [rows for rows in parts if rows.shape is not Shape.TEXTS] or parts
    found: dict[object, str] = {}
    for number, (text, cluster) in enumerate(chain(*map(_first_texts, labelled))):
        key = ("alone", number) if cluster is None else cluster
        found[key] = min(found.get(key, text), text, key=lambda one: (seed_for(SEED, one), one))
    return tuple(distinct_texts(list(found.values())).values())


def _first_texts(rows: Dataset) -> list[tuple[str, int | None]]:
    texts = rows.column(COLUMNS[rows.shape][0]).to_pylist()
    known = CLUSTER in rows.table.column_names
    return list(zip(texts, rows.column(CLUSTER).to_pylist() if known else [None] * len(texts), strict=True))


def read_searched(folder: Path, most: int = MOST_DOCUMENTS) -> Searched:
    """The texts that `sentloom search MODEL` searches, or a seeded sample of them."""
    texts = list(distinct_texts(pq.read_table(folder / CORPUS).column("text").to_pylist()).values())
    chosen = sorted(np.random.default_rng(SEED).permutation(len(texts))[:most].tolist())
    return Searched(tuple(texts[place] for place in chosen), len(texts))


def encoded(model: Encoder, queries: Sequence[str], searched: Searched, memory: Memory) -> tuple[Vectors, Vectors]:
    """The vectors of queries and documents, cached."""
    documents = vectors_of(model, searched.texts, "document", memory, show_progress=True)
    return vectors_of(model, queries, "query", memory), documents


def asking_task(queries: Sequence[str]) -> Task:
    """The queries as what is asked of the test rows, so that uses of them can be counted; nothing scores it."""

    def score(lookup: object) -> Scores:
        return {}

    return Task("ticks", "preference", {}, score, items=tuple((query, "") for query in queries))
