"""The plan: what the budget bears, kept for the same inputs and made anew for others, each run a recipe that is read."""

import json

import pytest

from sentloom.data.shapes import Shape
from sentloom.fitting.budget import Budget, Pace
from sentloom.fitting.plan import (
    FEWEST_MADE,
    FitPlan,
    Rates,
    bearable,
    bearable_routes,
    make_plan,
    pace_of,
    read_plan,
    write_recipe,
)
from sentloom.fitting.routes import Resources, SkippedRoute, TrainingSet, find_routes
from sentloom.pipeline.recipe import read_recipe

MEANS = Resources(pooling="mean", dropout=0.1, translator=None, synthesizer=None, mined="mined.parquet")


def routes_of(*shapes, rows=10_000):
    found, _ = find_routes([TrainingSet(shape, rows, (f"{shape}.tsv",), "en") for shape in shapes], MEANS)
    return {route.name: route for route in found}


def test_a_fifth_of_the_time_is_for_what_is_made_first():
    route = routes_of(Shape.TEXTS)["bootstrapped"]
    shorter, why_not = bearable(route, Budget(200, None), Rates(views=25.0, mined=1.0, written=1.0))
    assert why_not is None
    assert shorter.views == 1000  # 40 s of 200
    assert shorter.stages[0]["data_share"] == 0.1
    assert shorter.rows == (1000,)  # an epoch is what there are views of
    whole, _ = bearable(route, Budget(20_000, None), Rates(views=25.0, mined=1.0, written=1.0))
    assert (whole.views, whole.stages[0]["data_share"]) == (10_000, 1.0)
    _, why_not = bearable(route, Budget(20, None), Rates(views=25.0, mined=1.0, written=1.0))
    assert why_not == f"the budget has time for 100 back-translations, and {FEWEST_MADE} are wanted"


def test_pairs_that_negatives_are_looked_for():
    routes = [*routes_of(Shape.PAIRS).values()]
    opened, closed = bearable_routes(routes, Budget(100, None), Rates(views=1.0, mined=200.0, written=1.0))
    assert [route.mined for route in opened] == [0, 4000]
    assert closed == []
    opened, closed = bearable_routes(routes, Budget(100, None), Rates(views=1.0, mined=2.0, written=1.0))
    assert [route.name for route in opened] == ["pairs"]
    assert [one.name for one in closed] == ["pairs with mined negatives"]


def test_sentences_that_a_synthesizer_writes_for():
    means = Resources(pooling="mean", dropout=0.0, translator="none", synthesizer="writer", mined="")
    (route,) = find_routes([TrainingSet(Shape.TEXTS, 10_000, ("texts.tsv",), "en")], means)[0]
    shorter, _ = bearable(route, Budget(100, None), Rates(views=1.0, mined=1.0, written=20.0))
    assert [stage.get("rows") for stage in shorter.stages] == [400, None]
    assert shorter.rows == (400,)
    assert pace_of(shorter, (0.5,), Rates(1.0, 1.0, 20.0)).once == 20


def test_what_a_route_costs():
    route = routes_of(Shape.TEXTS, Shape.PAIRS)["simcse, then pairs"]
    pace = pace_of(route, (0.5, 0.25), Rates(1.0, 1.0, 1.0))
    assert pace.shares == pytest.approx((1 / 3, 2 / 3))
    assert pace.most == (10_000 // 64, 3 * 10_000 // 64)  # one epoch of raw text, three of pairs
    assert pace.once == 0


def test_a_plan_is_kept_for_the_same_inputs_alone(tmp_path):
    routes = [*routes_of(Shape.PAIRS).values()]
    paces = {"pairs": Pace((0.5,), (100,), (1.0,)), "pairs with mined negatives": Pace((9.0,), (100,), (1.0,))}
    plan = make_plan({"data": ["a"]}, routes, [SkippedRoute("simcse", "no text")], paces, Budget(30, None), 0.0)
    assert [route.name for route in plan.routes] == ["pairs"]
    assert [one.name for one in plan.closed] == ["simcse", "pairs with mined negatives"]
    path = tmp_path / "plan.json"
    assert read_plan(path, {"data": ["a"]}) is None
    plan.write(path)
    assert read_plan(path, {"data": ["a"]}) == plan
    assert read_plan(path, {"data": ["b"]}) is None
    path.write_text(json.dumps({"inputs": {"data": ["a"]}}))
    assert read_plan(path, {"data": ["a"]}) is None  # of an older form


def test_every_run_is_a_recipe(tmp_path):
    for route in routes_of(Shape.TEXTS, Shape.PARALLEL, Shape.PAIRS, Shape.TRIPLETS).values():
        steps = [40 + number for number in range(len(route.shapes))]
        plan = read_recipe(write_recipe(route, steps, "embedded", 7, tmp_path / "run.yaml")).resolve()
        assert [stage.settings.steps for stage in plan.training] == steps
        assert (plan.base, plan.seeds) == ("embedded", (7,))
        assert plan.training[0].settings.log_every == 2


def test_a_plan_finds_its_routes(tmp_path):
    (first, *_) = routes_of(Shape.PAIRS).values()
    assert FitPlan({}, (first,), (), {}, 0.0, ()).route("pairs") is first
