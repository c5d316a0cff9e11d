"""Passages of documents, by hand."""

from itertools import chain

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sentloom.data.shapes import Shape
from sentloom.errors import InputError
from sentloom.writing.views.pairs import make_pairs
from sentloom.writing.views.passages import neighbours, sentences, sentences_of, spans
from sentloom.writing.views.settings import Neighbours, Sentences, Spans
from tests.small_data import build_dataset

LONG = "First one. Second one! Third? Version 3.5 is out. Fifth"


def test_sentences():
    assert sentences_of(LONG) == ["First one.", "Second one!", "Third?", "Version 3.5 is out.", "Fifth"]
    assert sentences_of("一句。两句！三句") == ["一句。", "两句！", "三句"]
    assert sentences_of("A title\n\nA body. ") == ["A title", "A body."]
    assert sentences_of(" ") == []


def test_sentences_come_with_their_text():
    every = sentences(LONG, Sentences(pairs=99))
    assert [short for short, _ in every] == sentences_of(LONG)
    assert {text for _, text in every} == {LONG}
    two = sentences(LONG, Sentences())
    assert len(two) == 2
    assert set(two) < set(every)
    assert two == sentences(LONG, Sentences())
    assert len({tuple(sentences(LONG, Sentences(seed=seed))) for seed in range(9)}) > 1
    assert sentences("One sentence.", Sentences()) == []
    assert sentences("Twice. Twice.", Sentences()) == []


def test_neighbours():
    first, second, third = "First one. Second one!", "Third? Version 3.5 is out.", "Fifth"
    assert neighbours(LONG, 2) == [(first, second), (second, third)]
    assert neighbours(LONG, 3) == [("First one. Second one! Third?", "Version 3.5 is out. Fifth")]
    assert neighbours(LONG, 9) == neighbours("One sentence.", 1) == []


@given(st.lists(st.text("abc", min_size=1, max_size=4), min_size=4, max_size=60), st.integers(0, 9))
def test_spans_are_stretches_of_the_wanted_length_and_the_same_every_time(words, seed):
    text, settings = " ".join(words), Spans(pairs=3, shortest=0.2, longest=0.6, seed=seed)
    pairs = spans(text, settings)
    assert pairs == spans(text, settings)
    assert len(pairs) <= 3
    for span in chain(*pairs):
        assert f" {span} " in f" {text} "
        assert max(1, round(0.2 * len(words))) <= len(span.split()) <= max(1, round(0.6 * len(words)))


def test_a_text_without_spaces_is_cut_between_characters():
    text = "这是一个没有空格的很长的句子它有很多字所以按字来切"
    ((first, second),) = spans(text, Spans())
    assert first in text
    assert second in text
    assert spans("三个字", Spans()) == []


def test_rows_have_the_origin_of_their_document_and_short_ones_are_counted():
    data = build_dataset(Shape.TEXTS, [("Too short.",), (LONG,), ("A b. C d.",), (LONG,)])
    pairs = make_pairs(data, Neighbours(sentences=1))
    assert pairs.shape is Shape.PAIRS
    assert [pairs.place(row) for row in range(5)] == ["data.tsv, line 3"] * 4 + ["data.tsv, line 4"]
    assert (pairs["anchor"][-1], pairs["positive"][-1]) == ("A b.", "C d.")
    assert pairs.skipped["texts too short for two passages"] == 1
    assert pairs.sha256 != make_pairs(data, Neighbours(sentences=2)).sha256
    other = make_pairs(data, Spans(seed=1))
    assert len(other) == 2
    assert other.sha256 != make_pairs(data, Spans(seed=2)).sha256
    with pytest.raises(InputError, match="no text is long enough"):
        make_pairs(build_dataset(Shape.TEXTS, [("Too short.",)]), Neighbours())
