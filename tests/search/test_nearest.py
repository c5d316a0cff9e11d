"""Exact search equals a full sort, for any block sizes."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sentloom.errors import InputError
from sentloom.search.nearest import top_k


def _slow(queries, documents, k):
    """Sort all documents of each query by descending cosine, then by index; integer vectors make ties exact."""
    nearest = []
    for query in queries.tolist():
        keys = []
        for number, document in enumerate(documents.tolist()):
            dot = sum(a * b for a, b in zip(query, document, strict=True))
            square = sum(a * a for a in document)
            keys.append((-np.sign(dot) * dot * dot / square if square else 0.0, number))
        nearest.append([number for _, number in sorted(keys)[:k]])
    return nearest


# Powers of two along axes: lengths and cosines are exact in float32, and there are many ties.
axis_vectors = st.lists(
    st.tuples(st.integers(0, 2), st.sampled_from([-2, -1, 0, 1, 2, 4])), min_size=1, max_size=12
).map(
    lambda rows: np.array([[value if place == axis else 0 for place in range(3)] for axis, value in rows], np.float32)
)


@settings(deadline=None)
@given(axis_vectors, axis_vectors, st.integers(1, 6), st.integers(1, 5), st.integers(1, 5))
def test_equal_to_a_full_sort_for_any_blocks(queries, documents, k, query_block, document_block):
    numbers, cosines = top_k(queries, documents, k, (query_block, document_block))
    assert numbers.tolist() == _slow(queries, documents, k)
    assert (np.diff(cosines, axis=1) <= 0).all()


def test_by_hand():
    documents = np.array([[1.0, 0.0], [1.0, 1.0], [0.0, 9.0]])
    numbers, cosines = top_k(np.array([[2.0, 1.0]]), documents, 2)
    assert numbers.tolist() == [[1, 0]]
    assert cosines[0] == pytest.approx([3 / 10**0.5, 2 / 5**0.5])


def test_fewer_documents_than_requested():
    numbers, _cosines = top_k(np.ones((2, 4)), np.ones((3, 4)), 10)
    assert numbers.tolist() == [[0, 1, 2], [0, 1, 2]]
    assert top_k(np.ones((2, 4)), np.ones((0, 4)), 10)[0].shape == (2, 0)


def test_documents_may_be_a_memory_map(tmp_path):
    documents = np.random.default_rng(0).normal(size=(50, 8)).astype(np.float32)
    np.save(tmp_path / "vectors.npy", documents)
    numbers, _ = top_k(documents[[7, 21]], np.load(tmp_path / "vectors.npy", mmap_mode="r"), 1)
    assert numbers.ravel().tolist() == [7, 21]


def test_k_must_be_positive():
    with pytest.raises(InputError):
        top_k(np.ones((1, 2)), np.ones((1, 2)), 0)
