"""Geometry against hand-computed values, plain loops, and vectors whose geometry is known."""

import math

import numpy as np
import pytest
from scipy.spatial.distance import pdist

from sentloom.data.shapes import Shape
from sentloom.errors import InputError, ModelError
from sentloom.evaluation.geometry import (
    ScoredPairs,
    UniformityVariant,
    alignment,
    effective_rank,
    geometry,
    isotropy,
    mean_cosine,
    pairs_of,
    scored_pairs,
    uniformity,
)
from tests.small_data import build_dataset

CROSS = np.array([[3.0, 0.0], [0.0, 0.5], [-2.0, 0.0], [0.0, -1.0]])  # four directions at right angles, any length


def random_vectors(n, d, seed=0, shift=0.0):
    return np.random.default_rng(seed).normal(size=(n, d)) + shift


def unit(vectors):
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def test_alignment_against_hand_computed_values():
    # Distances: 0, sqrt 2 (right angle), 2 (opposite); squares 0, 2, 4.
    left, right = np.array([[1.0, 0], [1, 0], [1, 0]]), np.array([[5.0, 0], [0, 7], [-1, 0]])
    assert alignment(left, right) == pytest.approx(2.0)
    assert alignment(left, right, UniformityVariant.SENTENCE_T5) == pytest.approx(2.0)
    assert alignment(left, right, UniformityVariant.PRINTED) == pytest.approx(-(math.sqrt(2) + 2) / 3)


def test_uniformity_against_hand_computed_values():
    # Six pairs of the cross: four at squared distance 2, two at 4.
    assert uniformity(CROSS) == pytest.approx(math.log((4 * math.exp(-4) + 2 * math.exp(-8)) / 6))
    with_self = (8 * math.exp(-4) + 4 * math.exp(-8) + 4) / 16
    assert uniformity(CROSS, UniformityVariant.SENTENCE_T5) == pytest.approx(math.log(with_self))
    printed = (4 * math.exp(-2 * math.sqrt(2)) + 2 * math.exp(-4)) / 6
    assert uniformity(CROSS, UniformityVariant.PRINTED) == pytest.approx(math.log(printed))


@pytest.mark.parametrize("variant", UniformityVariant)
def test_equal_vectors_are_aligned_and_not_uniform(variant):
    same = np.ones((5, 3), np.float32)
    assert alignment(same, same, variant) == pytest.approx(0.0, abs=1e-7)
    assert uniformity(same, variant) == pytest.approx(0.0, abs=1e-6)


@pytest.mark.parametrize("n", [2, 9, 10, 11, 57])
def test_uniformity_equals_plain_loops_for_any_number_of_blocks(n):
    vectors = random_vectors(n, 6, shift=0.3)
    rows = unit(vectors)
    pairs = [(i, j) for i in range(n) for j in range(n)]
    squares = {pair: sum((a - b) ** 2 for a, b in zip(*rows[list(pair)], strict=True)) for pair in pairs}
    apart = [squares[i, j] for i, j in pairs if i < j]
    expected = math.log(np.mean([math.exp(-2 * s) for s in apart]))
    assert uniformity(vectors, block=10) == pytest.approx(expected, abs=1e-9)
    everything = np.mean([math.exp(-2 * s) for s in squares.values()])
    assert uniformity(vectors, UniformityVariant.SENTENCE_T5, 10) == pytest.approx(math.log(everything), abs=1e-9)
    printed = np.mean([math.exp(-2 * math.sqrt(s)) for s in apart])
    assert uniformity(vectors, UniformityVariant.PRINTED, 10) == pytest.approx(math.log(printed), abs=1e-6)


def test_many_vectors_in_constant_memory_equal_pdist():
    vectors = random_vectors(2500, 8, shift=0.2).astype(np.float32)
    squares = pdist(unit(vectors.astype(np.float64)), "sqeuclidean")
    assert uniformity(vectors) == pytest.approx(math.log(np.exp(-2 * squares).mean()), abs=1e-9)


