"""The lengths of runs: what rows are good for, which routes continue, and that a budget of steps is kept."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sentloom.data.shapes import Shape
from sentloom.engine.building import stage
from sentloom.fitting.bases import Resources, WriterResource
from sentloom.fitting.lengths import (
    LEAST_STEPS,
    Extent,
    Round,
    cost,
    field_sizes,
    fits_in_steps,
    most_steps,
    rounds_of_steps,
    rounds_of_time,
)
from sentloom.fitting.routes import SCHEDULE, TrainsOn, find_routes
from sentloom.fitting.training_sets import TrainingSet

RESOURCES = Resources("embedded", pooling="mean", dropout=0.1, translator=None, writer=WriterResource("writer"))


def routes_on(*shapes, rows=10_000):
    """The routes for files of these shapes, by name."""
    routes, _ = find_routes([TrainingSet(shape, rows, (f"{shape}.tsv",), "en") for shape in shapes], RESOURCES)
    return {route.name: route for route in routes}


def test_half_of_the_routes_continue_until_one_is_left():
    assert [field_sizes(routes) for routes in (1, 2, 3, 4, 5, 8)] == [
        *([1, 1], [2, 1], [3, 2, 1], [4, 2, 1], [5, 3, 2, 1], [8, 4, 2, 1])
    ]


@pytest.mark.parametrize(
    ("shape", "rows", "steps"),
    [
        (Shape.PAIRS, 40, 50),  # ten epochs of five
        (Shape.PAIRS, 100, 60),
        (Shape.CLASSIFICATION, 160, 60),  # three epochs
        (Shape.PAIRS, 8000, 3000),
        (Shape.TEXTS, 40, 5),
        (Shape.PARALLEL, 80, 100),
    ],
)
def test_few_labelled_rows_are_seen_more_often(shape, rows, steps):
    assert most_steps(stage("contrastive", name="learn", data="faq.tsv", batch=8), shape, rows) == steps


def test_stages_share_the_time_and_have_their_own_epochs():
    route = routes_on(Shape.TEXTS, Shape.PAIRS)["simcse, then pairs"]
    extent = Extent.of(route, route.trains_on)
    assert extent.weights == (1, 2)
    assert extent.most == (10_000 // 64, 3 * 10_000 // 32)  # one epoch of raw text, three of pairs
    assert extent.decays == (SCHEDULE["decay"],)  # the second stage does not start from the base


def test_a_longer_run_pays_only_for_what_the_shorter_one_did_not_train():
    extent = Extent((1000, 1000), (1, 1), (0.25,))
    assert extent.cost((30, 20), ()) == 50
    assert extent.cost((90, 60), (30, 20)) == 90 - 0.75 * 30 + 60  # the second stage starts from another encoder
    assert extent.cost((30, 20), (30, 20)) == 0  # the same run


def test_a_budget_of_steps_is_shared_by_all_runs():
    rounds = rounds_of_steps({name: Extent((10_000,), (2,)) for name in "abcd"}, 1900)  # 4 x 1, 2 x 3, 1 x 9: 19 units
    assert [planned.steps["a"] for planned in rounds] == [(100,), (300,), (900,)]
    assert [(planned.runs, planned.keep) for planned in rounds] == [(4, 2), (2, 1), (1, 0)]
    # 4 x 1, 2 x (3 - 0.75), 1 x (9 - 2.25): 15.25 units
    going_on = {name: Extent((10_000,), (2,), (0.25,)) for name in "abcd"}
    assert [planned.steps["a"] for planned in rounds_of_steps(going_on, 1525)] == [(100,), (300,), (900,)]


def test_rounds_in_which_nothing_would_be_longer_do_not_take_place():
    short = Extent((30,), (2,))
    assert [planned.steps["a"] for planned in rounds_of_steps({"a": short}, 400)] == [(30,)]
    both = rounds_of_steps({"a": short, "b": Extent((90,), (2,))}, 4000)
    assert [planned.steps for planned in both] == [{"a": (30,), "b": (90,)}]


def test_routes_fit_if_each_has_a_few_steps_in_the_first_round():
    """Three routes have 3 + 2 x 3 + 9 = 18 units, here of ten steps."""
    extents = {name: Extent((1000,), (2,)) for name in "abc"}
    assert fits_in_steps(extents, 180)
    assert not fits_in_steps(extents, 179)


def test_a_stage_with_few_rows_is_not_asked_for_more_steps_than_makes_sense():
    """Ten steps of a stage that has a third are 30 of its route; of two steps, six, and 15 of the other stage."""
    extents = {"one": Extent((1000,), (2,)), "two": Extent((2, 1000), (1, 2))}
    assert fits_in_steps(extents, 15 + 12 + 45)
    assert not fits_in_steps({**extents, "two": Extent((10, 1000), (1, 2))}, 15 + 12 + 45)


extents = st.dictionaries(
    st.sampled_from("abcdefg"),
    st.tuples(st.lists(st.tuples(st.integers(1, 900), st.integers(1, 2)), min_size=1, max_size=3), st.booleans()),
    min_size=1,
    max_size=5,
).map(
    lambda routes: {
        name: Extent(*map(tuple, zip(*stages, strict=True)), (0.25,) if going_on else ())
        for name, (stages, going_on) in routes.items()
    }
)


def lengths_for(extents, amount):
    """Rounds whose first runs have this many steps, shared by weight: computed as one would by hand."""
    sizes = field_sizes(len(extents))
    return [
        Round(
            {
                name: tuple(
                    max(min(int(amount * 3**at * weight / sum(extent.weights) + 1e-6), most), min(LEAST_STEPS, most))
                    for weight, most in zip(extent.weights, extent.most, strict=True)
                )
                for name, extent in extents.items()
            },
            runs,
            0,
        )
        for at, runs in enumerate(sizes)
    ]


@given(extents, st.integers(1, 3000))
def test_the_longest_rounds_that_fit_are_found(extents, steps):
    """The oracle tries ever longer first runs, in small fractions of a step."""
    rounds = rounds_of_steps(extents, steps)
    fitting = [low for low in range(0, 2 * steps * 27 + 1, 9) if cost(lengths_for(extents, low / 54), extents) <= steps]
    best = lengths_for(extents, max(fitting, default=0) / 54)
    assert cost(rounds, extents) >= cost(best, extents) - 1e-6
    assert cost(rounds, extents) <= steps or not fitting
    for name in extents:
        lengths = [planned.steps[name] for planned in rounds]
        assert lengths == sorted(lengths)


def test_with_a_time_budget_all_routes_run_and_then_the_best():
    two = {"a": Extent((300,), (2,)), "b": Extent((10, 40), (1, 2))}
    steps = {"a": (300,), "b": (10, 40)}
    assert rounds_of_time(two) == (Round(steps, 2, 1), Round(steps, 1, 0))
    assert rounds_of_time({"a": two["a"]}) == (Round({"a": (300,)}, 1, 0),)


def test_what_a_route_learns_from_is_what_it_says():
    assert Extent.of(routes_on(Shape.PAIRS)["pairs"], (TrainsOn(Shape.PAIRS, 320),)).most == (60,)
