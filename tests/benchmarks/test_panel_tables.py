"""How far a measure agrees with labels, by hand."""

import numpy as np
import pytest

from benchmarks.panel_tables import HALF_OF_THE_LABELS, agreement, half_score, held_out_choice, mean_interval, word

NAMES = ["base", "up", "down", "degraded"]
NEAR = np.array([True, True, True, False])


def test_agreement_by_hand():
    """The measure has both models above the base, labels only one; the degraded model is last by both."""
    found = agreement(NAMES, np.array([2.0, 4.0, 3.0, 1.0]), np.array([50.0, 53.0, 49.0, 10.0]), NEAR)
    assert found["near"] == pytest.approx(0.5), "ranks 1 3 2 and 2 3 1: 1 - 6 * 2 / (3 * 8)"
    assert found["all"] == pytest.approx(0.8), "1 - 6 * 2 / (4 * 15)"
    assert found["same sign"] == 0.5
    assert (found["choice"], found["gain"], found["greatest gain"]) == ("up", 3.0, 3.0)


def test_a_measure_that_sees_no_difference_chooses_the_base_and_is_on_no_side():
    found = agreement(NAMES, np.ones(4), np.array([50.0, 53.0, 49.0, 10.0]), NEAR)
    assert (found["choice"], found["gain"], found["same sign"]) == ("base", 0.0, 0.0)


def test_a_degraded_model_is_never_chosen():
    assert agreement(NAMES, np.array([0.0, 1.0, 0.0, 9.0]), np.arange(4.0), NEAR)["choice"] == "up"


def test_halves_of_the_labels_share_no_item():
    kept = {"metric": "mean", "items": [[1.0], [0.0], [1.0], [0.5]]}
    assert [half_score(kept, start) for start in (0, 1)] == [100.0, 25.0]


def test_the_interval_over_domains_by_hand():
    """Mean 0.4, deviation 0.2, t of two degrees of freedom 4.303: 0.4 +- 4.303 * 0.2 / sqrt(3) = 0.497."""
    assert mean_interval([0.2, 0.4, 0.6]) == "**0.40** (-0.10 to 0.90)"
    assert mean_interval([0.2, 0.4, 0.6], 0, 1) == "**0.40** (0.00 to 0.90)"
    assert mean_interval([0.2], sign="+") == "**+0.20**"


def test_the_best_measure_elsewhere_is_no_label():
    def one(near):
        return {"all": 0.0, "near": near, "same sign": 0.0, "gain": 0.0}

    judgements = {name: {"panel": one(0.1), HALF_OF_THE_LABELS: one(0.9)} for name in ("a", "b")}
    assert "| a | panel |" in held_out_choice(judgements)


def test_an_interval_around_zero_is_undecided():
    assert [word({"low": low, "high": high}) for low, high in ((1, 2), (-1, 2), (-2, -1))] == [
        "better",
        "undecided",
        "worse",
    ]
