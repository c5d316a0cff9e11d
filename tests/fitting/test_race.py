"""The race: who is best, which verdict each run gets, and how long runs are by the clock; real runs are in test_fit."""

from dataclasses import replace

import pytest

from sentloom.engine.building import stage
from sentloom.engine.runner import PlanResult
from sentloom.fitting.lengths import Extent, Round
from sentloom.fitting.plan import FitPlan, Job, read_plan
from sentloom.fitting.race import Race, TrainedRun, best_run, measure_stability, race, stage_summary
from sentloom.fitting.result import Run
from sentloom.fitting.routes import Route
from sentloom.progress import OutOfTime
from sentloom.training.optimizers import stable_steps, total_steps
from tests.fitting.small_job import job_in, still


def trained(route, score, steps=10, rung=1):
    run = Run(route, rung, steps, score=score, verdict="done")
    return TrainedRun(run, None, None if score is None else object())


def test_the_best_run_is_the_shorter_one_of_equals_and_no_failed_one():
    short, long, failed = trained("a", 60.0, 10), trained("b", 60.0, 30), trained("c", None)
    assert best_run([long, short, failed]) is short
    assert best_run([failed]) is None


DECAY = 0.25


def route(name):
    schedule = {"schedule": "warmup-stable-decay", "warmup_steps": 2, "decay": DECAY}
    return Route(name, "", (stage("simcse", name=name, data="a.txt", steps=1, **schedule),))


