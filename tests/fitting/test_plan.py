"""The plan: stored for the same inputs, and made again for others; and the fit under way that follows it."""

import json
import time
from dataclasses import replace

import pytest

from sentloom.data.shapes import Shape
from sentloom.fitting.lengths import Extent, Round
from sentloom.fitting.plan import FitPlan, read_plan
from sentloom.fitting.routes import SkippedRoute
from sentloom.progress import progress
from tests.fitting.small_job import job_in, still
from tests.fitting.test_lengths import routes_on

PAIRS = routes_on(Shape.PAIRS)["pairs"]


def test_a_plan_is_stored_for_the_same_inputs_only(tmp_path):
    skipped = (SkippedRoute("simcse", "no text"),)
    rounds = (Round({"pairs": (300,)}, 1, 0),)
    plan = FitPlan({"data": ["a"]}, (PAIRS,), skipped, {"pairs": Extent((300,), (2,))}, rounds)
    plan = plan.with_length("pairs, round 1", "pairs", 80)
    path = tmp_path / "plan.json"
    assert read_plan(path, {"data": ["a"]}) is None
    plan.write(path)
    assert read_plan(path, {"data": ["a"]}) == plan
    assert read_plan(path, {"data": ["b"]}) is None
    path.write_text(json.dumps({"inputs": {"data": ["a"]}}))
    assert read_plan(path, {"data": ["a"]}) is None  # of an older form


def test_every_kind_of_stage_is_read_as_it_was_written(tmp_path):
    joined = ("queries, then pairs", "synthetic, then pairs", "pairs with mined negatives")
    routes = [routes_on(Shape.TEXTS, Shape.PAIRS, rows=900)[name] for name in joined]
    plan = FitPlan({}, (*routes, routes_on(Shape.TEXTS)["bootstrapped"]), ())
    plan.write(tmp_path / "plan.json")
    assert read_plan(tmp_path / "plan.json", {}) == plan


def test_a_plan_finds_its_routes_and_the_next_one_takes_the_place_of_one():
    first, second, third = (replace(PAIRS, name=name) for name in ("first", "second", "third"))
    plan = FitPlan({}, (first, second), (), spare=(third,))
    assert plan.route("first") is first
    after = plan.without(SkippedRoute("first", "too little"))
    assert (after.routes, after.spare, after.skipped) == ((second, third), (), (SkippedRoute("first", "too little"),))


def test_lengths_of_several_stages_of_one_training_are_kept_together():
    plan = FitPlan({}, (), ()).with_length("a, round 1", "first", 10).with_length("a, round 1", "second", 20)
    assert plan.with_length("b, round 1", "first", 5).lengths == {
        "a, round 1": {"first": 10, "second": 20},
        "b, round 1": {"first": 5},
    }


def test_a_change_is_on_disk_and_what_is_given_up_is_said(tmp_path):
    said = []
    job = job_in(tmp_path, log=said.append)
    job.give_up("nothing is merged", replace(job.plan, merges=0))
    job.warn("The token limit was reached.")
    assert said == ["Out of time: nothing is merged", "The token limit was reached."]
    assert read_plan(tmp_path / "model.fit/plan.json", {}) == job.plan
    assert (job.plan.changes, job.plan.warnings) == (("nothing is merged",), ("The token limit was reached.",))


def slowly():
    """Work of a tenth of a second that reports how far it is."""
    with progress("working", 10, "parts", False) as advance:
        for _ in range(10):
            time.sleep(0.01)
            advance(1)
    return "measured"


def test_what_only_informs_is_given_up_when_the_budget_ends_and_a_resumed_fit_does_the_same(tmp_path):
    job = job_in(tmp_path, clock=still(60.0, gone=58.0))
    assert job.if_time("general ability", slowly) is None
    assert job.plan.measured == {"general ability": False}
    assert job.plan.changes == ("general ability is not measured",)
    resumed = job_in(tmp_path, read_plan(tmp_path / "model.fit/plan.json", {}), still(60.0))
    assert resumed.if_time("general ability", slowly) is None
    assert resumed.if_time("the effect of merging", slowly) == "measured"
    late = job_in(tmp_path, resumed.plan, still(60.0, gone=60.0))
    assert late.if_time("the effect of merging", slowly) == "measured"  # as before the kill


@pytest.mark.parametrize(("seconds", "known"), [(None, {}), (60.0, {"a": True})])
def test_nothing_is_given_up_while_there_is_time(tmp_path, seconds, known):
    job = job_in(tmp_path, clock=still(seconds))
    assert (job.if_time("a", slowly), job.plan.changes, job.plan.measured) == ("measured", (), known)
