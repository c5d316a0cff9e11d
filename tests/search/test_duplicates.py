"""Groups of texts that mean the same."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sentloom.search.duplicates import cosines_of, find_groups
from sentloom.search.vectors import normalised


def families(count, size, dimension=32, spread=0.05, seed=0):
    """Random directions, with some texts close around each; in random order."""
    draw = np.random.default_rng(seed)
    centres = np.repeat(normalised(draw.normal(size=(count, dimension))), size, axis=0)
    order = draw.permutation(len(centres))
    noisy = normalised(centres + spread * draw.normal(size=centres.shape) / np.sqrt(dimension))
    return noisy[order], np.repeat(np.arange(count), size)[order]


def same_family(representatives, family):
    return all(family[leader] == own for leader, own in zip(representatives, family, strict=True))


def test_every_family_is_a_group():
    vectors, family = families(50, 6)
    groups = find_groups(vectors, 0.9)
    assert same_family(groups.representatives, family)
    assert len(set(groups.representatives.tolist())) == 50
    assert groups.recall is None


def test_a_family_larger_than_the_neighbours_that_are_compared_is_one_group():
    vectors, _ = families(2, 200)
    assert len(set(find_groups(vectors, 0.9).representatives.tolist())) == 2


@given(st.integers(2, 60), st.integers(0, 9), st.floats(0.2, 0.95))
def test_every_member_is_similar_to_its_representative(count, seed, threshold):
    vectors = np.random.default_rng(seed).normal(size=(count, 4)).astype(np.float32)
    groups = find_groups(vectors, threshold)
    leaders = groups.representatives
    assert (leaders[leaders] == leaders).all()
    assert (groups.cosines >= threshold - 1e-5).all()
    np.testing.assert_allclose(groups.cosines, cosines_of(vectors, np.arange(count), leaders))


def test_groups_do_not_chain():
    angles = np.radians([0, 20, 40, 60])
    chain = np.column_stack([np.cos(angles), np.sin(angles)]).astype(np.float32)
    groups = find_groups(chain, float(np.cos(np.radians(25))))
    # 20 and 40 degrees have two similar ones each; the first of them leads its neighbours, and 60 is left alone
    assert groups.representatives.tolist() == [1, 1, 1, 3]


def test_approximate_groups_are_those_of_an_exact_search():
    pytest.importorskip("faiss")
    vectors, family = families(600, 5, dimension=64)
    groups = find_groups(vectors, 0.9, exact=100)
    assert same_family(groups.representatives, family)
    assert len(set(groups.representatives.tolist())) <= 610
    assert groups.recall > 0.98
