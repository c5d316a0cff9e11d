"""The plan: stored for the same inputs, and made again for others; nothing is mined in vain."""

import json
from dataclasses import replace

from accelerate import Accelerator

from sentloom.data.shapes import Shape
from sentloom.fitting.costs import TimedRoute
from sentloom.fitting.plan import FitPlan, make_plan, read_plan, with_mined_rows
from sentloom.fitting.request import Budget
from sentloom.fitting.routes import SkippedRoute
from tests.fitting import small_base
from tests.fitting.test_costs import timed
from tests.fitting.test_request import request


def test_a_plan_is_stored_for_the_same_inputs_only(tmp_path):
    routes = [timed("pairs", Shape.PAIRS), timed("pairs with mined negatives", Shape.PAIRS, step=9.0)]
    plan = make_plan({"data": ["a"]}, routes, [SkippedRoute("simcse", "no text")], Budget(30, None), 0.0)
    assert [route.name for route in plan.routes] == ["pairs"]
    assert [one.name for one in plan.skipped] == ["simcse", "pairs with mined negatives"]
    path = tmp_path / "plan.json"
    assert read_plan(path, {"data": ["a"]}) is None
    plan.write(path)
    assert read_plan(path, {"data": ["a"]}) == plan
    assert read_plan(path, {"data": ["b"]}) is None
    path.write_text(json.dumps({"inputs": {"data": ["a"]}}))
    assert read_plan(path, {"data": ["a"]}) is None  # of an older form


def test_every_kind_of_stage_is_read_as_it_was_written(tmp_path):
    routes = [timed(name, Shape.TEXTS, Shape.PAIRS).route for name in
              ("bootstrapped, then pairs", "synthetic, then pairs", "pairs with mined negatives")]  # fmt: skip
    plan = FitPlan({}, tuple(routes), (), {}, 0.0, ())
    plan.write(tmp_path / "plan.json")
    assert read_plan(tmp_path / "plan.json", {}) == plan


def test_a_plan_finds_its_routes():
    first = timed("pairs", Shape.PAIRS).route
    assert FitPlan({}, (first,), (), {}, 0.0, ()).route("pairs") is first


def test_the_number_of_mined_negatives_bounds_the_run(tmp_path):
    base = small_base.build_base(tmp_path)
    asked = request(base=str(base), output=tmp_path / "model")
    for count, expected in ((150, 150), (90, 90)):
        data = small_base.pairs(tmp_path / f"faq-{count}.tsv", count)
        plain = timed("pairs with mined negatives", Shape.PAIRS, rows=count)
        mine, learn = plain.route.stages
        mine = mine.model_copy(update={"model": str(base), "data": (str(data),)})
        one = TimedRoute(replace(plain.route, stages=(mine, learn)), plain.forecasts, plain.trains_on)
        kept, skipped = with_mined_rows([one], asked, Accelerator(cpu=True), lambda line: None)
        if kept:
            found = kept[0].trains_on[0].rows
            assert 100 <= found <= expected
            assert kept[0].route.stages[1].settings.batch == found // 4
        else:
            assert count == 90
            assert skipped[0].why.endswith("pairs, and it needs 100")
