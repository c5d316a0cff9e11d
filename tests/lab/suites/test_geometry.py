"""Alignment and uniformity as scores of an STS set, computed by hand; other sets have neither."""

from math import exp, log

import numpy as np
import pytest

from sentloom.engine.evaluation_sets import find_evaluation_set
from sentloom.errors import InputError
from tests.evaluation.by_hand import write

HEAD = ("score", "sentence1", "sentence2")
PLACES = {"east": (1, 0), "north": (0, 2), "west": (-1, 0), "between": (3, 4)}  # any length


class Compass:
    """A model of four texts in two dimensions."""

    def encode(self, texts, *, role="symmetric", show_progress=False):
        return np.array([PLACES[text] for text in texts], np.float32)

    def fingerprint(self):
        return "compass"


@pytest.fixture
def folder(tmp_path):
    """Two positive pairs, and one whose score of 4 is not above 4."""
    pairs = [(5.0, "east", "north"), (4.5, "east", "between"), (4.0, "north", "west")]
    write(tmp_path / "sts" / "STSB.test.tsv", HEAD, *pairs)
    return str(tmp_path)


def test_alignment_is_the_mean_squared_distance_of_positive_pairs(folder):
    """Squared distances are 2 - 2 cos: 2 for a right angle, and 0.8 for the cosine 3/5."""
    alignment = find_evaluation_set("STS-B@alignment", folder)
    assert alignment.name == "STS-B@alignment"
    assert alignment.score(Compass()) == pytest.approx((2 + 0.8) / 2)


def test_uniformity_is_the_log_of_the_mean_potential_of_all_distinct_sentences(folder):
    """Cosines of the six pairs: 0, -1, 3/5, 0, 4/5 and -3/5."""
    squares = [2, 4, 0.8, 2, 0.4, 3.2]
    expected = log(sum(exp(-2 * square) for square in squares) / 6)
    assert find_evaluation_set("sts-b@uniformity", folder).score(Compass()) == pytest.approx(expected)


def test_the_two_are_measured_together_without_a_correlation(folder):
    task = find_evaluation_set("STS-B@uniformity", folder).task
    assert task.main == "uniformity"
    assert task.settings.recorded() == {"task": "geometry"}
    assert set(task.texts["symmetric"]) == set(PLACES)


def test_pairs_without_a_positive_are_refused(tmp_path):
    write(tmp_path / "sts" / "STSB.test.tsv", HEAD, (4.0, "east", "north"))
    with pytest.raises(InputError, match="none of the 1 pairs has a score above 4"):
        find_evaluation_set("STS-B@alignment", str(tmp_path)).score(Compass())


def test_other_sets_have_neither(tmp_path):
    write(tmp_path / "senteval" / "MR.tsv", ("label", "text"), (1, "east"), (0, "west"))
    review = find_evaluation_set("MR@alignment", str(tmp_path))
    with pytest.raises(InputError, match="MR@alignment: the set has no score alignment"):
        review.main({})
