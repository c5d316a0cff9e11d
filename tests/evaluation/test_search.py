"""Search: which documents and grades a set has, its clusters, and scores against ir_measures."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sentloom.evaluation.retrieval import search_scores, search_set, search_task
from sentloom.evaluation.set_source import Rows
from tests.evaluation.by_hand import any_vectors, values


def rows(*pairs, **columns):
    anchors, positives = zip(*pairs, strict=True)
    return Rows({"anchor": list(anchors), "positive": list(positives), **columns}, "faq.csv")


def test_documents_are_those_of_the_rows_the_known_rows_and_the_corpus_each_once():
    found = search_set(rows(("q", "a"), ("r", "b")), rows(("s", "c"), ("t", "a")), ["d", "b"])
    assert (found.queries, found.documents) == (["q", "r"], ["a", "b", "c", "d"])
    assert found.grades == [{0: 1.0}, {1: 1.0}]


def test_what_known_rows_say_about_a_query_counts():
    found = search_set(rows(("q", "a")), rows(("q", "b"), ("r", "c")))
    assert found.grades == [{0: 1.0, 1: 1.0}]


def test_the_highest_of_several_grades_counts_and_0_is_not_relevant():
    found = search_set(rows(("q", "a"), ("q", "a"), ("q", "b"), ("r", "b"), grade=[1.0, 2.0, 0.0, 0.0]))
    assert (found.queries, found.grades) == (["q"], [{0: 2.0}])
    assert found.documents == ["a", "b"]


def test_queries_that_share_a_document_are_one_cluster():
    found = search_set(rows(("q", "a"), ("r", "b"), ("s", "a"), ("r", "c"), ("t", "c")))
    first = found.clusters.tolist()
    assert first[0] == first[2]
    assert first[1] == first[3]
    assert first[0] != first[1]
    given = search_set(rows(("q", "a"), ("q", "b"), ("r", "a"), cluster=[7, 8, 9]))
    assert given.clusters.tolist() == [7, 9]  # that of a query's first row


def test_the_hash_depends_on_the_corpus_the_grades_and_the_clusters():
    pairs = (("q", "a"), ("r", "b"))
    sets = [
        search_set(rows(*pairs)),
        search_set(rows(*pairs), corpus=["c"]),
        search_set(rows(*pairs, grade=[1.0, 2.0])),
    ]
    sets.append(search_set(rows(*pairs, cluster=[5, 5])))
    assert len({one.sha256 for one in sets}) == 4


def test_a_task_has_all_measures_and_its_examples():
    task = search_task("faq.csv", search_set(rows(*((f"q {n}", f"d {n}") for n in range(30)))), "faq.csv")
    assert list(values(task, any_vectors)) == ["ndcg@10", "mrr@10", "recall@1", "recall@10", "recall@100", "map"]
    assert task.main == "ndcg@10"
    assert task.items[3] == ("q 3", "d 3")


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6))
def test_scores_are_those_of_ir_measures(seed):
    ir_measures = pytest.importorskip("ir_measures")
    draw = np.random.default_rng(seed)
    orders = [draw.permutation(150) for _ in range(4)]
    relevant = [
        {int(at): float(draw.integers(1, 4)) for at in draw.choice(150, draw.integers(1, 14), replace=False)}
        for _ in orders
    ]
    ranks, grades = [], []
    for order, own in zip(orders, relevant, strict=True):
        found = sorted((int(np.flatnonzero(order == at)[0]) + 1, grade) for at, grade in own.items())
        ranks.append(np.array([rank for rank, _ in found]))
        grades.append(np.array([grade for _, grade in found]))
    mine = {name: one.value / 100 for name, one in search_scores(ranks, grades, np.arange(4)).items()}
    run = [
        ir_measures.ScoredDoc(str(query), str(at), float(-place))
        for query, order in enumerate(orders)
        for place, at in enumerate(order)
    ]
    judged = [ir_measures.Qrel(str(q), str(at), int(g)) for q, own in enumerate(relevant) for at, g in own.items()]
    names = {
        "ndcg@10": "nDCG@10",
        "mrr@10": "RR@10",
        "recall@1": "R@1",
        "recall@10": "R@10",
        "recall@100": "R@100",
        "map": "AP",
    }
    measures = {name: ir_measures.parse_measure(theirs) for name, theirs in names.items()}
    theirs = ir_measures.calc_aggregate(list(measures.values()), judged, run)
    assert mine == pytest.approx({name: theirs[measure] for name, measure in measures.items()})
