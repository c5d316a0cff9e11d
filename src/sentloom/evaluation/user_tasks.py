"""Tasks from the user's own files: the scores depend on the shape of the data, or on the requested kind."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import chain
from typing import Any, assert_never

import numpy as np

from sentloom.data.beir import CORPUS, TEST, splits_of
from sentloom.data.corpus.opening import open_data
from sentloom.data.dataset import Dataset
from sentloom.data.inputs import named, split_name
from sentloom.data.shapes import COLUMNS, Shape
from sentloom.encoder.tokens import Role
from sentloom.errors import InputError
from sentloom.evaluation.labels import classification_task, neighbour_task, probe_task
from sentloom.evaluation.metrics import cosine_of_pairs
from sentloom.evaluation.pairs import SEARCH, clusters_of, correlation_task, detection_task, is_binary, ranking_task
from sentloom.evaluation.retrieval import GRADE, search_set, search_task, translation_task
from sentloom.evaluation.set_source import Rows, SetSource
from sentloom.evaluation.task import CLUSTER, Kind, Lookup, Score, Scores, Task, TaskSettings

Options = Mapping[str, Any] | None  # of a probe
QUESTION = "qid"  # the column that identifies questions, if there is one; otherwise the question's text does


class TaskKind(StrEnum):
    """What a user may ask of a file instead of what its shape suggests."""

    RETRIEVAL = "retrieval"
    PAIRS = "pairs"
    CLASSIFICATION = "classification"


@dataclass(frozen=True)
class Corpus:
    """What a retrieval task searches besides the rows it asks about."""

    known: tuple[Dataset, ...] = ()  # more rows of the same source, which may have more relevant documents
    texts: tuple[str, ...] = ()  # more documents


def own_task(kind: TaskKind | None, file: str, origin: SetSource) -> Task:
    """Build the task of a file by kind (`retrieval`, `pairs`, `classification`) or, without one, by its shape.

    Of a folder with judgements, the test queries search the whole corpus.
    """
    name, texts = f"{kind}:{file}" if kind else file, tuple(origin.corpus)
    folder, how = split_name(file)
    if splits := splits_of(folder):
        kind = kind or TaskKind.RETRIEVAL
        file = named(folder, split=TEST) if TEST in splits and how.split is None else file
        texts = texts or tuple(open_data(named(folder, split=CORPUS))["text"])
    data = open_data(file, keep=(QUESTION,))
    data = origin.clustered(data) if origin.clustered else data
    return data_task(kind, name, file, data, origin.probe, Corpus(texts=texts))


def data_task(
    kind: TaskKind | None, name: str, file: str, data: Dataset, probe: Options, corpus: Corpus | None = None
) -> Task:
    """Build the task of a data set. Labelled texts are found by a `probe` if there are no known rows."""
    refuse_unscored(kind, file, data)
    corpus = corpus or Corpus()
    known = _rows(corpus.known, file) if corpus.known else None
    return _makers(kind)[data.shape](name, _rows([data], file), probe, known, corpus.texts)


def known_labels_task(name: str, data: Dataset, probe: Mapping[str, Any], corpus: Corpus) -> Task | None:
    """Build the task of a probe that is trained on the known rows of the corpus; None if they allow none."""
    return probe_task(name, _rows([data], name), _rows(corpus.known, name), probe)


def refuse_unscored(kind: TaskKind | None, file: str, data: Dataset) -> None:
    """Refuse data of a shape that nothing can be scored on."""
    if data.shape not in (makers := _makers(kind)):
        fitting = [str(shape) for shape in makers]
        problem = f"{data.shape} cannot be scored" + (f" as {kind}" if kind else "")
        fix = "give another file or kind; `sentloom check` shows what a file contains"
        raise InputError(file, problem, " or ".join(fitting), fix)


def _rows(datas: Sequence[Dataset], file: str) -> Rows:
    useful = (*COLUMNS[datas[0].shape], QUESTION, CLUSTER)
    names = [name for name in useful if all(name in data.table.column_names for data in datas)]
    return Rows({name: [*chain(*(data.column(name).to_pylist() for data in datas))] for name in names}, file)


def triplet_task(name: str, rows: Rows) -> Task:
    """Build the task of ranking the positive above every negative; ties count as wrong. Other rows ask nothing."""
    rows = _with_negatives(rows)
    anchors, positives, negatives = rows["anchor"], rows["positive"], [*chain(*rows["negatives"])]
    sizes = [len(of_row) for of_row in rows["negatives"]]

    def score(lookup: Lookup) -> Scores:
        anchor = lookup(anchors, "query")
        near = cosine_of_pairs(anchor, lookup(positives, "document"))
        far = cosine_of_pairs(np.repeat(anchor, sizes, axis=0), lookup(negatives, "document"))
        nearest = np.maximum.reduceat(far, np.cumsum([0, *sizes[:-1]]))
        return {"accuracy": Score("mean", (near > nearest).astype(np.float64)[:, None], clusters=clusters_of(rows))}

    texts: dict[Role, Sequence[str]] = {"query": anchors, "document": [*positives, *negatives]}
    items = tuple(zip(anchors, positives, strict=True))
    return Task(name, "accuracy", texts, score, rows.source, rows.sha256, TaskSettings(Kind.TRIPLETS), items=items)


def _with_negatives(rows: Rows) -> Rows:
    asked = [at for at, of_row in enumerate(rows["negatives"]) if of_row]
    if not asked:
        raise InputError(rows.source, "no row has a negative", "at least one", "give negatives, or pairs alone")
    if len(asked) == len(rows):
        return rows
    return replace(rows, columns={name: [cells[at] for at in asked] for name, cells in rows.columns.items()})


def _labels(name: str, rows: Rows, probe: Options, known: Rows | None, texts: Sequence[str]) -> Task:
    return neighbour_task(name, rows, known) if known else classification_task(name, rows, probe or {})


def _search(name: str, rows: Rows, probe: Options, known: Rows | None, texts: Sequence[str]) -> Task:
    return search_task(name, search_set(rows, known, texts), rows.source)


def _graded_search(name: str, rows: Rows, probe: Options, known: Rows | None, texts: Sequence[str]) -> Task:
    """Scores of 0 and 1 rank each question's own candidates; others are grades of documents among all of them."""
    if is_binary(rows) and known is None:
        return ranking_task(name, rows, rows.columns.get(QUESTION, rows["sentence1"]), roles=SEARCH)
    return _search(name, graded_rows(rows), probe, known and graded_rows(known), texts)


