"""The budget: which routes continue, and that lengths keep to it."""

from hypothesis import given
from hypothesis import strategies as st

from sentloom.fitting.budget import LEAST_STEPS, Pace, affordable, field_sizes, rungs
from sentloom.fitting.request import Budget


def test_half_of_the_routes_continue_until_one_is_left():
    assert [field_sizes(routes) for routes in (1, 2, 3, 4, 5, 8)] == [
        *([1], [2, 1], [3, 2, 1], [4, 2, 1], [5, 3, 2, 1], [8, 4, 2, 1])
    ]


def test_two_routes_in_a_hundred_seconds():
    """5 units: two runs of one and a run of three. Scoring takes 5 s for each of three runs and the base's two."""
    paces = {"a": Pace((0.5,), (1000,), (1.0,)), "b": Pace((1.0, 0.25), (1000, 1000), (0.5, 0.5))}
    first, last = rungs(paces, Budget(100, None), scoring=5.0)
    assert (first.runs, first.keep, last.runs, last.keep) == (2, 1, 1, 0)
    assert first.steps == {"a": (30,), "b": (LEAST_STEPS, 30)}  # 15 s each: b has 7.5 s for 7 steps, which are too few
    assert last.steps == {"a": (90,), "b": (22, 90)}


def test_views_are_taken_off_the_time_and_the_data_bound_the_steps():
    (only,) = rungs({"a": Pace((0.1,), (70,), (1.0,), once=40.0)}, Budget(100, None), scoring=0.0)
    assert only.steps == {"a": (70,)}
    (only,) = rungs({"a": Pace((1.0,), (7000,), (1.0,), once=40.0)}, Budget(100, None), scoring=0.0)
    assert only.steps == {"a": (60,)}


def test_a_budget_of_steps_is_shared_by_all_runs():
    paces = {name: Pace((1.0,), (10_000,), (1.0,)) for name in "abcd"}
    found = rungs(paces, Budget(None, 1900), scoring=100.0)  # 4 x 1, 2 x 3, 1 x 9: 19 units
    assert [rung.steps["a"] for rung in found] == [(100,), (300,), (900,)]
    assert sum(rung.runs * rung.steps["a"][0] for rung in found) == 1900


def test_the_most_expensive_routes_are_skipped_if_there_is_no_time_for_all():
    """Of 100 s, 20 units for four routes would be 5 s a run: ten steps at 0.5 s, not at 1 s. Of two routes, 5 units."""
    paces = {name: Pace((rate,), (1000,), (1.0,)) for name, rate in (("c", 2.1), ("a", 0.1), ("d", 4.0), ("b", 1.0))}
    assert affordable(paces, Budget(100, None), 0.0) == ["a", "b"]
    assert affordable(paces, Budget(1000, None), 0.0) == ["a", "b", "c", "d"]
    assert affordable(paces, Budget(1, None), 0.0) == ["a"]
    assert affordable(paces, Budget(None, 190), 0.0) == ["c", "a", "d", "b"]  # of equals as given, whatever the clock
    assert affordable(paces, Budget(None, 179), 0.0) == ["c", "a"]


def test_what_takes_few_stages_goes_before_what_takes_many():
    """Ten steps of each stage: 10 of one, 20 of two, 50 where one has a fifth; in seconds a step decides as well."""
    paces = {
        "three": Pace((0.1, 0.2, 0.2), (1000,) * 3, (0.2, 0.4, 0.4)),
        "two": Pace((0.5, 0.5), (1000,) * 2, (0.5, 0.5)),
        "one": Pace((0.9,), (1000,), (1.0,)),
    }
    assert affordable(paces, Budget(None, 100), 0.0) == ["one", "two"]  # 20 steps a run; of three routes, 5
    assert affordable(paces, Budget(10_000, None), 0.0) == ["three", "one", "two"]  # 5 s, 9 s, 10 s


def test_a_stage_with_few_rows_is_not_asked_for_more_steps_than_makes_sense():
    paces = {"one": Pace((1.0,), (1000,), (1.0,)), "two": Pace((1.0, 1.0), (2, 1000), (0.2, 0.8))}
    assert affordable(paces, Budget(None, 63), 0.0) == ["one", "two"]  # 12.6 steps a run: 2.5 and 10.08
    assert affordable(paces, Budget(None, 62), 0.0) == ["one"]


@given(
    st.lists(st.tuples(st.floats(0.01, 5), st.integers(1, 5000)), min_size=1, max_size=9),
    st.floats(60, 7200),
    st.floats(0, 20),
)
def test_lengths_rise_and_the_time_is_kept(routes, seconds, scoring):
    paces = {str(number): Pace((rate,), (most,), (1.0,)) for number, (rate, most) in enumerate(routes)}
    found = rungs(paces, Budget(seconds, None), scoring)
    for name, pace in paces.items():
        lengths = [rung.steps[name][0] for rung in found]
        assert lengths == sorted(lengths)
        assert all(min(LEAST_STEPS, pace.most[0]) <= length <= pace.most[0] for length in lengths)
    longest = [
        sum(sorted((rung.steps[name][0] * paces[name].seconds[0] for name in paces), reverse=True)[: rung.runs])
        for rung in found
    ]
    floor = sum(rung.runs for rung in found) * LEAST_STEPS * max(rate for rate, _ in routes)
    assert sum(longest) <= seconds + floor
