"""What the clock makes of a plan, with seconds worked out by hand."""

import math
from dataclasses import replace

import pytest

from sentloom.engine.building import stage
from sentloom.engine.plan import Plan
from sentloom.fitting.making import (
    at_most,
    fold_key,
    fold_limits,
    is_hopeless,
    limits,
    shortened,
    time_share,
    without_run,
)
from sentloom.fitting.routes import Route
from sentloom.progress import OutOfTime
from tests.fitting.test_race import PACE, plan_for


def test_a_run_gets_its_share_of_the_time_left():
    """Two runs of 20 s, then one of 40 s that repeats 5 of the 20: 65 s."""
    plan = plan_for("ab", [1, 0], PACE)
    assert time_share(plan, 0, "ab", 130.0) == 40
    assert time_share(plan, 0, "b", 90.0) == 40
    assert time_share(plan, 1, "b", 50.0) == 50


def test_the_decay_begins_when_the_share_is_used_up():
    """Of 20 steps 15 are before the decay; of 40 that continue 15 others, 15 more are."""
    plan = plan_for("ab", [1, 0], PACE)
    assert limits(plan, "a", 0, 20.0) == {"a": 15}
    assert limits(plan, "a", 0, 10.0) == {"a": 7.5}
    assert limits(plan, "a", 0, -3.0) == {"a": 5}  # at least five seconds for up to ten steps
    slow, fast = (plan_for("ab", [1, 0], replace(PACE, seconds=(seconds,))) for seconds in (9.0, 0.1))
    assert [limits(plan, "a", 0, -3.0)["a"] for plan in (slow, fast)] == [5, 1]  # at most those of ten steps
    assert limits(plan, "a", 1, 25.0) == {"a": 15}


def test_what_is_computed_before_the_first_step_is_part_of_the_limit_of_the_first_round():
    """Of 30 s, 10 s are for the vectors of a teacher, and 20 s for all steps; what was mined is there."""
    plan = plan_for("ab", [1, 0], replace(PACE, once=10.0))
    assert limits(plan, "a", 0, 30.0) == {"a": 25}
    assert limits(plan, "a", 1, 25.0) == {"a": 15}
    written = plan_for("ab", [1, 0], replace(PACE, once=10.0, made=10.0))
    assert limits(written, "a", 0, 30.0) == {"a": 15}


@pytest.mark.parametrize(("share", "hopeless"), [(6.3, False), (6.2, True), (-1.0, True)])
def test_a_run_with_less_than_a_quarter_of_its_training_is_hopeless(share, hopeless):
    assert is_hopeless(plan_for("ab", [1, 0], PACE), "a", 1, share) is hopeless  # of 25 s


def test_a_shorter_run_decays_where_it_ran_out_of_time():
    shorter = shortened(plan_for("ab", [1, 0]), 1, "a", OutOfTime(15, "a"))
    assert shorter.rungs[1].steps == {"a": (20,), "b": (40,)}  # 15 steps, then a decay of a quarter
    assert shorter.rungs[0].steps == {"a": (20,), "b": (20,)}


def test_a_route_is_dropped_from_a_round_on():
    plan = plan_for("ab", [1, 0], PACE)
    later = without_run(plan, 1, "a")
    assert [sorted(rung.steps) for rung in later.rungs] == [["a", "b"], ["b"]]
    assert later.skipped == ()
    first = without_run(plan, 0, "a")
    assert [sorted(rung.steps) for rung in first.rungs] == [["b"], ["b"]]
    assert [route.name for route in first.routes] == ["b"]
    assert [(skip.name, skip.for_time) for skip in first.skipped] == [("a", True)]


WRITTEN = stage("synthesize", name="written", model="smollm2", data="a.txt", kinds=["query"], rows=90)
LEARN = stage("contrastive", name="a", data="stage:written", steps=20, schedule="warmup-stable-decay", decay=0.25)


def test_writing_for_a_fold_leaves_half_of_what_the_rest_of_the_run_takes():
    """A run takes 5 s to write, 2 s to score and 20 s to train: of 27 s, 11 s stay for the rest."""
    plan = plan_for("a", [0], replace(PACE, once=5.0, made=5.0, per_run=2.0))
    plan = plan.with_route(Route("a", "", (WRITTEN, LEARN)))
    assert fold_limits(plan, "a", 0, 27.0) == {"written": 16, "a": 15}
    assert fold_limits(plan, "a", 0, 10.0)["written"] == -1  # stops after the first block
    assert fold_limits(replace(plan, paces={}), "a", 0, math.inf) == {"written": math.inf}  # at the token limit alone


def test_a_stage_with_another_length():
    assert [at_most(stage, {"written": 32, "a": 9}) for stage in (WRITTEN, LEARN)] == [
        stage("synthesize", name="written", model="smollm2", data="a.txt", kinds=["query"], rows=32),
        stage("contrastive", name="a", data="stage:written", steps=9, schedule="warmup-stable-decay", decay=0.25),
    ]
    assert at_most(LEARN, {"written": 32}) is LEARN


def test_a_merged_model_has_the_lengths_of_the_run_that_it_is_made_of():
    merge = stage("merge", name="merged", models=["stage:a", "base"], weights=[0.5, 0.5])
    keys = [fold_key(Plan("p", "base", stages), 2) for stages in ((WRITTEN, LEARN), (WRITTEN, LEARN, merge))]
    assert keys == ["base, a 20, fold 2"] * 2
