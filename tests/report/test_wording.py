"""How numbers are said."""

from dataclasses import replace

import pytest

from sentloom.report import wording
from sentloom.report.story import Neighbours
from tests.report.stories import BARE, FULL, measure


@pytest.mark.parametrize(
    ("value", "plain", "signed"),
    [(61.2, "61.20", "+61.20"), (-1.666, "−1.67", "−1.67"), (0.0, "0.00", "0.00"), (-0.001, "0.00", "0.00"), (0.001, "0.00", "0.00"),
     (12345.0, "12,345.00", "+12,345.00"), (None, "–", "–"), (float("nan"), "–", "–"), (float("inf"), "–", "–")],
)  # fmt: skip
def test_numbers(value, plain, signed):
    assert wording.number(value) == plain
    assert wording.signed(value) == signed


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(4.21, "4.2 s"), (48.4, "48 s"), (89.6, "90 s"), (90, "1.5 min"), (316, "5.3 min"), (720, "12 min"), (12240, "3.4 h"), ("words", "words")],
)  # fmt: skip
def test_durations(seconds, said):
    assert wording.duration(seconds) == said


def test_chances():
    assert [wording.chance(p) for p in (0.0, 0.00099, 0.001, 0.0123, 1.0)] == [
        "p < 0.001",
        "p < 0.001",
        "p = 0.001",
        "p = 0.012",
        "p = 1.000",
    ]


def test_overlap_is_what_lies_under_both():
    # shares (0, 1/2, 1/2) and (1/4, 3/4, 0) have 1/2 in common
    assert wording.overlap((0, 5, 5), (1, 3, 0)) == pytest.approx(0.5)
    assert wording.overlap((1, 2, 3), (2, 4, 6)) == pytest.approx(1)
    assert wording.overlap((0, 0), (1, 0)) == 0


def test_what_left_the_list_and_what_came():
    before, after = wording.marked(Neighbours("s", ((0.9, "a"), (0.8, "b")), ((0.95, "c"), (0.7, "a"))))
    assert before == [(0.9, "a", False), (0.8, "b", True)]
    assert after == [(0.95, "c", True), (0.7, "a", False)]


def test_the_winner_comes_first_and_then_who_came_further():
    assert list(wording.routes_run(FULL)) == ["simcse", "pairs", "broken"]
    assert wording.winner(FULL) == "simcse"
    assert wording.winner(BARE) is None
    assert wording.rungs(FULL) == {1: [60], 2: [120]}


def test_the_mean_stands_behind_what_it_is_the_mean_of():
    groups = {title: [one.name for one in ones] for title, ones in wording.groups(FULL).items()}
    assert groups == {
        "What decides": ["halves", "views", "mean"],
        "General ability": ["sts-b"],
        "Watched, decides nothing": ["stability"],
    }


def test_a_single_measure_is_not_shown_twice():
    one = measure()
    assert wording.groups(replace(FULL, measures=(one,), total=one)) == {"What decides": [one]}
    assert wording.groups(BARE) == {}
