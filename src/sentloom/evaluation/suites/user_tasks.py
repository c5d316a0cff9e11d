"""Tasks from the user's own files: the scores depend on the shape of the data, or on the requested kind."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from itertools import chain
from typing import Any

import numpy as np

from sentloom.corpus.opening import open_data
from sentloom.data.dataset import Dataset
from sentloom.data.shapes import COLUMNS, Shape
from sentloom.encoder.prompts import Role
from sentloom.errors import InputError
from sentloom.evaluation.metrics import cosine_of_pairs, mrr_at, recall_at
from sentloom.evaluation.retrieval import ranks_of
from sentloom.evaluation.suites.multilingual import translation_task
from sentloom.evaluation.suites.pairs import SEARCH, correlation_task, detection_task, is_binary, ranking_task
from sentloom.evaluation.suites.set_source import Rows
from sentloom.evaluation.task import Lookup, Score, Scores, Task

K = 10
QUESTION = "qid"  # the column that identifies questions, if there is one; otherwise the question's text does


def own_task(kind: str | None, file: str, probe: Mapping[str, Any]) -> Task:
    """Build the task of a file by kind (`retrieval`, `pairs`, `classification`) or, without one, by its shape."""
    return data_task(kind, f"{kind}:{file}" if kind else file, file, open_data(file, keep=(QUESTION,)), probe)


def data_task(kind: str | None, name: str, file: str, data: Dataset, probe: Mapping[str, Any]) -> Task:
    """Build the task of a data set."""
    maker = MAKERS.get((kind, data.shape))
    if maker is None:
        fitting = [str(shape) for asked, shape in MAKERS if asked == kind]
        problem = f"{data.shape} cannot be scored" + (f" as {kind}" if kind else "")
        fix = "give another file or kind; `sentloom check` shows what a file contains"
        raise InputError(file, problem, " or ".join(fitting), fix)
    columns = {
        name: data.column(name).to_pylist()
        for name in (*COLUMNS[data.shape], QUESTION)
        if name in data.table.column_names
    }
    return maker(name, Rows(columns, file), probe)


def search_task(name: str, rows: Rows) -> Task:
    """Build the task of finding each anchor's positives among all distinct positives and negatives.

    The scores are `mrr@10`, `recall@1` and `recall@10`; ties count against the system.
    """
    place = {
        text: number
        for number, text in enumerate(dict.fromkeys([*rows["positive"], *chain(*rows.columns.get("negatives", ()))]))
    }
    right: dict[str, set[int]] = {}
    for anchor, positive in zip(rows["anchor"], rows["positive"], strict=True):
        right.setdefault(anchor, set()).add(place[positive])
    queries, documents = list(right), list(place)

    def score(lookup: Lookup) -> Scores:
        ranks = ranks_of(lookup(queries, "query"), lookup(documents, "document"), list(right.values()))
        return {
            "mrr@10": Score("mean", np.array([[mrr_at(K, [found])] for found in ranks])),
            "recall@1": Score("mean", np.array([[recall_at(1, [found])] for found in ranks])),
            "recall@10": Score("mean", np.array([[recall_at(K, [found])] for found in ranks])),
        }

    return Task(
        name,
        "mrr@10",
        {"query": queries, "document": documents},
        score,
        rows.source,
        rows.sha256,
        {"task": "search", "k": K},
    )


def triplet_task(name: str, rows: Rows) -> Task:
    """Build the task of ranking the positive above every negative; ties count as wrong."""
    anchors, positives, negatives = rows["anchor"], rows["positive"], [*chain(*rows["negatives"])]
    sizes = [len(some) for some in rows["negatives"]]

    def score(lookup: Lookup) -> Scores:
        anchor = lookup(anchors, "query")
        near = cosine_of_pairs(anchor, lookup(positives, "document"))
        far = cosine_of_pairs(np.repeat(anchor, sizes, axis=0), lookup(negatives, "document"))
        nearest = np.maximum.reduceat(far, np.cumsum([0, *sizes[:-1]]))
        return {"accuracy": Score("mean", (near > nearest).astype(np.float64)[:, None])}

    texts: dict[Role, Sequence[str]] = {"query": anchors, "document": [*positives, *negatives]}
    return Task(name, "accuracy", texts, score, rows.source, rows.sha256, {"task": "triplets"})


def classification_task(name: str, rows: Rows, probe: Mapping[str, Any]) -> Task:
    """Build the task of cross-validating a probe on the vectors, scored by accuracy."""
    from sentloom.evaluation.probes.protocols import Probe, cross_validated

    texts, labels, options = rows["text"], rows["label"], Probe(**probe)
    if len(set(labels)) < 2:
        raise InputError(rows.source, f"the only label is {labels[0]!r}", "two labels or more", "label the rows")

    def score(lookup: Lookup) -> Scores:
        return {"accuracy": Score("accuracy", cross_validated(lookup(texts), labels, options))}

    settings = {"task": "classification", "probe": asdict(options)}
    return Task(name, "accuracy", {"symmetric": texts}, score, rows.source, rows.sha256, settings)


def _ranking(name: str, rows: Rows) -> Task:
    return ranking_task(name, rows, rows.columns.get(QUESTION, rows["sentence1"]), roles=SEARCH)


Maker = Callable[[str, Rows, Mapping[str, Any]], Task]
MAKERS: dict[tuple[str | None, Shape], Maker] = {
    (None, Shape.SCORED_PAIRS): lambda name, rows, probe: correlation_task(name, rows),
    (None, Shape.PAIRS): lambda name, rows, probe: search_task(name, rows),
    (None, Shape.TRIPLETS): lambda name, rows, probe: triplet_task(name, rows),
    (None, Shape.PARALLEL): lambda name, rows, probe: translation_task(name, rows),
    (None, Shape.CLASSIFICATION): classification_task,
    ("retrieval", Shape.PAIRS): lambda name, rows, probe: search_task(name, rows),
    ("retrieval", Shape.TRIPLETS): lambda name, rows, probe: search_task(name, rows),
    ("retrieval", Shape.SCORED_PAIRS): lambda name, rows, probe: _ranking(name, rows),
    ("pairs", Shape.SCORED_PAIRS): lambda name, rows, probe: (
        detection_task(name, rows) if is_binary(rows) else correlation_task(name, rows)
    ),
    ("classification", Shape.CLASSIFICATION): classification_task,
}
