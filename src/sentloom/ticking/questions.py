"""What people are asked: test rows of a fit, one per cluster, for which its two models find different first texts.

The rank that each model gives to the other's first result says how much they disagree. By it, the queries are divided
into strata of equal size. Within a stratum the order is random; of strata in which the models disagree more, more
queries are asked, because answers vary more there. Every beginning of the list keeps these proportions.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow.parquet as pq

from sentloom.data.dataset import Dataset
from sentloom.data.shapes import COLUMNS
from sentloom.encoder import Encoder
from sentloom.errors import InputError
from sentloom.evaluation.bench import Memory, vectors_of
from sentloom.evaluation.task import CLUSTER, Scores, Task
from sentloom.fitting.panel import distinct_texts, text_key
from sentloom.fitting.result import FitResult
from sentloom.fitting.shapes import handler
from sentloom.fitting.stored import REPORT, stored_rows
from sentloom.search.vectors import Vectors, normalised
from sentloom.writing.views.pairs import seed_for

CORPUS = "corpus.parquet"
MOST_DOCUMENTS = 10_000  # that queries search: both models encode all of them
SAMPLE_SEED = 0  # of the sample, if there are more
RATES = (1.0, 1.5, 2.0)  # how often a query is asked in each stratum, from slight to strong disagreement
BLOCK = 256  # queries whose cosines are in memory at once
SEED = 1
Searching = tuple[Vectors, Vectors]  # a model's vectors of queries (n, d) and documents (m, d)


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
    labelled = [rows for rows in parts if handler(rows).labelled] or parts
    of_clusters: dict[object, str] = {}
    for number, (text, cluster) in enumerate(chain(*map(_first_texts, labelled))):
        key = ("alone", number) if cluster is None else cluster
        of_clusters[key] = min(of_clusters.get(key, text), text, key=lambda text: (seed_for(SAMPLE_SEED, text), text))
    return tuple(distinct_texts(list(of_clusters.values())).values())


def _first_texts(rows: Dataset) -> list[tuple[str, int | None]]:
    texts = rows.column(COLUMNS[rows.shape][0]).to_pylist()
    known = CLUSTER in rows.table.column_names
    return list(zip(texts, rows.column(CLUSTER).to_pylist() if known else [None] * len(texts), strict=True))


def read_searched(folder: Path, most: int = MOST_DOCUMENTS) -> Searched:
    """The texts that `sentloom search MODEL` searches, or a seeded sample of them."""
    texts = list(distinct_texts(pq.read_table(folder / CORPUS).column("text").to_pylist()).values())
    chosen = sorted(np.random.default_rng(SAMPLE_SEED).permutation(len(texts))[:most].tolist())
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


@dataclass(frozen=True)
class Question:
    """A query, and the first result of each model."""

    query: str
    base: str
    fitted: str
    stratum: int  # from 0, where the models disagree least


@dataclass(frozen=True)
class Questions:
    """All queries with different first results, in the order in which they are asked."""

    asked: tuple[Question, ...]
    sizes: tuple[int, ...]  # of the strata
    total: int  # queries, with those whose first results are the same
    documents: int  # that were searched
    of_documents: int

    @property
    def sha256(self) -> str:
        """The hash of everything that is asked."""
        content = [self.total, *([asked.query, asked.base, asked.fitted, asked.stratum] for asked in self.asked)]
        return hashlib.sha256(json.dumps(content, ensure_ascii=False).encode()).hexdigest()


@dataclass(frozen=True)
class Difference:
    """A query and two documents, by their numbers, and how far apart the models rank them (from 1 up to 2)."""

    query: int
    base: int
    fitted: int
    distance: float


def make_questions(
    queries: Sequence[str], documents: Sequence[str], base: Searching, fitted: Searching, of_documents: int
) -> Questions:
    """Compare the first results of both models, and put the queries in order."""
    differing = sorted(
        differences(queries, documents, base, fitted),
        key=lambda pair: (pair.distance, seed_for(SEED, queries[pair.query])),
    )
    strata = [[int(place) for place in part] for part in np.array_split(np.arange(len(differing)), len(RATES))]
    shuffled = [sorted(part, key=lambda place: seed_for(SEED, queries[differing[place].query])) for part in strata]
    order = ((stratum, differing[shuffled[stratum][turn]]) for stratum, turn in turns([len(part) for part in strata]))
    asked = tuple(
        Question(queries[pair.query], documents[pair.base], documents[pair.fitted], stratum) for stratum, pair in order
    )
    return Questions(asked, tuple(map(len, strata)), len(queries), len(documents), of_documents)


def differences(
    queries: Sequence[str], documents: Sequence[str], base: Searching, fitted: Searching
) -> Iterator[Difference]:
    """The queries whose first results differ. No query finds itself: equal texts do not count as results."""
    place = {text_key(text): number for number, text in enumerate(documents)}
    units = [(normalised(asked), normalised(searched)) for asked, searched in (base, fitted)]
    for start in range(0, len(queries), BLOCK):
        block = queries[start : start + BLOCK]
        cosines = [asked[start : start + BLOCK] @ searched.T for asked, searched in units]
        for of_model in cosines:
            _hide_own(of_model, block, place)
        yield from _of_block(start, *cosines)


def _hide_own(cosines: Vectors, queries: Sequence[str], place: Mapping[str, int]) -> None:
    for row, query in enumerate(queries):
        if (own := place.get(text_key(query))) is not None:
            cosines[row, own] = -np.inf


def _of_block(start: int, base: Vectors, fitted: Vectors) -> Iterator[Difference]:
    firsts = base.argmax(axis=1), fitted.argmax(axis=1)
    other_ranks = _ranks(base, firsts[1]), _ranks(fitted, firsts[0])  # >= 2 unless both have the same first result
    distance = sum(1 - 1 / ranks for ranks in other_ranks)
    for row in np.flatnonzero(firsts[0] != firsts[1]).tolist():
        yield Difference(start + row, int(firsts[0][row]), int(firsts[1][row]), float(np.asarray(distance)[row]))


def _ranks(cosines: Vectors, chosen: npt.NDArray[np.intp]) -> npt.NDArray[np.int64]:
    """The rank of one document of each row, from 1. (q, m), (q,) -> (q,)."""
    ranks: npt.NDArray[np.int64] = 1 + (cosines > np.take_along_axis(cosines, chosen[:, None], 1)).sum(axis=1)
    return ranks


def turns(sizes: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Strata in turn, in proportion to their sizes and rates, each with its own count."""
    weights = np.array(sizes) * np.array(RATES[: len(sizes)])
    shares, taken = weights / max(weights.sum(), 1.0), np.zeros(len(sizes), np.int64)
    for turn in range(sum(sizes)):
        short = np.where(taken < sizes, shares * (turn + 1) - taken, -np.inf)
        stratum = int(short.argmax())
        yield stratum, int(taken[stratum])
        taken[stratum] += 1
