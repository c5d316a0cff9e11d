"""How numbers are said."""

import numpy as np
import pytest

from sentloom.evaluation.significance import compare_averages
from sentloom.evaluation.task import Score
from sentloom.report import formatting
from tests.report.results_by_hand import BARE, FULL


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
    assert formatting.chance(compare_averages([ones], [Score("mean", np.zeros((20, 1)))]).p) == "p < 0.002"


def test_stability_is_one_number_and_no_gain():
    said = formatting.stability(FULL)
    assert "agree on 97.7% of the 10 nearest neighbours of 250 held-out texts" in said
    assert "(95% interval 97.1% to 98.3%)" in said
    assert formatting.stability(BARE) == ""
