"""Distinct texts equal those of a dictionary."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sentloom.data.sentences import as_texts, distinct, texts_at
from sentloom.errors import InputError


@given(st.lists(st.sampled_from(["a", "b", "", "ab", "a ", "é", "é"]), max_size=30))
def test_against_a_dictionary(texts):
    firsts = {}
    for row, text in enumerate(texts):
        firsts.setdefault(text, row)
    for form in (texts, pa.chunked_array([texts[:4], texts[4:]], type=pa.large_string())):
        rows, first_of_row = distinct(form)
        assert rows.tolist() == list(firsts.values())
        assert first_of_row.tolist() == [firsts[text] for text in texts]
        assert texts_at(form, rows) == list(firsts)
        assert first_of_row.dtype == np.int64


@pytest.mark.parametrize("texts", [{"one", "two"}, {"a": "one"}, 5])
def test_texts_without_an_order_are_refused(texts):
    with pytest.raises(InputError, match="Expected a string or a sequence of strings"):
        as_texts(texts)
