"""The plan in words."""

from sentloom.fitting.budget import Pace, Rung
from sentloom.fitting.fit import plan_lines, race_cost
from sentloom.fitting.plan import FitPlan
from sentloom.fitting.prepare import Prepared
from sentloom.fitting.request import Budget
from tests.fitting.test_request import request


def test_a_budget_below_the_fewest_steps_is_raised_and_said(tmp_path):
    lengths = (Rung({"pairs": (10,), "both": (10, 10)}, 2, 1), Rung({"pairs": (10,), "both": (12, 10)}, 1, 0))
    paces = {"pairs": Pace((1.0,), (99,), (1.0,)), "both": Pace((1.0, 1.0), (99, 99), (0.5, 0.5))}
    plan = FitPlan({}, (), (), paces, 0.0, lengths)
    assert race_cost(plan, Budget(None, 6)) == 10 + 20 + 22
    prepared = Prepared((), (), (), (), (), (), (), None)
    lines = [" ".join(plan_lines(plan, prepared, request(budget=budget))) for budget in ("6steps", "52steps")]
    said = "52 steps run, more than the budget of 6: a stage trains for at least 10 steps"
    assert [said in line for line in lines] == [True, False]


def test_a_time_that_is_too_short_is_said():
    """Ten steps of two seconds, and five for the rest."""
    plan = FitPlan({}, (), (), {"pairs": Pace((2.0,), (99,), (1.0,))}, 0.0, (Rung({"pairs": (10,)}, 1, 0),), ending=5.0)
    prepared = Prepared((), (), (), (), (), (), (), None)
    lines = [" ".join(plan_lines(plan, prepared, request(budget=budget))) for budget in ("24s", "25s")]
    said = "that is more than the budget of 24 s: a stage trains for at least 10 steps"
    assert [said in line for line in lines] == [True, False]
    assert all("about 20 s for these runs, 5.0 s for merging" in line for line in lines)