def plan_for(names, *lengths, **values):
    """Rounds of these lengths, after each of which the better half continues."""
    sizes, extents = [len(names)], {name: Extent((10_000,), (2,), (DECAY,)) for name in names}
    sizes += [max(1, -(-sizes[0] // 2**at)) for at in range(1, len(lengths))]
    keeps = [*sizes[1:], 0]
    rounds = [
        Round(dict.fromkeys(names, (length,)), runs, keep)
        for length, runs, keep in zip(lengths, sizes, keeps, strict=True)
    ]
    return FitPlan({}, tuple(map(route, names)), (), extents, tuple(rounds), **values)


class Machine(Job):
    """A fit whose trainings take seconds of its clock, `pace` for each step, and give models that score as a table says.

    A run continues the shorter one of its route, and decays so that it ends within its seconds, as `training.loop`
    does; `late` is by how many times it is slower than it was before the decay.
    """

    pace, late = 1.0, 1.0

    def run(self, plan, seconds, log):
        """Train by the clock."""
        (train,), (limit,) = plan.training, tuple(seconds.values()) or (1e9,)
        decay = train.settings.decay
        before, stable = self.trunks.get(train.name, 0), stable_steps(train.settings.steps, decay)
        reached, began = before, self.clock.passed
        while reached < stable:
            took = self.clock.passed - began
            if reached >= 2 and took + self.pace * (total_steps(reached + 1, decay) - reached) > limit:
                break
            self.clock.passed += self.pace
            reached += 1
        self.trunks[train.name] = reached
        if reached < stable:
            raise OutOfTime(reached, train.name)
        self.clock.passed += self.late * self.pace * (train.settings.steps - stable)
        outcome = {"steps": train.settings.steps}
        return PlanResult(
            plan.name, 1, self.request.folder, "", {}, "", {}, {}, ({"seconds": 2.0, "outcome": outcome},)
        )


@pytest.fixture
def run_race(monkeypatch, tmp_path):
    """A race whose runs score what a table says, by route and round; returns verdicts and steps, and the job after."""

    def call(scores, plan, clock=None, **machine):
        monkeypatch.setattr(
            "sentloom.fitting.race._scored",
            lambda run, race: replace(run, run=replace(run.run, score=scores[run.run.route][run.run.rung - 1])),
        )
        job = job_in(tmp_path, plan, clock, kind=Machine)
        job.trunks = {}
        vars(job).update(machine)
        runs = race(Race(job, "base", 1, (), (), lambda line: None))
        told = {(trained.run.route, trained.run.rung): (trained.run.verdict, *trained.steps) for trained in runs}
        return told, job

    return call


def test_the_better_half_advances_and_a_short_run_may_be_the_best(run_race):
    told, _ = run_race({"a": [50.0, 55.0], "b": [60.0, 65.0], "c": [40.0]}, plan_for("abc", 20, 60))
    assert told == {
        ("a", 1): ("advanced", 20),
        ("b", 1): ("advanced", 20),
        ("c", 1): ("dropped", 20),
        ("a", 2): ("finished", 60),
        ("b", 2): ("best", 60),
    }
    told, _ = run_race({"a": [50.0], "b": [60.0, 55.0]}, plan_for("ab", 20, 60))
    assert told == {("a", 1): ("dropped", 20), ("b", 1): ("best", 20), ("b", 2): ("finished", 60)}


SCORES = {"a": [50.0], "b": [60.0, 65.0]}
MOST = 10_000  # steps that make sense


def test_by_the_clock_all_routes_get_a_quarter_and_the_best_one_half_more(run_race, tmp_path):
    """400 s are left for training: 100 steps of each route, and then the best goes on where its decay began."""
    told, job = run_race(SCORES, plan_for("ab", MOST, MOST), still(405.0))
    assert {run: verdict for run, (verdict, _) in told.items()} == {
        ("a", 1): "dropped",
        ("b", 1): "advanced",
        ("b", 2): "best",
    }
    steps = {run: count for run, (_, count) in told.items()}
    assert 95 <= steps["a", 1] <= 100
    assert 95 <= steps["b", 1] <= 101
    stable = stable_steps(steps["b", 1], DECAY)
    assert steps["b", 2] == pytest.approx(stable + 200, abs=4)
    assert 0 <= job.clock.training <= 4
    assert job.plan.changes == ()  # nothing was lost
    assert job.plan.lengths == {
        f"{name}, round {number}, seed 1": {name: count} for (name, number), count in steps.items()
    }
    assert read_plan(tmp_path / "model.fit/plan.json", {}) == job.plan  # what was decided is on disk
    again, resumed = run_race(SCORES, job.plan, still(9e9))
    assert (again, resumed.plan) == (told, job.plan)  # a resumed fit does the same, however much time it has


def test_a_route_that_ends_early_leaves_its_time_to_the_others(run_race):
    plan = plan_for("ab", MOST, MOST)
    short = {"a": (40,), "b": (MOST,)}
    plan = replace(plan, rounds=tuple(replace(planned, steps=short) for planned in plan.rounds))
    told, _ = run_race(SCORES, plan, still(405.0))
    assert told["a", 1] == ("dropped", 40)
    assert 115 <= told["b", 1][1] <= 120  # a third of 360 s


def test_the_best_does_not_run_again_if_it_cannot_be_longer(run_race):
    told, _ = run_race(SCORES, plan_for("ab", 40, 40), still(405.0))
    assert told == {("a", 1): ("dropped", 40), ("b", 1): ("best", 40)}


def test_a_single_route_gets_all_and_the_end_is_kept_on_a_machine_that_becomes_slower(run_race):
    clock = still(200.0)
    clock.speed, clock.size_of_winner = 0.1, 100  # 15 s, and 5 s for the report
    told, job = run_race({"a": [60.0]}, plan_for("a", MOST), clock, late=1.4)
    assert 170 <= told["a", 1][1] <= 180
    assert job.clock.left > 0  # the decay took longer than it should


def test_after_a_late_start_a_run_is_short_and_there_is_one(run_race):
    told, _ = run_race({"a": [60.0]}, plan_for("a", MOST), still(100.0, gone=120.0))
    assert told == {("a", 1): ("best", total_steps(2, DECAY))}


def test_a_second_seed_is_given_up_if_there_is_no_time(tmp_path):
    class Late(Job):
        def run(self, plan, seconds, log):
            """As a training whose progress meets the deadline."""
            raise OutOfTime(3, "a")

    said, texts = [], [f"sentence number {n}" for n in range(20)]
    job = job_in(tmp_path, plan_for("a", 20), still(20.0), said.append, kind=Late)
    first = TrainedRun(Run("a", 1), route("a").plan((20,), "base", 1), None)
    assert measure_stability(job, first, texts) is None
    assert job.plan.changes == ("the agreement with another seed is not measured",)
    assert said[-1] == "Out of time: the agreement with another seed is not measured"
    assert read_plan(tmp_path / "model.fit/plan.json", {}) == job.plan
    assert measure_stability(job, first, texts[:10]) is None  # too few to have ten neighbours


def test_a_stage_in_a_few_words():
    learn = stage("simcse", name="s", data="a.txt", steps=1500)
    assert stage_summary(learn) == "simcse, 1,500 steps"
    epochs = learn.model_copy(update={"settings": learn.settings.model_copy(update={"steps": None, "epochs": 2.0})})
    assert stage_summary(epochs) == "simcse, 2 epochs"
    mine = stage("mine", name="m", data="a.tsv", model="embedded", rows=300)
    assert stage_summary(mine) == "mine, 300 rows"
    assert stage_summary(stage("views", name="v", data="a.txt", kind="back-translation")) == "views"
