"""Training sets: the form of each shape, one set per shape, and the corpus to search in."""

import pyarrow.parquet as pq
import pytest

from sentloom.data import read
from sentloom.data.shapes import Shape
from sentloom.errors import InputError
from sentloom.fitting.inputs import Input
from sentloom.fitting.split import Split
from sentloom.fitting.training_sets import (
    FEWEST_ROWS,
    high_pairs,
    training_form,
    training_rows,
    write_search_corpus,
    write_training_sets,
)
from tests.small_data import build_dataset

SCORED = [("a b", "a c", 0.0), ("d e", "d f", 3.9), ("g h", "g i", 4.0), ("j k", "j l", 5.0)]


def given(data, language="en"):
    return Input("faq.csv", data, None, {"anchor": {language: 1.0}})


def test_scores_in_the_top_fifth_of_the_scale_are_pairs_to_learn_from():
    found = high_pairs(build_dataset(Shape.SCORED_PAIRS, SCORED))
    assert found.shape is Shape.PAIRS
    assert found.take([0, 1]) == {"anchor": ["g h", "j k"], "positive": ["g i", "j l"]}


def test_labelled_texts_become_texts_and_pairs_stay_pairs():
    texts = training_form(build_dataset(Shape.CLASSIFICATION, [("one", "a"), ("two", "b"), ("one", "b")]))
    assert (texts.shape, texts.column("text").to_pylist()) == (Shape.TEXTS, ["one", "two"])
    pairs = build_dataset(Shape.PAIRS, [("one", "eins")])
    assert training_form(pairs) is pairs


def test_too_few_rows_with_a_high_score_are_refused():
    rows = build_dataset(
        Shape.SCORED_PAIRS, [(f"a {n}", f"b {n}", 5.0 if n < FEWEST_ROWS - 1 else 0.0) for n in range(90)]
    )
    with pytest.raises(InputError, match="9 training rows with a high score"):
        training_rows(given(rows), Split(rows, rows, rows, 0))


def test_inputs_of_one_shape_are_one_training_set(tmp_path):
    one, two = (
        build_dataset(Shape.PAIRS, [(f"{name} {n}", f"answer {n}") for n in range(count)])
        for name, count in (("a", 3), ("b", 4))
    )
    texts = build_dataset(Shape.TEXTS, [("raw",)])
    inputs = [given(one), given(texts), given(two, "de")]
    pairs, raw = write_training_sets(inputs, [one, texts, two], 32, tmp_path)
    assert (pairs.shape, pairs.rows, pairs.length, pairs.language) == (Shape.PAIRS, 7, 32, None)  # two languages
    assert (raw.shape, raw.rows, raw.language) == (Shape.TEXTS, 1, "en")
    assert [len(read(file)) for file in pairs.files] == [3, 4]


def test_the_search_corpus_has_the_answers_of_pairs_once(tmp_path):
    pairs = build_dataset(Shape.PAIRS, [("one", "eins"), ("uno", "eins"), ("two", "zwei")])
    texts = build_dataset(Shape.TEXTS, [("zwei",), ("drei",)])
    write_search_corpus([given(pairs), given(texts)], tmp_path / "corpus.parquet")
    assert pq.read_table(tmp_path / "corpus.parquet").column("text").to_pylist() == ["eins", "zwei", "drei"]
