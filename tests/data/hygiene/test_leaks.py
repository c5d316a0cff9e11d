"""Leaks: each kind by hand, and the property that the lookup relies on."""

import unicodedata
from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sentloom.data.hygiene.leaks import SENTENCE_KINDS, Kind, Leak, find_leaks, forms
from sentloom.data.shapes import Shape
from tests.small_data import build_dataset

WRITTEN = "Is the Café open, today?"


@pytest.mark.parametrize(
    ("trained", "kind"),
    [
        (WRITTEN, Kind.EXACT),
        (unicodedata.normalize("NFD", WRITTEN), Kind.UNICODE),
        (WRITTEN.replace(",", "\uff0c"), Kind.UNICODE),  # the full-width comma
        ("Is the  Café open , today ?", Kind.SPACING),
        ("Is the\u200b Café open, today?", Kind.SPACING),
        ("is the CAFÉ open, today?", Kind.CASE),
        ("Is the Café open today", Kind.PUNCTUATION),
        ("“Is the Café open, today”", Kind.PUNCTUATION),
        ("is the café open today ?", Kind.MIXED),
        ("Is the Cafe open, today?", None),  # an accent makes another word
        ("Is the Café open, today? Yes.", None),
    ],
)
def test_kinds_of_sentences(trained: str, kind: Kind | None) -> None:
    train = build_dataset(Shape.TEXTS, [("something else",), (trained,)], file="train.txt")
    test = build_dataset(Shape.TEXTS, [("nothing of it",), ("more",), (WRITTEN,)], file="test.txt")
    leaks = find_leaks(train, [test])
    if kind is None:
        assert leaks.counts == {}
        assert leaks.training_rows.tolist() == []
    else:
        assert leaks.counts == {kind: 1}
        assert leaks.first == (Leak(kind, WRITTEN, "test.txt, line 4", "train.txt, line 3"),)
        assert leaks.training_rows.tolist() == [1]


@pytest.mark.parametrize(
    ("training", "evaluation"), [("STRASSE", "straße"), ("ΟΔΟΣ", "οδος"), ("ΟΔΟΣ", "οδος".replace("σ", "ς"))]
)
def test_case_is_ignored_in_every_script(training: str, evaluation: str) -> None:
    assert find_leaks(
        build_dataset(Shape.TEXTS, [(training,)]), [build_dataset(Shape.TEXTS, [(evaluation,)])]
    ).counts == {Kind.CASE: 1}


def test_sentences_of_only_punctuation_are_compared() -> None:
    train, test = build_dataset(Shape.TEXTS, [("...",), ("?",)]), build_dataset(Shape.TEXTS, [("!",), (". . .",)])
    assert find_leaks(train, [test]).counts == {Kind.SPACING: 1}


def test_an_evaluation_sentence_counts_once_under_the_closest_kind() -> None:
    train = build_dataset(Shape.TEXTS, [("a dog!",), ("A dog",), ("a dog",), ("a dog",)], file="train.txt")
    test = build_dataset(Shape.TEXTS, [("a dog",), ("a dog",), ("A DOG",)], file="test.txt")
    leaks = find_leaks(train, [test])
    assert leaks.counts == {Kind.EXACT: 2, Kind.CASE: 1}
    assert {leak.training for leak in leaks.first if leak.kind is Kind.EXACT} == {"train.txt, line 4"}
    assert leaks.training_rows.tolist() == [0, 1, 2, 3]
    assert (leaks.sentences, leaks.leaked_sentences) == (3, 3)


