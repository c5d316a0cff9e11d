"""How numbers are said."""

from dataclasses import replace

import numpy as np
import pytest

from sentloom.evaluation.significance import compare
from sentloom.evaluation.task import Score
from sentloom.fitting.result import Neighbours
from sentloom.report import formatting
from tests.report.results_by_hand import BARE, FULL, measure


@pytest.mark.parametrize(
    ("value", "plain", "signed"),
    [(61.2, "61.20", "+61.20"), (-1.666, "−1.67", "−1.67"), (0.0, "0.00", "0.00"), (-0.001, "0.00", "0.00"), (0.001, "0.00", "0.00"),
     (12345.0, "12,345.00", "+12,345.00"), (None, "–", "–"), (float("nan"), "–", "–"), (float("inf"), "–", "–")],
)  # fmt: skip
def test_numbers(value, plain, signed):
    assert formatting.number(value) == plain
    assert formatting.signed(value) == signed


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(4.21, "4.2 s"), (48.4, "48 s"), (89.6, "90 s"), (90, "1.5 min"), (316, "5.3 min"), (720, "12 min"), (12240, "3.4 h"), ("words", "words")],
)  # fmt: skip
def test_durations(seconds, said):
    assert formatting.duration(seconds) == said


def test_a_p_at_the_floor_of_the_bootstrap_is_less_than_it():
    floor = 2 / 1001  # two-sided, none of 1,000 resamples beyond 0
    assert [formatting.chance(p) for p in (floor, 2 * floor, 0.0123, 1.0)] == [
        "p < 0.002",
        "p = 0.004",
        "p = 0.012",
        "p = 1.000",
    ]
    ones = Score("mean", np.arange(1.0, 21.0)[:, None])
    assert formatting.chance(compare(ones, Score("mean", np.zeros((20, 1)))).p) == "p < 0.002"


def test_stability_is_one_number_and_no_gain():
    said = formatting.stability(FULL)
    assert "agree on 97.7% of the 10 nearest neighbours of 250 held-out texts" in said
    assert "(95% interval 97.1% to 98.3%)" in said
    assert formatting.stability(BARE) == ""


def test_overlap_is_what_lies_under_both():
    # shares (0, 1/2, 1/2) and (1/4, 3/4, 0) have 1/2 in common
    assert formatting.overlap((0, 5, 5), (1, 3, 0)) == pytest.approx(0.5)
    assert formatting.overlap((1, 2, 3), (2, 4, 6)) == pytest.approx(1)
    assert formatting.overlap((0, 0), (1, 0)) == 0


def test_what_left_the_list_and_what_came():
    before, after = formatting.marked(Neighbours("s", ((0.9, "a"), (0.8, "b")), ((0.95, "c"), (0.7, "a"))))
    assert before == [(0.9, "a", False), (0.8, "b", True)]
    assert after == [(0.95, "c", True), (0.7, "a", False)]


def test_the_winner_comes_first_and_then_who_came_further():
    assert list(formatting.routes_run(FULL)) == ["simcse", "pairs", "broken"]
    assert formatting.winner(FULL) == "simcse"
    assert formatting.winner(BARE) is None
    assert formatting.rungs(FULL) == {1: [60], 2: [120]}


def test_the_mean_stands_behind_what_it_is_the_mean_of():
    groups = {title: [one.name for one in ones] for title, ones in formatting.groups(FULL).items()}
    assert groups == {
        "What decides": ["halves", "views", "mean"],
        "General ability": ["sts-b"],
        "Watched, decides nothing": ["own rows"],
    }


def test_a_single_measure_is_not_shown_twice():
    one = measure()
    assert formatting.groups(replace(FULL, measures=(one,), total=one)) == {"What decides": [one]}
    assert formatting.groups(BARE) == {}
