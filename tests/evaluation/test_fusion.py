"""Fused rankings: as the search itself ranks, by hand for a small set, and the weight that validation rows choose."""

import numpy as np
import pytest

from sentloom.encoder.system import Fusion, System
from sentloom.evaluation.fusion import WEIGHTS, SearchParts, best_weight, with_reranker
from sentloom.evaluation.retrieval import MAIN, SearchSet, ranked_relevant, scores_of_ranks
from sentloom.search.system import Index
from sentloom.search.words import WordIndex

DOCUMENTS = [f"article {number} in box PX-{number}" for number in range(30)]
NUMBERS = np.random.default_rng(3)
VECTORS = NUMBERS.normal(size=(30, 6)).astype(np.float32)


def parts_of(queries, relevant, vectors):
    searched = SearchSet(queries, DOCUMENTS, [{number: 1.0} for number in relevant], np.arange(len(queries)))
    return SearchParts(searched, vectors, VECTORS, WordIndex(DOCUMENTS))


@pytest.fixture
def parts():
    """Queries for codes, which vectors say nothing about."""
    asked = [3, 17, 29, 11]
    return parts_of([f"px-{number}" for number in asked], asked, NUMBERS.normal(size=(4, 6)).astype(np.float32))


def test_without_words_the_ranking_is_that_of_the_vectors(parts):
    (ranked,) = parts.ranked([0.0])
    expected = ranked_relevant(parts.queries, parts.documents, parts.searched.grades)
    assert [ranks.tolist() for ranks, _ in ranked.relevant] == [ranks.tolist() for ranks, _ in expected]


@pytest.mark.parametrize("weight", [0.1, 0.6, 1.0])
def test_ranks_are_the_places_at_which_the_search_finds_them(parts, weight):
    (ranked,) = parts.ranked([weight], depth=5)
    rows, _ = Index(DOCUMENTS, VECTORS, System(Fusion(weight))).find(parts.searched.queries, parts.queries, 30)
    for (ranks, documents), of_query, first in zip(ranked.relevant, rows.tolist(), ranked.first.tolist(), strict=True):
        assert ranks[0] == of_query.index(documents[0]) + 1
        assert first == of_query[:5]


def test_codes_choose_words_and_queries_whose_vectors_are_right_choose_none(parts):
    rankings = parts.ranked(WEIGHTS)
    weight = best_weight([rankings])
    assert rankings[WEIGHTS.index(weight)].scores[MAIN].value == 100
    assert all(ranked.scores[MAIN].value < 100 for ranked in rankings[: WEIGHTS.index(weight)])
    meant = parts_of(["box box", "article"], [4, 8], VECTORS[[4, 8]])
    assert best_weight([meant.ranked(WEIGHTS)]) == 0


def test_a_re_ranker_moves_what_comes_first_and_nothing_without_weight(parts):
    (ranked,) = parts.ranked([0.0], depth=30)

    def knows(pairs):
        return np.array([float(text.endswith(query.upper())) for query, text in pairs], np.float32)

    plain, half, alone = with_reranker(ranked, knows, [0.0, 0.5, 1.0])
    assert plain.scores[MAIN].value == pytest.approx(ranked.scores[MAIN].value)
    assert plain.scores[MAIN].value < half.scores[MAIN].value <= alone.scores[MAIN].value == 100
    (few,) = parts.ranked([0.0], depth=2)
    (late,) = with_reranker(few, knows, [1.0])
    for (ranks, documents), first in zip(late.relevant, few.first.tolist(), strict=True):
        assert ranks[0] == 1 if documents[0] in first else ranks[0] > 2


def test_scores_of_ranks_by_hand():
    searched = SearchSet(["a", "b"], DOCUMENTS, [{0: 1.0}, {1: 1.0, 2: 1.0}], np.arange(2))
    ranked = [(np.array([2]), np.array([0])), (np.array([1, 4]), np.array([1, 2]))]
    first, second = 1 / np.log2(3), (1 + 1 / np.log2(5)) / (1 + 1 / np.log2(3))
    assert scores_of_ranks(searched, ranked)[MAIN].value == pytest.approx(50 * (first + second))