def test_sentences_of_all_columns_count() -> None:
    train = build_dataset(Shape.TRIPLETS, [("a", "b", ["c", "d"]), ("e", "f", ["g", "h"])], file="train.tsv")
    test = build_dataset(Shape.SCORED_PAIRS, [("x", "d", 1.0), ("f", "y", 2.0), ("h", "z", 2.0)], file="test.tsv")
    leaks = find_leaks(train, [test])
    assert [(leak.text, leak.evaluation, leak.training) for leak in leaks.first] == [
        ("d", "test.tsv, line 2", "train.tsv, line 2"),
        ("f", "test.tsv, line 3", "train.tsv, line 3"),
        ("h", "test.tsv, line 4", "train.tsv, line 3"),
    ]
    assert leaks.leaked_pairs == 0


@pytest.mark.parametrize(
    ("row", "kind"), [(("One.", "Two."), Kind.PAIR), (("Two.", "One."), Kind.SWAPPED), (("two", "ONE"), Kind.SWAPPED)]
)
def test_whole_pairs(row: tuple[str, str], kind: Kind) -> None:
    train = build_dataset(Shape.PAIRS, [("0", "1"), row], file="train.tsv")
    test = build_dataset(Shape.SCORED_PAIRS, [("2", "3", 0.0), ("One.", "Two.", 1.0)], file="test.tsv")
    leaks = find_leaks(train, [test])
    pairs = [leak for leak in leaks.first if leak.kind in (Kind.PAIR, Kind.SWAPPED)]
    assert pairs == [Leak(kind, "One. | Two.", "test.tsv, line 3", "train.tsv, line 3")]
    assert (leaks.pairs, leaks.leaked_pairs, leaks.leaked_sentences) == (2, 1, 2)


def test_an_anchor_with_a_negative_is_a_pair_too() -> None:
    train = build_dataset(Shape.TRIPLETS, [("a", "b", ["c"]), ("d", "e", ["f", "g"])], file="train.tsv")
    leaks = find_leaks(train, [build_dataset(Shape.NLI, [("g", "d", "contradiction"), ("a", "f", "neutral")])])
    assert leaks.counts == {Kind.EXACT: 4, Kind.SWAPPED: 1}


def test_sides_of_different_rows_are_not_a_pair() -> None:
    train = build_dataset(Shape.PAIRS, [("a", "x"), ("y", "b")])
    assert find_leaks(train, [build_dataset(Shape.PAIRS, [("a", "b")])]).counts == {Kind.EXACT: 2}


def test_several_evaluation_sets_and_the_first_of_each_kind() -> None:
    train = build_dataset(Shape.TEXTS, [(f"sentence {number}",) for number in range(50)], file="train.txt", chunk=20)
    tests = [
        build_dataset(Shape.TEXTS, [(f"sentence {number}",) for number in range(9, 19)], file="one.txt"),
        build_dataset(Shape.TEXTS, [(f"Sentence {number}",) for number in range(40, 60)], file="two.txt"),
    ]
    leaks = find_leaks(train, tests, most=3)
    assert leaks.counts == {Kind.EXACT: 10, Kind.CASE: 10}
    assert Counter(leak.kind for leak in leaks.first) == {Kind.EXACT: 3, Kind.CASE: 3}
    assert leaks.first[3] == Leak(Kind.CASE, "Sentence 40", "two.txt, line 2", "train.txt, line 42")
    assert leaks.sentences == 30


def test_nothing_to_compare() -> None:
    train, empty = build_dataset(Shape.TEXTS, [("a",)]), build_dataset(Shape.PAIRS, [])
    assert find_leaks(train, []).counts == {}
    assert find_leaks(train, [empty]).counts == {}
    assert find_leaks(empty, [train]).counts == {}


@given(st.lists(st.text(alphabet="aAßſ ä\u0308.!İiı\u200b`一ﬁſﬀ…ΐ", max_size=3), min_size=2, max_size=30))
def test_sentences_equal_in_one_form_are_equal_in_the_last(texts: list[str]) -> None:
    codes = forms(pa.array(texts, pa.large_string()))
    assert codes.shape == (len(SENTENCE_KINDS), len(texts))
    for form in codes:
        for code in np.unique(form):
            assert len(set(codes[-1][form == code].tolist())) == 1
