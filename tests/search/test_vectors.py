"""The output of an encoder is checked before it is scored."""

import numpy as np
import pytest

from sentloom.errors import ModelError
from sentloom.search.vectors import encode_checked, encode_distinct, normalised


def test_each_distinct_sentence_is_encoded_once_in_order():
    calls = []

    def encode(sentences):
        calls.append(list(sentences))
        return np.array([[len(text), 1.0] for text in sentences])

    vectors = encode_distinct(encode, ["bb", "a", "bb", "ccc", "a"])
    assert calls == [["bb", "a", "ccc"]]
    assert {text: vector.tolist() for text, vector in vectors.items()} == {"bb": [2, 1], "a": [1, 1], "ccc": [3, 1]}


@pytest.mark.parametrize("made", [np.zeros((3, 2)), np.zeros(2), np.zeros((2, 2, 2))])
def test_a_wrong_number_of_vectors_is_refused(made):
    with pytest.raises(ModelError, match=r"Expected \(2, d\)"):
        encode_checked(lambda sentences: made, ["a", "b"])


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_non_finite_vectors_are_refused_with_the_first_sentence(bad):
    with pytest.raises(ModelError, match="1 of 2 vectors have NaN or infinity, first for 'second'"):
        encode_checked(lambda sentences: np.array([[1.0, 2.0], [bad, 0.0]]), ["first", "second"])


def test_normalised_rows_have_length_one_and_zeros_stay():
    assert normalised(np.array([[3.0, 4.0], [0.0, 0.0]])).tolist() == [[pytest.approx(0.6), pytest.approx(0.8)], [0, 0]]
    assert normalised(np.full((1, 1000), 100, np.float16))[0, 0] == pytest.approx(1000**-0.5)  # 1e7 is beyond float16