def test_self_pairs_change_the_score_of_64_random_vectors_by_a_third():
    # Of n² pairs n are a vector with itself: log(63/64 e^u + 1/64). A reference of -3.21 becomes -2.89.
    assert math.log(63 / 64 * math.exp(-3.21) + 1 / 64) == pytest.approx(-2.89, abs=0.01)
    vectors = random_vectors(64, 10)
    reference = uniformity(vectors)
    assert reference == pytest.approx(-3.2, abs=0.1)
    assert uniformity(vectors, UniformityVariant.SENTENCE_T5) == pytest.approx(
        math.log(63 / 64 * math.exp(reference) + 1 / 64), abs=1e-9
    )
    assert (
        reference < uniformity(vectors, UniformityVariant.SENTENCE_T5) < uniformity(vectors, UniformityVariant.PRINTED)
    )


def test_vector_lengths_do_not_matter():
    vectors = random_vectors(30, 5, shift=0.5)
    scaled = vectors * np.random.default_rng(1).uniform(0.1, 9, (30, 1))
    for measure in (uniformity, isotropy, mean_cosine, effective_rank):
        assert measure(scaled) == pytest.approx(measure(vectors), abs=1e-9)


def test_isotropy_against_hand_computed_values():
    # The cross has no special direction: Z(c) = e + 1/e + 2 along each axis.
    assert isotropy(CROSS) == pytest.approx(1.0)
    # All vectors alike: Z is n e along them, n / e against them.
    assert isotropy(np.tile([[0.0, 2.0]], (6, 1))) == pytest.approx(math.exp(-2))


def test_isotropy_equals_plain_loops():
    vectors = random_vectors(40, 4, shift=0.7)
    rows = unit(vectors)
    _, directions = np.linalg.eigh(rows.T @ rows)
    sums = [sum(math.exp(sign * c @ v) for v in rows) for c in directions.T for sign in (1, -1)]
    assert isotropy(vectors) == pytest.approx(min(sums) / max(sums))


def test_mean_cosine_equals_plain_loops_and_is_zero_for_the_cross():
    rows = unit(random_vectors(40, 4, shift=0.7))
    expected = np.mean([rows[i] @ rows[j] for i in range(40) for j in range(i)])
    assert mean_cosine(rows, block=7) == pytest.approx(expected)
    assert mean_cosine(CROSS) == pytest.approx((4 * 0 + 2 * -1) / 6)


def test_effective_rank_against_hand_computed_values():
    assert effective_rank(CROSS) == pytest.approx(2.0)  # two equal singular values
    assert effective_rank(np.tile([[1.0, 2.0, 3.0]], (5, 1))) == pytest.approx(1.0)
    # Two vectors along x and one along y: singular values sqrt 2 and 1, shares .585786 and .414214.
    shares = (math.sqrt(2) / (1 + math.sqrt(2)), 1 / (1 + math.sqrt(2)))
    entropy = -sum(share * math.log(share) for share in shares)
    assert effective_rank(np.array([[1.0, 0, 0], [3, 0, 0], [0, 1, 0]])) == pytest.approx(math.exp(entropy))


def test_effective_rank_equals_that_of_the_singular_values():
    vectors = random_vectors(300, 12, shift=0.4)
    singular = np.linalg.svd(unit(vectors), compute_uv=False)
    shares = singular / singular.sum()
    assert effective_rank(vectors) == pytest.approx(math.exp(-(shares * np.log(shares)).sum()))


def test_fewer_vectors_than_dimensions_have_no_more_rank_than_vectors():
    assert effective_rank(random_vectors(5, 400).astype(np.float32)) == pytest.approx(5, abs=0.1)
    assert effective_rank(random_vectors(5, 400).astype(np.float32)) <= 5


WORDS = {"a": [1.0, 0.0], "b": [0.0, 1.0], "c": [-1.0, 0.0], "d": [0.0, -1.0]}
PAIRS = ScoredPairs(["a", "a", "a", "b"], ["b", "c", "a", "d"], np.array([4.2, 4.0, 5.0, 0.0]))


