"""Fused search: against a slow one, with words of no weight, and for codes that vectors miss."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sentloom.encoder.system import Fusion, Reranking, System
from sentloom.search.nearest import top_k
from sentloom.search.system import Index, fused, scaled
from sentloom.search.words import WordIndex

TEXTS = ["the red hat", "a blue hat", "one red shoe", "no shoes", "the hat and the shoe"]
VECTORS = np.random.default_rng(0).normal(size=(len(TEXTS), 4)).astype(np.float32)
QUERIES = ["red hat", "shoe", "nothing of it"]
ASKED = np.random.default_rng(1).normal(size=(len(QUERIES), 4)).astype(np.float32)


def slow_find(weight, k):
    """Row by row in float64, by the definition."""
    words, results = WordIndex(TEXTS).scores(QUERIES).astype(float), []
    for query, vector in enumerate(ASKED.astype(float)):
        cosines = [vector @ text / np.linalg.norm(vector) / np.linalg.norm(text) for text in VECTORS.astype(float)]
        parts = []
        for values in (cosines, list(words[query])):
            least, most = min(values), max(values)
            parts.append([(value - least) / (most - least) if most > least else 0.0 for value in values])
        scores = [(1 - weight) * dense + weight * word for dense, word in zip(*parts, strict=True)]
        best = sorted(range(len(TEXTS)), key=lambda row: (-scores[row], row))[:k]
        results.append([(row, scores[row]) for row in best])
    return results


@pytest.mark.parametrize("weight", [0.05, 0.5, 1.0])
@pytest.mark.parametrize("k", [2, 9])
def test_results_are_those_of_the_definition(weight, k):
    rows, scores = Index(TEXTS, VECTORS, System(Fusion(weight))).find(QUERIES, ASKED, k)
    expected = slow_find(weight, k)
    assert rows.tolist() == [[row for row, _ in of_query] for of_query in expected]
    np.testing.assert_allclose(scores, [[score for _, score in of_query] for of_query in expected], atol=1e-5)


def test_words_without_weight_change_nothing():
    rows, cosines = Index(TEXTS, VECTORS, System(Fusion(0.0))).find(QUERIES, ASKED, 3)
    expected = top_k(ASKED, VECTORS, 3)
    assert np.array_equal(rows, expected[0])
    assert np.array_equal(cosines, expected[1])


def test_a_code_is_found_although_the_vectors_know_nothing_of_codes():
    texts = [f"Spare filter for the pump, article PX-{number}/B, in stock." for number in range(2000, 2060)]
    vectors, query = np.ones((len(texts), 8), np.float32), np.ones((1, 8), np.float32)
    rows, _ = Index(texts, vectors, System(Fusion(0.2))).find(["px-2041/b"], query, 3)
    assert texts[rows[0, 0]].split()[6] == "PX-2041/B,"
    names = ["Ms Okonkwo-Brandt leads sales.", "Mr Brandt leads sales.", "Ms Okonkwo leads sales."]
    rows, _ = Index(names, np.ones((3, 8), np.float32), System(Fusion(0.2))).find(["okonkwo-brandt"], query, 1)
    assert rows.tolist() == [[0]]


class Longest:
    """A re-ranker that likes long texts."""

    def score(self, pairs):
        return np.array([float(len(text)) for _, text in pairs], np.float32)


def test_a_re_ranker_reads_the_first_results_only():
    index = Index(TEXTS, VECTORS, System(reranking=Reranking("longest", 1.0, 3)))
    index.__dict__["_reranker"] = Longest()
    first, _ = top_k(ASKED, VECTORS, 3)
    rows, scores = index.find(QUERIES, ASKED, 2)
    for of_query, candidates in zip(rows.tolist(), first.tolist(), strict=True):
        assert of_query == sorted(candidates, key=lambda row: -len(TEXTS[row]))[:2]
    assert scores[:, 0].tolist() == [1.0, 1.0, 1.0]


@given(st.lists(st.floats(-1, 1, width=32), min_size=1, max_size=6), st.floats(0, 1))
def test_fused_scores_stay_between_0_and_1_and_keep_the_order_both_agree_on(values, weight):
    scores = np.array([values], np.float32)
    both = fused(scores, scores, weight)
    assert ((both >= -1e-6) & (both <= 1 + 1e-6)).all()
    np.testing.assert_allclose(both, scaled(scores), atol=1e-6)


def test_nothing_to_search():
    rows, scores = Index([], np.empty((0, 4), np.float32), System(Fusion(0.5))).find(QUERIES, ASKED, 3)
    assert rows.shape == scores.shape == (3, 0)
