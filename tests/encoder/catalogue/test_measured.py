"""What the encoders of the catalogue are measured to score."""

import pytest

from sentloom.encoder.catalogue import measured
from sentloom.encoder.catalogue.listed import CATALOGUE
from sentloom.encoder.catalogue.measured import MeasuredSet, bases_here, best_for, gain, mean_score, measured_sets


@pytest.fixture
def three_sets(monkeypatch):
    sets = (
        MeasuredSet("en", {"embedded": 50.0, "e5-multilingual": 40.0}),
        MeasuredSet("de", {"embedded": 20.0, "e5-multilingual": 60.0}),
        MeasuredSet("de", {"embedded": 30.0, "e5-multilingual": 40.0}),
    )
    monkeypatch.setattr(measured, "measured_sets", lambda: sets)


@pytest.mark.usefixtures("three_sets")
def test_means_and_gains():
    assert mean_score("embedded") == pytest.approx(100 / 3)
    assert mean_score("embedded", "de") == 25.0
    assert mean_score("embedded", "fr") is None
    assert gain("e5-multilingual", "embedded", "de") == 25.0
    assert gain("e5-multilingual", "embedded", "en") == -10.0
    assert gain("e5-multilingual", "./a-folder", "de") is None


def test_the_best_for_a_language_was_made_for_it():
    assert best_for("de").name == "e5-multilingual"
    assert best_for("tlh") is None


def test_the_table_is_about_encoders_of_the_catalogue():
    sets = measured_sets()
    assert {"en", "de", "es", "fr", "pt", "zh", "ar"} <= {row.language for row in sets}
    assert sum(row.language == "en" for row in sets) >= 5
    for row in sets:
        assert {CATALOGUE[name].use for name in row.scores} == {"encoder"}
        assert all(-100 <= value <= 100 for value in row.scores.values())


def test_encoders_that_are_not_here_are_not_tried():
    assert bases_here() == ("embedded",)  # the cache of a test is empty
