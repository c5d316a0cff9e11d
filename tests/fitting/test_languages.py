"""The language of each row, and the training rows of each language that has enough of them."""

from collections import Counter

import pyarrow as pa
import pytest

from sentloom.data.shapes import Shape
from sentloom.fitting.inputs import FitInput
from sentloom.fitting.training_sets import language_parts, row_languages, without_languages
from tests.small_data import build_dataset

ENGLISH, GERMAN = "How much is the ticket number {}?", "Wie viel kostet die Fahrkarte Nummer {}?"
BOTH = {"en": 0.5, "de": 0.5}


def input_of(data, shares):
    return FitInput("faq.csv", data, None, {"first": shares})


def pairs(*counts, codes=None):
    """So many questions in English and in German; with a column of languages, if `codes` are given."""
    asked = [form.format(n) for form, count in zip((ENGLISH, GERMAN), counts, strict=True) for n in range(count)]
    data = build_dataset(Shape.PAIRS, [(text, f"answer {n}") for n, text in enumerate(asked)])
    return with_column(data, codes) if codes else data


def with_column(data, codes):
    return data.derive(data.table.append_column("lang", pa.array(codes, pa.large_string())), "with languages")


def sizes(parts):
    return {part.language: (len(part.data), part.examples) for part in parts}


def test_languages_are_detected_if_the_file_has_several():
    rows = pairs(4, 3)
    assert row_languages(input_of(rows, BOTH), rows) == ["en"] * 4 + ["de"] * 3
    assert row_languages(input_of(rows, {"en": 0.97, "und": 0.03}), rows) == []


def test_a_column_says_the_language_and_large_files_need_one():
    rows = pairs(3, 2)
    assert row_languages(input_of(rows, BOTH), rows, most=4) == []
    rows = with_column(rows, ["EN ", "gsw", "gsw", None, "en"])
    assert row_languages(input_of(rows, {"en": 1.0}), rows, most=4) == ["en", "gsw", "gsw", "", "en"]
    assert without_languages(rows).table.column_names == pairs(3, 2).table.column_names


def test_translations_have_two_languages_in_every_row():
    rows = build_dataset(Shape.PARALLEL, [(ENGLISH.format(n), GERMAN.format(n)) for n in range(4)])
    assert row_languages(input_of(rows, BOTH), with_column(rows, ["en", "de"] * 2)) == []


def test_each_language_with_200_rows_is_a_part():
    parts = language_parts(input_of(None, BOTH), pairs(210, 250))
    assert sizes(parts) == {"de": (250, 250), "en": (210, 210)}
    assert [parts[0].data["anchor"][0], parts[1].data["anchor"][0]] == [GERMAN.format(0), ENGLISH.format(0)]
    assert language_parts(input_of(None, BOTH), pairs(199, 250)) == []


def test_rows_of_rare_and_unknown_languages_go_with_the_largest():
    codes = ["en"] * 250 + ["de"] * 200 + ["fr"] * 100 + [None] * 50
    parts = language_parts(input_of(None, {}), pairs(400, 200, codes=codes))
    assert sizes(parts) == {"en": (400, 250), "de": (200, 200)}
    assert parts[0].data.table.column_names == pairs(1, 0).table.column_names


def test_raw_text_has_no_parts():
    texts = build_dataset(Shape.TEXTS, [(form.format(n),) for form in (ENGLISH, GERMAN) for n in range(250)])
    assert language_parts(input_of(None, BOTH), texts) == []


@pytest.mark.parametrize(("german", "expected"), [(200, {"en": (900, 250), "de": (600, 200)}), (199, {})])
def test_nli_needs_enough_triplets_and_keeps_the_rows_of_a_premise_together(german, expected):
    """Every premise has three rows; one of 300 English and 200 German ones makes a triplet if one is contradicted."""
    rows = []
    for form, premises, triplets in ((ENGLISH, 300, 250), (GERMAN, 200, german)):
        for n in range(premises):
            last = "contradiction" if n < triplets else "neutral"
            labels = ("entailment", "entailment", last)
            rows += [(form.format(n), f"{at} of {n}", label) for at, label in enumerate(labels)]
    parts = language_parts(input_of(None, BOTH), build_dataset(Shape.NLI, rows))
    assert sizes(parts) == expected
    assert all(set(Counter(part.data["premise"]).values()) == {3} for part in parts)
