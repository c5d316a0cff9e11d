"""The budget: which routes continue, and that lengths keep to it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sentloom.fitting.budget import (
    LEAST_STEPS,
    Pace,
    affordable,
    field_sizes,
    most_expensive,
    round_costs,
    run_cost,
    rungs,
)
from sentloom.fitting.request import Budget


def test_half_of_the_routes_continue_until_one_is_left():
    assert [field_sizes(routes) for routes in (1, 2, 3, 4, 5, 8)] == [
        *([1, 1], [2, 1], [3, 2, 1], [4, 2, 1], [5, 3, 2, 1], [8, 4, 2, 1])
    ]


def test_two_routes_in_a_hundred_seconds():
    """Two runs of one unit and a run of three, each with 5 s besides: 85 s for 5 units of 17 s."""
    paces = {
        "a": Pace((0.5,), (1000,), (1.0,), per_run=5.0),
        "b": Pace((1.0, 0.25), (1000,) * 2, (0.5, 0.5), per_run=5.0),
    }
    first, last = rungs(paces, Budget(100, None))
    assert (first.runs, first.keep, last.runs, last.keep) == (2, 1, 1, 0)
    assert first.steps["a"][0] in (31, 32, 33)  # b has 7 s for its first stage, which has at least ten steps
    assert first.steps["b"][0] == LEAST_STEPS
    assert last.steps["a"][0] == pytest.approx(3 * first.steps["a"][0], abs=3)
    costs = [most_expensive(round_costs((first, last), at, paces, Budget(100, None)), rung.runs)
             for at, rung in enumerate((first, last))]  # fmt: skip
    assert 97 < sum(costs) <= 100


def test_a_longer_run_pays_only_for_what_the_shorter_one_did_not_train():
    pace = Pace((0.5, 1.0), (1000,) * 2, (0.5, 0.5), once=7.0, per_run=2.0, decays=(0.25,))
    assert pace.fresh((90, 60), (30, 20)) == [90 - 0.75 * 30, 60]  # the second stage starts from another encoder
    assert run_cost(pace, (30, 20), None, Budget(1, None)) == 7 + 2 + 15 + 20
    assert run_cost(pace, (90, 60), (30, 20), Budget(1, None)) == 2 + 0.5 * 67.5 + 60
    assert run_cost(pace, (90, 60), (30, 20), Budget(None, 1)) == 67.5 + 60
    assert run_cost(pace, (30, 20), (30, 20), Budget(1, None)) == 0  # the same run


def test_views_are_taken_off_the_time_and_the_data_bound_the_steps():
    *_, last = rungs({"a": Pace((0.1,), (70,), (1.0,), once=40.0)}, Budget(100, None))
    assert last.steps == {"a": (70,)}
    first, last = rungs({"a": Pace((1.0,), (7000,), (1.0,), once=40.0)}, Budget(140, None))
    assert (first.steps, last.steps) == ({"a": (25,)}, {"a": (75,)})  # one unit and three


def test_a_single_route_runs_once_if_its_longest_run_would_be_short():
    """Of 60 steps, two rounds would leave the longer one 45; of as many as make sense, here 40, it gets all."""
    assert [rung.steps["a"] for rung in rungs({"a": Pace((1.0,), (7000,), (1.0,))}, Budget(60, None))] == [(60,)]
    assert [rung.steps["a"] for rung in rungs({"a": Pace((1.0,), (40,), (1.0,))}, Budget(60, None))] == [(20,), (40,)]
    assert [rung.steps["a"] for rung in rungs({"a": Pace((1.0,), (7000,), (1.0,))}, Budget(80, None))] == [(20,), (60,)]
    assert len(rungs({"a": Pace((1.0,), (7000,), (1.0,))}, Budget(None, 60))) == 2  # a number of steps knows no hurry


def test_a_budget_of_steps_is_shared_by_all_runs():
    paces = {name: Pace((1.0,), (10_000,), (1.0,), per_run=100.0) for name in "abcd"}
    rounds = rungs(paces, Budget(None, 1900))  # 4 x 1, 2 x 3, 1 x 9: 19 units
    assert [rung.steps["a"] for rung in rounds] == [(100,), (300,), (900,)]
    # 4 x 1, 2 x (3 - 0.75), 1 x (9 - 2.25): 15.25 units
    going_on = {name: Pace((1.0,), (10_000,), (1.0,), decays=(0.25,)) for name in "abcd"}
    assert [rung.steps["a"] for rung in rungs(going_on, Budget(None, 1525))] == [(100,), (300,), (900,)]


def test_routes_are_affordable_if_each_has_a_few_steps_in_the_first_round():
    """Three routes have 3 + 2 x 3 + 9 = 18 units, here of ten steps; of time, ten steps of c take 21 s: 378 s."""
    paces = {name: Pace((rate,), (1000,), (1.0,)) for name, rate in (("a", 0.1), ("b", 1.9), ("c", 2.1))}
    assert affordable(paces, Budget(None, 180))  # whatever the clock
    assert not affordable(paces, Budget(None, 179))
    assert affordable(paces, Budget(400, None))
    assert not affordable(paces, Budget(360, None))


def test_of_a_time_budget_the_longest_run_gets_enough_steps():
    """Two routes have 2 + 3 = 5 units; the longest has three, 60 steps at 1.9 s, so that a unit is 38 s."""
    paces = {name: Pace((rate,), (1000,), (1.0,)) for name, rate in (("a", 0.1), ("b", 1.9))}
    assert affordable(paces, Budget(191, None))
    assert not affordable(paces, Budget(185, None))
    few = {name: Pace((rate,), (30,), (1.0,)) for name, rate in (("a", 0.1), ("b", 1.9))}
    assert affordable(few, Budget(96, None))  # 30 steps are all that make sense


def test_a_stage_with_few_rows_is_not_asked_for_more_steps_than_makes_sense():
    """Ten steps of a stage that has a fifth are 50 of its route; of two steps, 10 are, and 12.5 of the other stage."""
    paces = {"one": Pace((1.0,), (1000,), (1.0,)), "two": Pace((1.0, 1.0), (2, 1000), (0.2, 0.8))}
    assert affordable(paces, Budget(None, 63))
    assert not affordable({**paces, "two": Pace((1.0, 1.0), (10, 1000), (0.2, 0.8))}, Budget(None, 63))


@given(
    st.lists(st.tuples(st.floats(0.01, 5), st.integers(1, 5000)), min_size=1, max_size=9),
    st.floats(60, 7200),
    st.floats(0, 20),
    st.booleans(),
)
def test_lengths_rise_and_the_time_is_kept(routes, seconds, scoring, going_on):
    decays = (0.25,) if going_on else ()
    paces = {
        str(number): Pace((rate,), (most,), (1.0,), per_run=scoring, decays=decays)
        for number, (rate, most) in enumerate(routes)
    }
    budget = Budget(seconds, None)
    rounds = rungs(paces, budget)
    for name, pace in paces.items():
        lengths = [rung.steps[name][0] for rung in rounds]
        assert lengths == sorted(lengths)
        assert all(min(LEAST_STEPS, pace.most[0]) <= length <= pace.most[0] for length in lengths)
    planned = sum(most_expensive(round_costs(rounds, at, paces, budget), rung.runs) for at, rung in enumerate(rounds))
    least = [rung.steps[name][0] == min(LEAST_STEPS, paces[name].most[0]) for name in paces for rung in rounds[:1]]
    assert planned <= seconds or any(least)  # too much only if the shortest sensible runs are
