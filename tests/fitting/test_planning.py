"""Planning: how many routes race, and the plan in words."""

from dataclasses import replace

import pytest

from sentloom.data.shapes import Shape
from sentloom.errors import InputError
from sentloom.fitting.fit import plan_lines
from sentloom.fitting.lengths import Extent, Round
from sentloom.fitting.plan import FitPlan
from sentloom.fitting.planning import NO_STEPS, NO_TIME, _with_routes, with_rounds
from sentloom.fitting.prepare import Prepared
from sentloom.fitting.request import Budget
from sentloom.fitting.routes import SkippedRoute
from tests.fitting import small_base
from tests.fitting.small_job import job_in, still
from tests.fitting.test_lengths import routes_on

PREPARED = Prepared((), (), (), (), (), (), (), None)


def plain_routes(folder, *names):
    """Routes that learn from a file of 40 pairs."""
    (learn,) = routes_on(Shape.PAIRS)["pairs"].stages
    learn = learn.model_copy(update={"data": (str(small_base.pairs(folder / "faq.tsv", 40)),)})
    return [replace(routes_on(Shape.PAIRS)["pairs"], name=name, stages=(learn,)) for name in names]


def test_with_a_time_budget_the_first_routes_race_and_the_others_wait(tmp_path):
    routes = plain_routes(tmp_path, "a", "b", "c")
    for budget, racing in (("2m", 1), ("10m", 2), ("12m", 3)):
        job = job_in(tmp_path, budget=budget)
        plan = _with_routes(FitPlan({}, (), ()), routes, job, Budget(60.0, None))
        assert (list(plan.routes), list(plan.spare)) == (routes[:racing], routes[racing:])
    plan = replace(plan, routes=tuple(routes[:1]), spare=tuple(routes[1:]), extents={"a": Extent((99,), (2,))})
    done = with_rounds(plan, Budget(60.0, None))
    assert done.rounds == (Round({"a": (99,)}, 1, 0),)
    assert done.skipped == tuple(SkippedRoute(name, NO_TIME, for_time=True) for name in ("b", "c"))
    assert "one route races for every 4 minutes" in NO_TIME


def test_with_a_budget_in_steps_as_many_routes_race_as_have_a_few_steps_each(base, tmp_path):
    """Ten steps of each of two routes, and thirty of one: 47 and more, as 3 of every 10 are not repeated."""
    routes, job = plain_routes(tmp_path, "a", "b"), job_in(tmp_path, base=(str(base),))
    both = _with_routes(FitPlan({}, (), ()), routes, job, Budget(None, 50))
    assert [route.name for route in both.routes] == ["a", "b"]
    few = _with_routes(FitPlan({}, (), ()), routes, job, Budget(None, 40))
    assert [route.name for route in few.routes] == ["a"]
    assert few.skipped == (SkippedRoute("b", NO_STEPS, for_time=True),)


def test_a_fit_without_any_route_says_why():
    plan = FitPlan({}, (), (SkippedRoute("queries", "there is no writer"),))
    with pytest.raises(InputError, match="queries: there is no writer"):
        with_rounds(plan, Budget(None, 10))


def test_a_budget_below_the_fewest_steps_is_raised_and_said(tmp_path):
    lengths = (Round({"pairs": (10,), "both": (10, 10)}, 2, 1), Round({"pairs": (10,), "both": (12, 10)}, 1, 0))
    extents = {"pairs": Extent((99,), (2,)), "both": Extent((99, 99), (1, 1))}
    plan = FitPlan({}, (), (), extents, lengths)
    lines = [" ".join(plan_lines(job_in(tmp_path, plan, budget=budget), PREPARED)) for budget in ("6steps", "52steps")]
    said = "52 steps run, more than the budget of 6: a stage trains for at least 10 steps"
    assert [said in line for line in lines] == [True, False]


def test_the_rule_of_a_time_budget_and_its_shares_are_said(tmp_path):
    (route,) = plain_routes(tmp_path, "a")
    plan = FitPlan({}, (route,), ())
    alone = list(plan_lines(job_in(tmp_path, plan, still(120.0)), PREPARED))
    assert "  one route races for every 4 minutes of the budget: 1 route races" in alone
    assert "  it trains for 1.9 min" in alone
    two = replace(plan, routes=(route, replace(route, name="b")))
    shared = list(plan_lines(job_in(tmp_path, two, still(605.0)), PREPARED))
    assert "  they share the first half of 10 min equally, and the best one continues with the second half" in shared
