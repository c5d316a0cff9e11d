"""Known pairs of the data."""

from hypothesis import given
from hypothesis import strategies as st

from sentloom.data.batches import text_keys
from sentloom.data.shapes import Shape
from sentloom.methods.negatives import KnownPairs
from tests.small_data import build_dataset

words = st.sampled_from("abcdefgh")


@given(st.lists(st.tuples(words, words), min_size=1, max_size=20), st.lists(words), st.lists(words))
def test_a_pair_is_known_if_any_row_has_it(rows, anchors, others):
    known = KnownPairs.of_data(build_dataset(Shape.PAIRS, rows))
    expected = [[(a, b) in rows for b in others] for a in anchors]
    assert known.among(text_keys(anchors), text_keys(others)).tolist() == expected


def test_case_and_spaces_do_not_count_and_the_order_does():
    known = KnownPairs.of_texts(["A  cat", "x"], ["a dog", "y"])
    assert known.among(text_keys(["a CAT"]), text_keys([" A dog", "y"])).tolist() == [[True, False]]
    assert not known.among(text_keys(["a dog"]), text_keys(["a cat"])).any()
