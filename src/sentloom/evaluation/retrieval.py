"""Retrieval: each query's relevant documents, or each sentence's translation, are found among all documents.

The search is exact. A score is computed from the ranks of the relevant documents; ties count against the system.
"""

import hashlib
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt

from sentloom.data.hygiene.near_duplicates import connect
from sentloom.evaluation.metrics import Numbers, Ranks, mean_average_precision, mrr_at, ndcg_at, recall_at
from sentloom.evaluation.pairs import clusters_of
from sentloom.evaluation.set_source import Rows, joint_sha256
from sentloom.evaluation.task import CLUSTER, Kind, Lookup, Score, Scores, Task, TaskSettings
from sentloom.search.nearest import BLOCKS, cosine_blocks
from sentloom.search.vectors import normalised

K = 10  # documents that the main score looks at
MAIN = f"ndcg@{K}"
DEPTHS = (1, 10, 100)  # of recall
GRADE = "grade"  # the column of grades, if there is one; otherwise every pair is relevant, with grade 1
Places = npt.NDArray[np.int64]
TIE = 1e-6  # cosines this close are equal: float32 cannot distinguish them, whatever block they were computed in


@dataclass(frozen=True)
class SearchSet:
    """Queries, the documents they search, and for each query the grades of its relevant documents by number."""

    queries: Sequence[str]
    documents: Sequence[str]
    grades: Sequence[Mapping[int, float]]
    clusters: npt.NDArray[np.int64]  # (queries,)

    @property
    def sha256(self) -> str:
        """A hash of the content."""
        relevant = [sorted(own.items()) for own in self.grades]
        content = [list(self.queries), list(self.documents), relevant, self.clusters.tolist()]
        return hashlib.sha256(json.dumps(content, ensure_ascii=False).encode()).hexdigest()


def search_set(rows: Rows, known: Rows | None = None, corpus: Sequence[str] = ()) -> SearchSet:
    """The queries of `rows`, whose documents are all those of `rows`, `known` and `corpus`, each once.

    `known` has further pairs; documents that they give for one of the queries are relevant too. Without a column of
    clusters, queries that share a relevant document are one cluster.
    """
    parts = [rows, *([known] if known else [])]
    texts = chain(*(part["positive"] for part in parts), *(chain(*part.columns.get("negatives", ())) for part in parts))
    place = {text: number for number, text in enumerate(dict.fromkeys([*texts, *corpus]))}
    grades: dict[str, dict[int, float]] = {anchor: {} for anchor in rows["anchor"]}
    for part in parts:
        graded = part.columns.get(GRADE) or [1.0] * len(part)
        for anchor, positive, grade in zip(part["anchor"], part["positive"], graded, strict=True):
            if anchor in grades and grade > 0:
                grades[anchor][place[positive]] = max(grade, grades[anchor].get(place[positive], 0.0))
    answered = {query: own for query, own in grades.items() if own}
    return SearchSet(list(answered), list(place), list(answered.values()), _clusters(rows, answered, len(place)))


def _clusters(rows: Rows, grades: Mapping[str, Mapping[int, float]], documents: int) -> npt.NDArray[np.int64]:
    """The cluster of each query: the cluster of its first row, or the queries connected by relevant documents."""
    if CLUSTER in rows.columns:
        first: dict[str, int] = {}
        for anchor, cluster in zip(rows["anchor"], rows[CLUSTER], strict=True):
            first.setdefault(anchor, cluster)
        return np.array([first[query] for query in grades], np.int64)
    edges = [(query, len(grades) + document) for query, own in enumerate(grades.values()) for document in own]
    return connect(len(grades) + documents, np.array(edges, np.int64).reshape(-1, 2))[: len(grades)]


def search_task(name: str, searched: SearchSet, source: str) -> Task:
    """Build the task of finding each query's relevant documents; ties count against the system."""

    def score(lookup: Lookup) -> Scores:
        vectors = lookup(searched.queries, "query"), lookup(searched.documents, "document")
        return scores_of_ranks(searched, ranked_relevant(*vectors, searched.grades))

    return Task(
        name,
        MAIN,
        {"query": searched.queries, "document": searched.documents},
        score,
        source,
        searched.sha256,
        TaskSettings(Kind.SEARCH, K),
        items=tuple(_shown(searched)),
        searched=searched,
    )


def scores_of_ranks(searched: SearchSet, ranked: Collection[tuple[Places, Places]]) -> Scores:
    """The scores of a set from the ranks of each query's relevant documents and the document at each rank."""
    grades = [np.array([own[int(place)] for place in at]) for (_, at), own in zip(ranked, searched.grades, strict=True)]
    return search_scores([ranks for ranks, _ in ranked], grades, searched.clusters)


def search_scores(ranks: Ranks, grades: Sequence[Numbers], clusters: npt.NDArray[np.int64]) -> Scores:
    """The scores of queries from the ranks of their relevant documents and the grades at these ranks."""
    values = {
        MAIN: [ndcg_at(K, [own_ranks], [own_grades]) for own_ranks, own_grades in zip(ranks, grades, strict=True)],
        f"mrr@{K}": [mrr_at(K, [own_ranks]) for own_ranks in ranks],
        **{f"recall@{depth}": [recall_at(depth, [own_ranks]) for own_ranks in ranks] for depth in DEPTHS},
        "map": [mean_average_precision([own_ranks]) for own_ranks in ranks],
    }
    return {metric: Score("mean", np.array(column)[:, None], clusters=clusters) for metric, column in values.items()}


