"""The gate: what passes, what does not, and the reason that is given."""

from dataclasses import replace
from itertools import chain

import numpy as np
import pytest

from sentloom.evaluation.task import Score, Task
from sentloom.fitting.gate import (
    GENERAL_MARGIN,
    Basis,
    general_warning,
    judge,
    mean_measure,
    measure,
    which_to_believe,
)
from sentloom.fitting.result import Run

TASK = Task("faq.csv", "accuracy", {}, lambda lookup: {})


def score(*hits):
    return Score("mean", np.array(hits, float)[:, None])


def measured(before, after, part="deciding"):
    return measure(TASK, "words", part, {"accuracy": before}, {"accuracy": after})


def test_a_measure_has_both_scores_and_their_difference():
    gain = measured(score(*[0, 1] * 50), score(*[1, 1] * 40, *[0, 1] * 10))
    assert (gain.before, gain.after, gain.difference, gain.items) == pytest.approx((50, 90, 40, 100))
    assert 0 < gain.low < 40 < gain.high
    assert gain.before_low < 50 < gain.before_high
    assert gain.p < 0.01


def test_no_interval_is_wider_than_scores_can_differ():
    few = measured(score(1, 1, 1, 0), score(0, 0, 0, 0))  # -75 points on four items
    assert few.low == -100
    order = np.array([[1, 1], [2, 2], [3, 3], [4, 5], [5, 4]], float)
    before, after = (Score("spearman", items) for items in (order, order * [-1, 1]))
    assert -200 <= measured(before, after).low < -100


def test_other_scores_of_the_task_are_kept():
    before, after = ({"accuracy": score(*[0, 1] * 20), "map": score(*[value] * 40)} for value in (0.25, 0.75))
    assert measure(TASK, "words", "deciding", before, after).also == {"map": (25.0, 75.0)}


def test_only_a_gain_beyond_chance_passes():
    better = judge(measured(score(*[0, 1] * 50), score(*[1, 1] * 50)), 1.0)
    assert better.passed
    assert "50.00 before, 100.00 after, +50.00" in better.reason
    worse = judge(measured(score(*[1, 1] * 50), score(*[0, 1] * 50)), 1.0)
    assert not worse.passed
    for gate in (better, worse):  # the verdict is shown before the reason, which does not repeat it
        assert gate.reason.startswith("Compared with its base on held-out rows: accuracy ")
    same = judge(measured(score(*[0, 1] * 50), score(*[0, 1] * 50)), 1.0)
    assert not same.passed
    assert same.reason.startswith("Not shown")
    hardly = judge(measured(score(*[0, 1] * 50), score(1, *[1, *[0, 1] * 49])), 1.0)  # one item of a hundred
    assert not hardly.passed


def test_validation_and_test_rows_must_agree():
    gate = judge(measured(score(*[0, 1] * 50), score(*[1, 1] * 50)), -0.5)
    assert not gate.passed
    assert "-0.50 on the validation rows" in gate.reason
    folds = judge(measured(score(*[0, 1] * 50), score(*[1, 1] * 50)), -0.5, Basis(folds=4))
    assert "-0.50 on 4 folds of the training rows" in folds.reason


def test_without_labels_a_model_may_be_rejected_and_never_accepted():
    right, wrong = score(*[1, 1] * 50), score(*[0, 1] * 50)
    better = judge(measured(wrong, right), 1.0, Basis(label_free=True))
    assert better.verdict == "no difference shown"
    assert better.reason.startswith("No difference can be shown without labels: label-free scores can only reveal")
    assert "50.00 before, 100.00 after, +50.00" in better.reason
    assert judge(measured(right, wrong), 1.0, Basis(label_free=True)).verdict == "worse"
    assert judge(measured(wrong, wrong), 1.0, Basis(label_free=True)).verdict == "no difference shown"


def test_too_few_clusters_show_nothing():
    clusters = np.repeat(np.arange(19), 6)
    before, after = (
        Score("mean", np.full((114, 1), value) + clusters[:, None] / 1e3, clusters=clusters) for value in (0, 1.0)
    )
    gate = judge(measured(before, after), 1.0)
    assert gate.verdict == "no difference shown"
    assert "19 independent clusters, and intervals need 20" in gate.reason


def test_what_counts_is_the_effective_number_of_clusters():
    """One cluster with half of 58 rows, and 29 rows of their own: 58^2 / (29^2 + 29) = 3.87 clusters of equal size."""
    clusters = np.repeat(np.arange(30), [29, *[1] * 29])
    rise = 0.5 + clusters[:, None] / 1e3
    before, after = (Score("mean", value, clusters=clusters) for value in (np.zeros((58, 1)), rise))
    gain = measured(before, after)
    assert (gain.clusters, gain.effective) == (30, pytest.approx(58**2 / (29**2 + 29)))
    assert gain.low > 0
    assert gain.finding == "no difference shown"
    gate = judge(gain, 1.0)
    assert gate.verdict == "no difference shown"
    assert "30 independent clusters, which count as 3.8 because some are large, and intervals need 20" in gate.reason
    same = measured(before, before)
    assert not same.equivalent


def test_rows_of_one_cluster_do_not_make_a_gain_sure():
    hits, misses = [1] * 10, [0] * 10
    before = [misses, hits] * 20
    after = [hits if n in (0, 2, 4, 6) else hit for n, hit in enumerate(before)]  # four clusters of 40 gain
    flat = [score(*chain(*rows)) for rows in (before, after)]
    clustered = [Score("mean", flat_score.items, clusters=np.repeat(np.arange(40), 10)) for flat_score in flat]
    assert measured(*clustered).difference == measured(*flat).difference == 10
    assert measured(*clustered).clusters == 40
    assert measured(*clustered).high - measured(*clustered).low > 2 * (measured(*flat).high - measured(*flat).low)