def graded_rows(rows: Rows) -> Rows:
    """Scored pairs as queries with graded documents; a score of 0 or less is not relevant."""
    if max(rows["score"]) <= 0:
        raise InputError(rows.source, "no pair has a score above 0", "grades of relevant documents", "check the scores")
    names = {"sentence1": "anchor", "sentence2": "positive", "score": GRADE}
    return Rows({names.get(name, name): cells for name, cells in rows.columns.items()}, rows.source, rows.notes)


def _translation(name: str, rows: Rows, probe: Options, known: Rows | None, texts: Sequence[str]) -> Task:
    return translation_task(name, rows, known)


def _of_rows(make: Callable[[str, Rows], Task]) -> "Maker":
    """A task that needs nothing but its rows."""
    return lambda name, rows, probe, known, texts: make(name, rows)


Maker = Callable[[str, Rows, Options, Rows | None, Sequence[str]], Task]
BY_KIND: dict[TaskKind, dict[Shape, Maker]] = {
    TaskKind.RETRIEVAL: {Shape.PAIRS: _search, Shape.TRIPLETS: _search, Shape.SCORED_PAIRS: _graded_search},
    TaskKind.PAIRS: {
        Shape.SCORED_PAIRS: _of_rows(
            lambda name, rows: (detection_task if is_binary(rows) else correlation_task)(name, rows)
        )
    },
    TaskKind.CLASSIFICATION: {Shape.CLASSIFICATION: _labels},
}


def _makers(kind: TaskKind | None) -> dict[Shape, Maker]:
    """What can be asked about each shape, of this kind or without one."""
    if kind is not None:
        return BY_KIND[kind]
    return {shape: maker for shape in Shape if (maker := _own_maker(shape))}


def _own_maker(shape: Shape) -> Maker | None:
    """What is asked about a shape if nothing else is said; None: there is nothing to be right or wrong about."""
    match shape:
        case Shape.SCORED_PAIRS:
            return _of_rows(correlation_task)
        case Shape.PAIRS:
            return _search
        case Shape.TRIPLETS:
            return _of_rows(triplet_task)
        case Shape.PARALLEL:
            return _translation
        case Shape.CLASSIFICATION:
            return _labels
        case Shape.TEXTS | Shape.NLI:
            return None
        case _:
            assert_never(shape)
