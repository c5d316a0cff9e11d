"""Ranks and retrieval scores against hand-computed cases and plain loops."""

import tracemalloc

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from sentloom.evaluation.retrieval import TIE, _ranks, ranks_of

PLANE = {"east": [1.0, 0.0], "north": [0.0, 1.0], "north-east": [1.0, 1.0], "west": [-1.0, 0.0], "nowhere": [0.0, 0.0]}


def encode(sentences):
    return np.array([PLANE[text] for text in sentences])


def test_ranks_against_hand_computed_values():
    # Query east: documents in order east, north-east, north, west. Query north: north, north-east, then two at 0 and 0.
    documents = encode(["east", "north-east", "north", "west"])
    ranks = ranks_of(encode(["east", "north", "east"]), documents, [[0], [1], [3, 0]])
    assert [found.tolist() for found in ranks] == [[1], [2], [1, 4]]


def test_ties_count_against_the_system():
    # To north, east and west are both at cosine 0: either of them, being right, is last.
    ranks = ranks_of(encode(["north", "north"]), encode(["east", "north", "west"]), [[0], [2]])
    assert [found.tolist() for found in ranks] == [[3], [3]]


def test_a_collapsed_encoder_finds_nothing():
    vector = np.random.default_rng(0).normal(size=384)
    ranks = ranks_of(np.tile(vector, (3, 1)), np.tile(vector, (14, 1)), [[0]] * 3)
    assert [found.tolist() for found in ranks] == [[14]] * 3


def _slow_ranks(queries, documents, relevant):
    """Slow oracle: sort by descending cosine, irrelevant documents first among equals."""
    found = []
    for query, right in zip(queries, relevant, strict=True):
        cosines = [float(query @ d) / (np.linalg.norm(query) * np.linalg.norm(d) or 1.0) for d in documents]
        order = sorted(range(len(documents)), key=lambda n: (-round(cosines[n], 4), n in right))
        found.append([place for place, number in enumerate(order, start=1) if number in right])
    return found


@st.composite
def searches(draw):
    vectors = st.lists(st.integers(-2, 2), min_size=2, max_size=2)
    queries = np.array(draw(st.lists(vectors, min_size=1, max_size=8)), np.float32)
    documents = np.array(draw(st.lists(vectors, min_size=1, max_size=9)), np.float32)
    numbers = st.sets(st.integers(0, len(documents) - 1), min_size=1)
    return queries, documents, [draw(numbers) for _ in queries]


@settings(deadline=None)
@given(searches(), st.integers(1, 4), st.integers(1, 4))
def test_ranks_equal_a_full_sort_for_any_blocks(search, query_block, document_block):
    ranks = ranks_of(*search, (query_block, document_block))
    assert [found.tolist() for found in ranks] == _slow_ranks(*search)


def test_no_rank_is_better_than_first_at_the_edge_of_a_tie():
    # The second relevant document ties with the first in one computation of its cosine but not in the other.
    cosines = np.array([0.9, np.float32(0.9) - np.float32(TIE)], np.float32)
    assert _ranks(cosines, np.array([1, 2])).tolist() == [1, 2]


def test_a_query_with_many_relevant_documents_needs_little_memory():
    rng = np.random.default_rng(0)
    documents = rng.normal(size=(12_000, 4)).astype(np.float32)
    tracemalloc.start()
    ranks = ranks_of(documents[:1], documents, [range(6_000)])[0]
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 60e6  # all pairs of relevant documents at once would take 288 MB
    assert ranks[0] == 1
    assert (np.diff(ranks) > 0).all()
