"""Re-ranking: ranks against a full sort, scores by hand, and when a cross-encoder counts as better."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sentloom.encoder import Encoder
from sentloom.evaluation.evaluate import open_memory
from sentloom.evaluation.reranking import Reranking, rerank, reranked, sample_queries
from sentloom.evaluation.retrieval import search_set, search_task
from sentloom.evaluation.set_source import Rows
from sentloom.evaluation.task import Score
from sentloom.search.cross_encoder import CrossEncoder
from tests.encoder.small_models import SENTENCES, build_model_folder
from tests.search.small_cross_encoders import build_cross_encoder

# Query east: by cosine a, b, c, d; query north: d, c, b, a.
PLANE = {"a": (9, 1), "b": (8, 3), "c": (3, 8), "d": (1, 9), "east": (1, 0), "north": (0, 1)}


class Plane:
    """A model of five points."""

    def encode(self, texts, *, role="symmetric", show_progress=False):
        return np.array([PLANE[text] for text in texts], np.float32)

    def fingerprint(self):
        return "plane"


def searched(*pairs):
    anchors, positives = zip(*pairs, strict=True)
    return search_set(Rows({"anchor": [*anchors], "positive": [*positives]}, "faq.csv"), corpus=["a", "b", "c", "d"])


def by_letter(order):
    """Scores that rank documents in this order, whatever the query."""
    return lambda pairs: np.array([-order.index(passage) for _, passage in pairs], np.float32)


def test_by_hand(tmp_path):
    asked, memory = searched(("east", "b"), ("north", "d"), ("north", "b")), open_memory(tmp_path)
    found = rerank(asked, Plane(), by_letter("bacd"), memory, depth=4)
    two, three, four = (1 / math.log2(rank + 1) for rank in (2, 3, 4))
    # east finds b second; north finds d first and b third
    np.testing.assert_allclose(found.before.items[:, 0], [two, (1 + two * 0 + three) / (1 + two)], rtol=1e-9)
    # re-ranked, both find b first, and north finds d last
    np.testing.assert_allclose(found.after.items[:, 0], [1, (1 + four) / (1 + two)], rtol=1e-9)
    shallow = rerank(asked, Plane(), by_letter("bacd"), memory, depth=2)
    # of a and b, b is first; of d and c, c is third in that order and d fourth: d is second, and b stays third
    np.testing.assert_allclose(shallow.after.items[:, 0], [1, (two + three) / (1 + two)], rtol=1e-9)


def test_ties_count_against_the_cross_encoder(tmp_path):
    asked = searched(("east", "a"))
    found = rerank(asked, Plane(), lambda pairs: np.zeros(len(pairs), np.float32), open_memory(tmp_path), depth=3)
    assert found.before.items[0, 0] == 1
    assert found.after.items[0, 0] == pytest.approx(0.5)  # third of three


@given(st.permutations(range(8)), st.sets(st.integers(0, 7), min_size=1), st.integers(1, 8), st.integers(0, 999))
def test_ranks_equal_a_full_sort(ranking, relevant, depth, seed):
    scores = np.random.default_rng(seed).integers(0, 3, depth).astype(np.float32)
    before = [(rank, one) for rank, one in enumerate(ranking, 1) if one in relevant]
    ranks, documents = (np.array(column, np.int64) for column in zip(*before, strict=True))
    first = np.array(ranking[:depth], np.int64)
    found = reranked((ranks, documents), first, scores)
    new = dict(zip(ranking[:depth], scores, strict=True))
    whole = sorted(ranking[:depth], key=lambda one: (-new[one], one in relevant)) + list(ranking[depth:])
    expected = sorted((whole.index(one) + 1) for one in relevant)
    assert found[0].tolist() == expected
    assert {*found[1].tolist()} == relevant
    inside = [one for one in found[1].tolist() if one in ranking[:depth]]
    assert [new[one] for one in inside] == sorted((new[one] for one in inside), reverse=True)


def scores_of(values):
    return Score("mean", np.array(values, float)[:, None], clusters=np.arange(len(values)))


def test_better_means_an_interval_above_0_from_enough_clusters():
    rng = np.random.default_rng(0)
    low, high = rng.uniform(0, 0.5, 60), rng.uniform(0.4, 1, 60)
    assert Reranking(scores_of(low), scores_of(high)).better
    assert not Reranking(scores_of(high), scores_of(low)).better
    assert not Reranking(scores_of(low), scores_of(rng.permutation(low))).better
    assert not Reranking(scores_of(low[:12]), scores_of(high[:12])).better  # too few clusters
    said = str(Reranking(scores_of(low), scores_of(high)))
    assert said.startswith(f"nDCG@10 {100 * low.mean():.2f} by the encoder, {100 * high.mean():.2f} re-ranked: +")
    assert said.endswith(", 60 queries)")


def test_a_sample_of_queries_searches_all_documents():
    asked = searched(*((f"query {n}", "abcd"[n % 4]) for n in range(9)))
    some = sample_queries(asked, 4)
    assert len(some.queries) == len(some.grades) == len(some.clusters) == 4
    assert some.documents == asked.documents
    for query, own in zip(some.queries, some.grades, strict=True):
        assert own == asked.grades[asked.queries.index(query)]
    assert sample_queries(asked, 9) is asked


def test_small_models(tmp_path):
    pairs = [(text[:12], text) for text in SENTENCES]
    task = search_task("faq", searched_texts(pairs), "faq.csv")
    encoder = Encoder.load(build_model_folder("bert", tmp_path / "encoder"))
    judge = CrossEncoder.load(build_cross_encoder(tmp_path / "teacher")).score
    found = rerank(task.searched, encoder, judge, open_memory(tmp_path / "cache"), depth=3)
    vectors = encoder.encode(SENTENCES)
    own = task.score(lambda texts, role="symmetric": encoder.encode(texts, role=role))[task.main]
    np.testing.assert_allclose(found.before.items, own.items)
    for row, (query, right) in enumerate(pairs):
        cosines = vectors @ encoder.encode(query) / np.linalg.norm(vectors, axis=1)
        first = [SENTENCES[at] for at in np.argsort(-cosines)[:3]]
        if right in first:
            scores = judge([(query, text) for text in first])
            rank = 1 + int((scores > scores[first.index(right)]).sum())
            assert found.after.items[row, 0] == pytest.approx(1 / math.log2(rank + 1))


def searched_texts(pairs):
    anchors, positives = zip(*pairs, strict=True)
    return search_set(Rows({"anchor": [*anchors], "positive": [*positives]}, "faq.csv"))
