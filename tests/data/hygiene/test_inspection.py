"""Inspection: every number of a small data set, counted by hand."""

import json
from dataclasses import asdict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sentloom.data.hygiene import inspection
from sentloom.data.hygiene.inspection import Finding, distribution, inspect
from sentloom.data.shapes import Shape
from tests.small_data import build_dataset

LONG = "a sentence that is long enough to have another one beside it that differs little"


def letters(texts: list[str]) -> list[int]:
    return [len(text) for text in texts]


@given(st.lists(st.integers(0, 1000), min_size=1))
def test_distribution_equals_sorting(values: list[int]) -> None:
    summary = distribution(np.array(values))
    ordered = sorted(values)
    assert (summary.least, summary.most) == (ordered[0], ordered[-1])
    assert summary.mean == pytest.approx(sum(values) / len(values))
    middle = len(values) // 2
    assert summary.median == (ordered[middle] if len(values) % 2 else (ordered[middle - 1] + ordered[middle]) / 2)
    assert summary.least <= summary.p25 <= summary.median <= summary.p75 <= summary.p95 <= summary.most


def test_lengths_in_words_by_column() -> None:
    inspected = inspect(build_dataset(Shape.PAIRS, [("one", "one two three"), ("one two", "一二三四五")]))
    assert [
        (part.column, part.unit, part.distribution.least, part.distribution.most) for part in inspected.lengths
    ] == [
        ("anchor", "words", 1, 2),
        ("positive", "words", 3, 5),
    ]
    assert inspected.lengths[1].distribution.mean == 4


def test_lengths_in_tokens_and_those_above_the_limit() -> None:
    rows = [("a", "bb", ["cc", "ddddd"]), ("aaaa", "b", ["c"]), ("a", "b", ["cccccc", "ddddd"])]
    inspected = inspect(build_dataset(Shape.TRIPLETS, rows, chunk=2), letters, token_limit=4)
    assert [(part.column, part.unit, part.distribution.most) for part in inspected.lengths] == [
        ("anchor", "tokens", 4),
        ("positive", "tokens", 2),
        ("negatives", "tokens", 6),
    ]
    assert inspected.findings == (
        Finding("a sentence has more than 4 tokens and will be truncated", 2, "data.tsv, line 2"),
    )
    assert inspected.sentences == 11


def test_duplicates_of_rows_and_sentences() -> None:
    inspected = inspect(
        build_dataset(Shape.PAIRS, [("a", "b"), ("b", "a"), ("a", "b"), ("a", "c"), ("a", "b")], chunk=2)
    )
    assert inspected.duplicate_rows == 2
    assert inspected.duplicate_sentences == 10 - 3


def test_near_duplicates_of_a_small_set_are_counted() -> None:
    near = inspect(
        build_dataset(Shape.TEXTS, [(LONG,), (LONG + ".",), ("something else",), (LONG + "!",)])
    ).near_duplicates
    assert (near.threshold, near.sampled, near.repeats, near.whole) == (0.8, 4, 2, True)


def test_near_duplicates_of_a_large_set_are_estimated() -> None:
    random = np.random.default_rng(1)
    texts = ["".join(random.choice(list("abcdefghij "), 80)) for _ in range(1500)]
    rows = [(text,) for text in texts] + [(text + " .",) for text in texts[:500]]  # a quarter of all rows are repeats
    near = inspect(build_dataset(Shape.TEXTS, rows, chunk=400), sample=500).near_duplicates
    assert not near.whole
    assert 350 < near.sampled < 650
    assert 0.17 < near.repeats / near.sampled < 0.33


def test_scripts_are_shares_of_sentences() -> None:
    inspected = inspect(build_dataset(Shape.PARALLEL, [("yes", "да"), ("no", "нет"), ("word", "слово"), ("ten", "10")]))
    assert inspected.scripts == {"Latin": 0.5, "Cyrillic": 0.375, "none": 0.125}


def test_labels_and_scores() -> None:
    labelled = inspect(
        build_dataset(Shape.NLI, [("a", "b", "neutral"), ("c", "d", "entailment"), ("e", "f", "neutral")])
    )
    assert list(labelled.labels.items()) == [("neutral", 2), ("entailment", 1)]
    assert labelled.scores is None
    assert labelled.findings == ()
    scored = inspect(build_dataset(Shape.SCORED_PAIRS, [("a", "b", 0.0), ("c", "d", 5.0), ("e", "f", 1.0)]))
    assert scored.labels == {}
    assert scored.scores is not None
    assert (scored.scores.least, scored.scores.median, scored.scores.most, scored.scores.mean) == (0, 1, 5, 2)


def test_a_single_label_or_score_gives_a_warning() -> None:
    assert inspect(build_dataset(Shape.CLASSIFICATION, [("a", "x"), ("b", "x")])).findings == (
        Finding("all rows have the same label: x", 2, ""),
    )
    scored = build_dataset(Shape.SCORED_PAIRS, [("a", "b", 0.5), ("c", "d", 0.5)])
    assert inspect(scored).findings == (Finding("all rows have the same score: 0.5", 2, ""),)
    assert inspect(build_dataset(Shape.CLASSIFICATION, [("a", "x")])).findings == ()


def test_problems_of_the_text() -> None:
    rows = [
        ("a < b and c > d", "fine"),
        ("caf\ufffd", "fine too"),
        ("fine", "<p>no</p>"),
        ("a &amp; b", "x<br/>y"),
        ("a class <int>", "AT&T; so"),
        ("fine again", '<a href="x">link</a> \ufffd'),
    ]
    assert inspect(build_dataset(Shape.PAIRS, rows)).findings == (
        Finding("the replacement character U+FFFD, a sign of wrong decoding", 2, "data.tsv, line 3"),
        Finding("text that looks like HTML", 3, "data.tsv, line 4"),
    )


def test_many_identical_sides_give_a_warning() -> None:
    rows = [(f"left {number}", f"right {number}") for number in range(200)]
    few = build_dataset(Shape.PAIRS, [*rows, ("a", "a"), ("b", "b")], chunk=50)
    assert inspect(few).findings == ()
    many = build_dataset(Shape.PAIRS, [*rows, ("a", "a"), ("b", "b"), ("c", "c")], chunk=50)
    assert inspect(many).findings == (Finding("both sides are the same text", 3, "data.tsv, line 202"),)
    assert inspect(build_dataset(Shape.SCORED_PAIRS, [("a", "a", 1.0), ("b", "c", 0.0)])).findings == ()


@pytest.mark.parametrize("shape", list(Shape))
def test_every_shape_without_rows_and_as_json(shape: Shape) -> None:
    cells = {"score": 1.0, "negatives": ["n", "m"]}
    row = tuple(cells.get(name, name) for name in inspection.COLUMNS[shape])
    inspected = inspect(build_dataset(shape, [row]))
    assert json.loads(json.dumps(asdict(inspected)))["shape"] == shape.value
    empty = inspect(build_dataset(shape, []), letters, token_limit=3)
    assert (empty.rows, empty.sentences, empty.lengths, empty.scripts, empty.findings) == (0, 0, (), {}, ())