def test_one_cluster_alone_has_an_interval_that_can_be_written():
    gain = measured(*(Score("mean", np.full((30, 1), value), clusters=np.zeros(30, int)) for value in (0.0, 1.0)))
    assert (gain.low, gain.high, gain.clusters) == (-100, 100, 1)


def test_a_difference_that_is_shown_to_be_small_is_called_so():
    same = score(*[0, 1] * 500)
    assert "It is within 0.5 points of its base." in judge(measured(same, same), 1.0).reason


def test_a_higher_level_claims_less():
    before, after = score(*[0, 1] * 50), score(*[1] * 11, *[0, 1] * 44, 1)
    usual, careful = (
        measure(TASK, "words", "deciding", {"accuracy": before}, {"accuracy": after}, level) for level in (0.95, 0.999)
    )
    assert careful.low < usual.low < usual.difference < usual.high < careful.high
    assert "99.9% interval" in judge(careful, 1.0).reason


def run(difference, low, high):
    return Run("pairs", 1, 10, 0.0, 60.0, difference, low, high, "best")


def test_where_validation_and_test_rows_disagree_the_report_says_which_to_believe():
    nothing = measured(score(*[0, 1] * 50), score(*[0, 1] * 50))
    gain = measured(score(*[0, 1] * 50), score(*[1, 1] * 50))
    assert which_to_believe(gain, run(48.0, 40.0, 56.0), 3).startswith("The gains agree: +48.00 on the validation rows")
    assert "+48.00 on 4 folds of the training rows" in which_to_believe(gain, run(48.0, 40.0, 56.0), 3, 4)
    loss = replace(nothing, difference=-0.55, low=-3.0, high=2.0)
    assert which_to_believe(loss, run(0.0, -2.0, 2.0), 3) == (
        "The difference is +0.00 on the validation rows and -0.55 on the test rows, and chance can explain the gap."
    )
    assert which_to_believe(loss, run(-1.0, -3.0, 1.0), 3).startswith("The differences agree: -1.00")
    inflated = which_to_believe(nothing, run(5.0, 2.0, 8.0), 6)
    assert "Believe the test rows: nothing was chosen on them" in inflated
    assert "the best of 6 runs" in inflated
    assert "runs" not in which_to_believe(nothing, run(5.0, 2.0, 8.0), 1)  # nothing was chosen
    few = measured(score(*[0, 1] * 9), score(*[1, 1] * 9))
    assert "too few clusters to say" in which_to_believe(few, run(48.0, 40.0, 56.0), 3)


def test_gains_agree_if_both_intervals_together_explain_their_difference():
    """A gain of 50 points, 40 to 60, and one of 38: 12 points apart, within the root of 10^2 + 8^2 but not of 10^2 + 6^2."""
    gain = measured(score(*[0, 1] * 50), score(*[1, 1] * 50))
    gain = replace(gain, difference=50.0, low=40.0, high=60.0)
    assert which_to_believe(gain, run(38.0, 30.0, 46.0), 3).startswith("The gains agree")
    assert which_to_believe(gain, run(38.0, 32.0, 44.0), 3).startswith("The gains disagree")


@pytest.mark.parametrize("chosen", [-5.0, -1.0, 0.0, 0.1, 20.0, 48.0, 90.0])
@pytest.mark.parametrize("after", [[1, 1] * 50, [0, 1] * 50, [0, 0] * 50, [*[1, 1] * 8, *[0, 1] * 42]])
def test_what_to_believe_never_contradicts_the_verdict(chosen, after):
    gain = measured(score(*[0, 1] * 50), score(*after))
    verdict, said = judge(gain, chosen).verdict, which_to_believe(gain, run(chosen, chosen - 2, chosen + 2), 3)
    if "no difference is claimed" in said:
        assert verdict == "no difference shown"
    else:
        assert verdict == gain.finding  # the test rows are believed
        assert any(words in said for words in ("Believe the test rows", "agree:", "chance can explain the gap"))


def test_a_reason_that_comes_before_any_score():
    gate = judge(measured(score(*[0, 1] * 50), score(*[1, 1] * 50)), 1.0, why_not="no prose")
    assert (gate.passed, gate.reason) == (False, "no prose")


def test_the_mean_of_several_and_of_one():
    ones = [score(*[0, 1] * 20), score(*[0, 0, 0, 1] * 10)]
    others = [score(*[1, 1] * 20), score(*[0, 1] * 20)]
    several = [measured(*both) for both in zip(ones, others, strict=True)]
    mean = mean_measure(several, ones, others)
    assert (mean.before, mean.after, mean.difference) == pytest.approx((37.5, 75, 37.5))
    assert mean_measure(several[:1], ones[:1], others[:1]) is several[0]


def test_general_ability_may_fall_by_the_margin():
    kept = measured(score(*[1] * 98, 0, 0), score(*[1] * 96, *[0] * 4), "general")
    assert kept.difference == pytest.approx(-GENERAL_MARGIN)
    assert general_warning(kept) is None
    fallen = measured(score(*[1] * 98, 0, 0), score(*[1] * 95, *[0] * 5), "general")
    assert "98.00 before, 95.00 after" in general_warning(fallen)
