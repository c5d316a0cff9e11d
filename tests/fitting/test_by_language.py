"""Scores per language: from a column or detected, where there are enough rows; a language that got worse is named."""

import numpy as np
import pyarrow as pa
import pytest

from sentloom.data.shapes import Shape
from sentloom.evaluation.evaluate import open_memory
from sentloom.evaluation.task import CLUSTER
from sentloom.fitting.evaluation_sets import general_task
from sentloom.fitting.inputs import FitInput
from sentloom.fitting.prepare import Prepared
from sentloom.fitting.tasks import held_out
from sentloom.fitting.verify import Duel, item_languages, language_measures, language_warnings
from tests.fitting.test_verify import ByNumber
from tests.small_data import build_dataset

ENGLISH, GERMAN = "How much is the ticket number {}?", "Wie viel kostet die Fahrkarte Nummer {}?"


def rows(codes=None, shape=Shape.PAIRS):
    """Fifty questions: the first 25 in English, the others in German; each is a cluster of its own."""
    asked = [(ENGLISH if n < 25 else GERMAN).format(n) for n in range(50)]
    data = build_dataset(shape, [(text, f"{n}") for n, text in enumerate(asked)])
    table = data.table.append_column(CLUSTER, pa.array(range(50)))
    if codes:
        table = table.append_column("language", pa.array(codes, pa.large_string()))
    return data.derive(table, "with columns")


def prepared(data, shares):
    part, fit_input = held_out("faq.csv", data), FitInput("faq.csv", data, None, {"anchor": shares})
    return Prepared((fit_input,), (), (), (), (part,), (part,), (), general_task())


@pytest.fixture
def duel(tmp_path):
    """The base answers the first 30 questions, the winner the first 20."""
    return Duel(ByNumber(30), ByNumber(20), open_memory(tmp_path))


def test_items_are_scored_by_the_language_of_their_question(duel):
    measures = language_measures(duel, prepared(rows(), {"en": 0.5, "de": 0.5}))
    assert {measured.name: measured.items for measured in measures} == {"faq.csv, en": 25, "faq.csv, de": 25}
    english, german = sorted(measures, key=lambda measured: measured.name, reverse=True)
    whole = duel.measured(prepared(rows(), {}).test[0].tasks, "watched")[1]
    assert (english.before + german.before) / 2 == pytest.approx(whole.before)  # equal halves
    assert (english.after + german.after) / 2 == pytest.approx(whole.after)
    assert english.before > german.before
    assert english.label.startswith("English: a query finds")
    assert english.low < english.difference < english.high


def test_a_column_wins_over_detection_and_few_rows_are_not_scored(duel):
    codes = ["EN "] * 20 + ["gsw"] * 20 + ["fr"] * 9 + [None]
    measures = language_measures(duel, prepared(rows(codes), {"en": 1.0}))
    assert [(measured.name, measured.items) for measured in measures] == [("faq.csv, en", 20), ("faq.csv, gsw", 20)]


def test_large_clusters_count_for_less(duel):
    """Twenty of 25 German questions are clusters of their own, and five are one: Kish's number is 25^2 / 45 = 13.9."""
    data = rows()
    numbers = [*range(45), *[45] * 5]
    at = data.table.column_names.index(CLUSTER)
    joined = data.derive(data.table.set_column(at, CLUSTER, pa.array(numbers)), "joined")
    measures = language_measures(duel, prepared(joined, {"en": 0.5, "de": 0.5}))
    assert [measured.name for measured in measures] == ["faq.csv, en"]


def test_one_language_needs_no_table(duel):
    assert not language_measures(duel, prepared(rows(), {"en": 0.97, "und": 0.03}))
    assert not language_measures(duel, prepared(rows(["en"] * 50), {"en": 1.0}))


def test_items_of_a_correlation_are_its_rows():
    data = build_dataset(Shape.SCORED_PAIRS, [(f"a {n}", f"b {n}", float(n)) for n in range(4)])
    (task,) = held_out("sts.csv", data).tasks
    texts, codes = [f"a {n}" for n in range(4)], ["en", "de", "en", ""]
    assert item_languages(task, 4, texts, codes) == codes
    assert item_languages(task, 3, texts, codes) == []  # they cannot be told apart


def test_a_language_that_got_worse_is_named(duel):
    worse = [
        measured for measured in language_measures(duel, prepared(rows(), {"en": 0.5, "de": 0.5})) if measured.worse
    ]
    warnings = list(language_warnings(worse))
    assert worse
    assert len(warnings) == len(worse)
    assert np.all([measured.label in line for measured, line in zip(worse, warnings, strict=True)])
