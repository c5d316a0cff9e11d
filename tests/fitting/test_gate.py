"""The gate: what passes, what does not, and the reason that is given."""

import numpy as np
import pytest

from sentloom.evaluation.task import Score, Task
from sentloom.fitting.gate import GENERAL_MARGIN, general_warning, judge, mean_measure, measure

TASK = Task("faq.csv", "accuracy", {}, lambda lookup: {})


def score(*hits):
    return Score("mean", np.array(hits, float)[:, None])


def measured(before, after, part="deciding"):
    return measure(TASK, "words", part, {"accuracy": before}, {"accuracy": after})


def test_a_measure_has_both_scores_and_their_difference():
    one = measured(score(*[0, 1] * 50), score(*[1, 1] * 40, *[0, 1] * 10))
    assert (one.before, one.after, one.difference, one.items) == pytest.approx((50, 90, 40, 100))
    assert 0 < one.low < 40 < one.high
    assert one.before_low < 50 < one.before_high
    assert one.p < 0.01


def test_only_a_gain_beyond_chance_passes():
    better = judge(measured(score(*[0, 1] * 50), score(*[1, 1] * 50)), 1.0)
    assert better.passed
    assert "50.00 before, 100.00 after: +50.00" in better.reason
    worse = judge(measured(score(*[1, 1] * 50), score(*[0, 1] * 50)), 1.0)
    assert not worse.passed
    assert worse.reason.startswith("Worse")
    same = judge(measured(score(*[0, 1] * 50), score(*[0, 1] * 50)), 1.0)
    assert not same.passed
    assert same.reason.startswith("Not shown")
    hardly = judge(measured(score(*[0, 1] * 50), score(1, *[1, *[0, 1] * 49])), 1.0)  # one item of a hundred
    assert not hardly.passed


def test_validation_and_test_rows_must_agree():
    gate = judge(measured(score(*[0, 1] * 50), score(*[1, 1] * 50)), -0.5)
    assert not gate.passed
    assert "-0.50 on the validation rows" in gate.reason


def test_a_reason_that_comes_before_any_score():
    gate = judge(measured(score(*[0, 1] * 50), score(*[1, 1] * 50)), 1.0, "no prose")
    assert (gate.passed, gate.reason) == (False, "no prose")


def test_the_mean_of_several_and_of_one():
    ones = [score(*[0, 1] * 20), score(*[0, 0, 0, 1] * 10)]
    others = [score(*[1, 1] * 20), score(*[0, 1] * 20)]
    several = [measured(*both) for both in zip(ones, others, strict=True)]
    found = mean_measure(several, ones, others)
    assert (found.before, found.after, found.difference) == pytest.approx((37.5, 75, 37.5))
    assert mean_measure(several[:1], ones[:1], others[:1]) is several[0]


def test_general_ability_may_fall_by_the_margin():
    kept = measured(score(*[1] * 98, 0, 0), score(*[1] * 96, *[0] * 4), "general")
    assert kept.difference == pytest.approx(-GENERAL_MARGIN)
    assert general_warning(kept) is None
    fallen = measured(score(*[1] * 98, 0, 0), score(*[1] * 95, *[0] * 5), "general")
    assert "98.00 before, 95.00 after" in general_warning(fallen)