def _shown(searched: SearchSet) -> list[tuple[str, str]]:
    """Each query with its best document."""
    best = [max(own, key=lambda number: (own[number], -number)) for own in searched.grades]
    return [(query, searched.documents[number]) for query, number in zip(searched.queries, best, strict=True)]


def translation_task(
    name: str,
    rows: Rows,
    known: Rows | None = None,
    to_target: str = "accuracy-to-target",
    to_source: str = "accuracy-to-source",
) -> Task:
    """Build the task of finding each sentence's translation; `accuracy` is the mean of both directions.

    Sentences search among those of `rows` and `known`, which has translations besides `rows`. A sentence with several
    translations may find any of them. Ties count as wrong.
    """
    sources, targets = ([*rows[side], *(known[side] if known else ())] for side in ("source", "target"))

    def score(lookup: Lookup) -> Scores:
        there, back = (_translated(lookup, *sides, len(rows)) for sides in ((sources, targets), (targets, sources)))
        ways = {to_target: there, to_source: back, "accuracy": (there + back) / 2}
        return {label: Score("mean", right[:, None], clusters=clusters_of(rows)) for label, right in ways.items()}

    return Task(
        name,
        "accuracy",
        {"symmetric": [*sources, *targets]},
        score,
        rows.source,
        joint_sha256(rows, known),
        TaskSettings(Kind.TRANSLATION),
        rows.notes,
        tuple(zip(rows["source"], rows["target"], strict=True)),
    )


def _translated(lookup: Lookup, queries: Sequence[str], documents: Sequence[str], asked: int) -> Numbers:
    """Return for each of the first queries 1 if the closest distinct document is one of its translations, else 0."""
    place = {text: number for number, text in enumerate(dict.fromkeys(documents))}
    right: dict[str, set[int]] = {}
    for text, translation in zip(queries, documents, strict=True):
        right.setdefault(text, set()).add(place[translation])
    ranks = ranks_of(lookup(queries[:asked]), lookup(list(place)), [right[text] for text in queries[:asked]])
    return np.array([float(own[0] == 1) for own in ranks])


def ranks_of(
    queries: npt.NDArray[Any],
    documents: npt.NDArray[Any],
    relevant: Sequence[Collection[int]],
    blocks: tuple[int, int] = BLOCKS,
) -> list[npt.NDArray[np.int64]]:
    """Return for each query the ranks of its relevant documents, from 1, in ascending order.

    Ties count against the system: an irrelevant document with the same cosine as a relevant one ranks before it.
    """
    return [ranks for ranks, _ in ranked_relevant(queries, documents, relevant, blocks)]


def ranked_relevant(
    queries: npt.NDArray[Any],
    documents: npt.NDArray[Any],
    relevant: Sequence[Collection[int]],
    blocks: tuple[int, int] = BLOCKS,
) -> list[tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]]:
    """Return for each query the ranks of its relevant documents as `ranks_of`, and the document at each of them."""
    right = [np.unique(np.fromiter(numbers, np.int64)) for numbers in relevant]
    sizes = [len(numbers) for numbers in right]
    owner = np.repeat(np.arange(len(right)), sizes)  # the query of each relevant document
    cosines = np.einsum("nd,nd->n", normalised(queries)[owner], normalised(documents[np.concatenate(right)]))
    as_near = np.zeros(len(owner), np.int64)  # documents at least as close as this one, including itself
    for query, _, block in cosine_blocks(queries, documents, blocks):
        first, end = np.searchsorted(owner, [query, query + len(block)])
        for start in range(first, end, blocks[0]):  # bounds memory for a query with many relevant documents
            part = slice(start, min(start + blocks[0], end))
            as_near[part] += (block[owner[part] - query] >= cosines[part, None] - TIE).sum(axis=1)
    ends = np.cumsum(sizes)[:-1]
    orders = [np.argsort(-own, kind="stable") for own in np.split(cosines, ends)]
    of_queries = zip(np.split(cosines, ends), np.split(as_near, ends), orders, right, strict=True)
    return [(_ranks(own[order], near[order]), numbers[order]) for own, near, order, numbers in of_queries]


def ranks_in(scores: npt.NDArray[np.float32], relevant: Sequence[Collection[int]]) -> list[tuple[Places, Places]]:
    """Like `ranked_relevant`, from the scores (queries, documents) of all documents."""
    results = []
    for row, numbers in zip(scores, relevant, strict=True):
        right = np.unique(np.fromiter(numbers, np.int64))
        right = right[np.argsort(-row[right], kind="stable")]
        as_near = (row >= row[right, None] - TIE).sum(axis=1)
        results.append((_ranks(row[right], as_near), right))
    return results


def _ranks(falling: npt.NDArray[np.float32], as_near: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Rank relevant documents, closest first: the j-th follows j - 1 relevant ones and all irrelevant ones as close.

    Due to rounding, a relevant document at the edge of a tie may count in only one sum, so ranks are at least j.
    """
    best = np.arange(1, len(falling) + 1)
    right_as_near = len(falling) - np.searchsorted(falling[::-1], falling - TIE)
    ranks: npt.NDArray[np.int64] = np.maximum(as_near - right_as_near + best, best)
    return ranks
