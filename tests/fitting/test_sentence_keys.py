"""Sentences as keys: what counts as the same, which rows touch which keys, and the column that rows are grouped by."""

import numpy as np

from sentloom.data.shapes import Shape
from sentloom.fitting.clusters import apart_from, distinct_keys, sentences, union
from tests.small_data import build_dataset


def test_case_spacing_and_punctuation_make_no_difference():
    texts = build_dataset(Shape.TEXTS, [("The lamp is on.",), ("the LAMP  is on!",), ("The lamp is off.",)])
    hashed = sentences(texts)
    keys = hashed.texts.keys
    assert keys[0] == keys[1] != keys[2]
    assert hashed.distinct_rows == 2
    assert len(distinct_keys([texts, texts])) == 2


def test_rows_touch_the_keys_of_any_of_their_sentences():
    rows = [("one", "eins", ["zwei", "drei"]), ("two", "eins", ["vier"]), ("three", "zwei", ["eins", "sechs"])]
    data = build_dataset(Shape.TRIPLETS, rows)
    hashed = sentences(data)
    first = hashed.of(np.array([True, False, False]))
    assert len(first) == 2  # negatives connect nothing
    assert hashed.touching(first).tolist() == [True, True, False]
    assert apart_from(data, first)["negatives"] == [["sechs"]]
    assert union([first, first]).tolist() == first.tolist()


def test_rows_are_grouped_by_the_column_with_fewer_texts():
    few_answers = [(f"question {n}", f"answer {n % 3}") for n in range(9)]
    assert len(np.unique(sentences(build_dataset(Shape.PAIRS, few_answers)).draws)) == 3
    as_many = [(f"question {n}", f"answer {n}") for n in range(9)]
    hashed = sentences(build_dataset(Shape.PAIRS, as_many))
    assert set(hashed.draws.tolist()) == set(
        sentences(build_dataset(Shape.TEXTS, [(q,) for q, _ in as_many])).texts.keys.tolist()
    )


def test_nli_is_grouped_by_premise_even_if_there_are_fewer_hypotheses():
    rows = [(f"premise {n}", f"hypothesis {n % 2}", "neutral") for n in range(6)]
    assert len(np.unique(sentences(build_dataset(Shape.NLI, rows)).draws)) == 6