def encode(sentences):
    return np.array([WORDS[text] for text in sentences], np.float32)


def test_positives_score_above_four_and_sentences_count_once():
    found = geometry(encode, PAIRS)
    assert found.positives == 2  # 4.0 is not above 4
    assert found.alignment == pytest.approx((2 + 0) / 2)
    assert (found.sentences, found.dimension, found.variant) == (4, 2, "reference")
    assert found.uniformity == pytest.approx(uniformity(CROSS))
    assert (found.isotropy, found.effective_rank) == pytest.approx((1.0, 2.0))


def test_each_distinct_sentence_is_encoded_once():
    seen = []
    geometry(lambda texts: (seen.extend(texts), encode(texts))[1], PAIRS)
    assert seen == ["a", "b", "c", "d"]


def test_pairs_are_read_from_columns():
    found = scored_pairs({"sentence1": ["a"], "sentence2": ["b"], "score": [4], "subset": ["x"]})
    assert (found.left, found.right, found.gold.tolist(), found.gold.dtype) == (["a"], ["b"], [4.0], np.float64)


@pytest.mark.parametrize("shape", [Shape.PAIRS, Shape.PARALLEL])
def test_pairs_without_scores_are_all_positives(shape):
    found = geometry(encode, pairs_of(build_dataset(shape, [("a", "b"), ("c", "a"), ("d", "d")])))
    assert found.positives == 3
    assert found.alignment == pytest.approx((2 + 4 + 0) / 3)  # squared: of neighbours 2, of opposites 4
    assert found.sentences == 4


def test_pairs_of_a_data_set_with_scores_and_of_one_without_pairs():
    scored = pairs_of(build_dataset(Shape.SCORED_PAIRS, [("a", "b", 4.2), ("a", "c", 0.0)]))
    assert (scored.left, scored.right, scored.gold.tolist()) == (["a", "a"], ["b", "c"], [4.2, 0.0])
    with pytest.raises(InputError, match="the file contains texts"):
        pairs_of(build_dataset(Shape.TEXTS, [("a",)]))


def test_scores_without_positives_are_refused():
    with pytest.raises(InputError, match="none of the 4 pairs has a score above 4"):
        geometry(encode, ScoredPairs(PAIRS.left, PAIRS.right, PAIRS.gold / 5))


def test_a_single_sentence_has_no_uniformity():
    with pytest.raises(InputError, match="only 1 vectors"):
        geometry(encode, ScoredPairs(["a"], ["a"], np.array([5.0])))


def test_broken_vectors_are_refused():
    with pytest.raises(ModelError, match="NaN"):
        geometry(lambda texts: np.full((len(texts), 2), np.nan), PAIRS)


def test_two_encoders_encode_a_side_each():
    """The word is at right angles to its translation for one encoder, and at the same place for the two."""
    target, source = {"ein": (1, 0), "zwei": (0, 1)}, {"ein": (0, 1), "zwei": (1, 0)}
    pairs = ScoredPairs(["zwei", "ein"], ["ein", "zwei"], np.array([5.0, 0.0]))

    def encode(places):
        return lambda texts: np.array([places[text] for text in texts], np.float32)

    assert geometry(encode(target), pairs).alignment == pytest.approx(2)
    both = geometry(encode(target), pairs, encode_left=encode(source))
    assert both.alignment == pytest.approx(0)
    assert (both.positives, both.sentences) == (1, 4)
    # four vectors: two pairs at the same place, four pairs at right angles
    assert both.uniformity == pytest.approx(math.log((2 + 4 * math.exp(-4)) / 6))


def test_encoders_of_two_widths_are_refused():
    pairs = ScoredPairs(["a", "b"], ["c", "d"], np.array([5.0, 0.0]))
    with pytest.raises(InputError, match="the widths 3 and 2"):
        geometry(lambda texts: np.ones((len(texts), 2)), pairs, encode_left=lambda texts: np.ones((len(texts), 3)))
