"""The plan: stored for the same inputs, and made again for others; nothing is mined in vain."""

import json
from dataclasses import replace

import pytest

from sentloom.data.shapes import Shape
from sentloom.fitting.budget import Rung
from sentloom.fitting.clock import Clock
from sentloom.fitting.plan import (
    FitPlan,
    affordable_merges,
    choose_routes,
    read_plan,
    with_lengths,
)
from sentloom.fitting.request import Budget
from sentloom.fitting.routes import SkippedRoute
from tests.fitting.test_costs import timed


def test_rounds_in_which_nothing_would_be_longer_are_not_announced():
    short, long = {"a": (30,), "b": (30,)}, {"a": (30,), "b": (90,)}
    for steps, rounds in (((short, long), 2), ((short, short), 1), ((short, long, long), 2), ((), 0)):
        assert replace(planned([]), rungs=tuple(Rung(step, 2, 1) for step in steps)).rounds == rounds


def still(seconds):
    """A clock that stands still, however slow the machine is."""
    return Clock(seconds, started=0.0, now=lambda: 0.0)


def planned(routes, **values):
    chosen, paces = tuple(route.route for route in routes), {route.route.name: route.pace for route in routes}
    return FitPlan({"data": ["a"]}, chosen, (SkippedRoute("simcse", "no text"),), paces, 1.0, (), **values)


def test_a_plan_is_stored_for_the_same_inputs_only(tmp_path):
    routes = [timed("pairs", Shape.PAIRS), timed("pairs with mined negatives", Shape.PAIRS, step=9.0)]
    plan = with_lengths(planned(routes, changes=("a run is shorter",)), Budget(300, None), still(300.0))
    assert [rung.runs for rung in plan.rungs] == [2, 1]
    path = tmp_path / "plan.json"
    assert read_plan(path, {"data": ["a"]}) is None
    plan.write(path)
    assert read_plan(path, {"data": ["a"]}) == plan
    assert read_plan(path, {"data": ["b"]}) is None
    path.write_text(json.dumps({"inputs": {"data": ["a"]}}))
    assert read_plan(path, {"data": ["a"]}) is None  # of an older form


class OneByOne:
    """A timer that knows what each route takes, on a clock that each measurement moves by a good ten seconds."""

    def __init__(self, clock, *known):
        self.clock, self.known, self.asked = clock, {route.route.name: route for route in known}, []

    def time(self, route):
        self.asked.append(route.name)
        self.clock.started -= 10.1
        return self.known[route.name]


def choose(budget, *known):
    clock = still(budget.seconds)
    timer = OneByOne(clock, *known)
    chosen, skipped = choose_routes([route.route for route in known], timer, budget, 0.0, clock, lambda line: None)
    return [choice.route.name for choice in chosen], {skip.name: skip.why for skip in skipped}, timer.asked


FIRST, SECOND, THIRD = "pairs", "pairs with mined negatives", "simcse, then pairs"


def routes_at(*steps):
    both = (Shape.TEXTS, Shape.PAIRS)
    names = (FIRST, SECOND, THIRD)
    return [timed(name, *both, step=step, made_per_second=1e6) for name, step in zip(names, steps, strict=True)]


def test_routes_are_timed_in_order_while_there_is_time_for_planning():
    """A tenth of 300 s is 30 s: three measurements of ten seconds; of 200 s, it is 30 s as well."""
    assert choose(Budget(300, None), *routes_at(0.1, 0.1, 0.1))[0] == [FIRST, SECOND, THIRD]
    chosen, skipped, asked = choose(Budget(100, None), *routes_at(0.01, 0.01, 0.01))  # a fifth: 20 s
    assert chosen == asked == [FIRST, SECOND]
    assert skipped == {THIRD: "the time for planning was used up before it could be measured"}


def test_what_is_too_expensive_is_skipped_and_no_other_is_timed_where_there_is_no_time():
    chosen, skipped, asked = choose(Budget(300, None), *routes_at(0.1, 9.0, 0.1))
    assert (chosen, len(asked)) == ([FIRST, THIRD], 3)
    assert skipped == {SECOND: "the budget has no time for it besides those that are tried"}
    chosen, skipped, asked = choose(Budget(300, None), *routes_at(9.0, 0.1, 0.1))
    assert (chosen, asked) == ([FIRST], [FIRST])  # ten steps of 9 s twice, and thirty
    assert set(skipped.values()) == {"the budget has no time for another route"}


def test_a_budget_in_steps_does_not_ask_the_clock():
    assert choose(Budget(None, 2000), *routes_at(0.1, 9.0, 99.0))[0] == [FIRST, SECOND, THIRD]
    assert affordable_merges(100.0, Budget(None, 400)) == 5
    assert [affordable_merges(4.0, Budget(seconds, None)) for seconds in (30, 100, 1000)] == [0, 2, 5]


def test_the_time_of_the_end_and_of_a_second_seed_is_set_aside():
    plan = planned([timed("pairs", Shape.PAIRS, rows=10**6, step=1.0)], ending=50.0)
    clock = still(204.0)
    assert with_lengths(plan, Budget(204, None), clock).rungs[0].steps["pairs"] == (50,)  # and 150
    lengthened = with_lengths(plan, Budget(204, None), clock, again=True)
    assert lengthened.ending == pytest.approx(50 + 50)  # as long as the first round would be
    assert 33 <= lengthened.rungs[0].steps["pairs"][0] <= 34


def test_every_kind_of_stage_is_read_as_it_was_written(tmp_path):
    joined = ("queries, then pairs", "synthetic, then pairs", "pairs with mined negatives")
    routes = [timed(name, Shape.TEXTS, Shape.PAIRS, rows=900).route for name in joined]
    routes.append(timed("bootstrapped", Shape.TEXTS).route)
    plan = FitPlan({}, tuple(routes), (), {}, 0.0, ())
    plan.write(tmp_path / "plan.json")
    assert read_plan(tmp_path / "plan.json", {}) == plan


def test_a_plan_finds_its_routes():
    first = timed("pairs", Shape.PAIRS).route
    assert FitPlan({}, (first,), (), {}, 0.0, ()).route("pairs") is first
