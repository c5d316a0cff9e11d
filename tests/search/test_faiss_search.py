"""Search with faiss compared with the exact search."""

import numpy as np
import pytest

from sentloom.search.nearest import faiss_top_k, top_k

pytest.importorskip("faiss")


@pytest.fixture
def vectors():
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(40, 16))
    documents = centres[rng.integers(0, 40, 3000)] + 0.4 * rng.normal(size=(3000, 16))
    return (documents[:50] + 0.1 * rng.normal(size=(50, 16))).astype(np.float32), documents.astype(np.float32)


def test_the_flat_search_equals_the_exact_search(vectors):
    numbers, cosines = faiss_top_k(*vectors, 7)
    exact_numbers, exact_cosines = top_k(*vectors, 7)
    assert (numbers == exact_numbers).all()
    assert cosines == pytest.approx(exact_cosines, abs=1e-5)


def test_the_search_by_cells_finds_nearly_all_and_is_deterministic(vectors):
    numbers, _ = faiss_top_k(*vectors, 7, exact=100)
    exact, _ = top_k(*vectors, 7)
    recall = np.mean([len(set(a) & set(b)) / 7 for a, b in zip(numbers.tolist(), exact.tolist(), strict=True)])
    assert recall > 0.8
    assert (faiss_top_k(*vectors, 7, exact=100)[0] == numbers).all()


def test_fewer_documents_than_requested(vectors):
    numbers, _ = faiss_top_k(vectors[0], vectors[1][:3], 7)
    assert numbers.shape == (50, 3)
