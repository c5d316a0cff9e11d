"""The race: who is best, which verdict each run gets, what the clock changes; its runs are real in test_fit."""

from dataclasses import replace

import pytest

from sentloom.engine.building import stage
from sentloom.fitting.budget import Pace, Rung
from sentloom.fitting.clock import Clock
from sentloom.fitting.plan import FitPlan, read_plan
from sentloom.fitting.race import RaceContext, TrainedRun, best_run, race, stage_summary, train_with_next_seed
from sentloom.fitting.result import Run
from sentloom.fitting.routes import Route
from sentloom.progress import OutOfTime
from sentloom.training.optimizers import stable_steps


def trained(route, score, steps=10, rung=1):
    run = Run(route, rung, steps, 0.0, score, None, None, None, "done")
    return TrainedRun(run, None, None if score is None else object())


def test_the_best_run_is_the_shorter_one_of_equals_and_no_failed_one():
    short, long, failed = trained("a", 60.0, 10), trained("b", 60.0, 30), trained("c", None)
    assert best_run([long, short, failed]) is short
    assert best_run([failed]) is None


def route(name):
    schedule = {"schedule": "warmup-stable-decay", "warmup_steps": 2, "decay": 0.25}
    return Route(name, "", (stage("simcse", name=name, data="a.txt", steps=1, **schedule),))


def plan_for(names, keeps, pace=None, **values):
    """Rounds of 20, 40, ... steps; each step takes a second."""
    sizes = [len(names), *keeps[:-1]]
    rungs = [Rung(dict.fromkeys(names, (20 * at,)), *both) for at, both in enumerate(zip(sizes, keeps, strict=True), 1)]
    paces = dict.fromkeys(names, pace) if pace else {}
    return FitPlan({}, tuple(map(route, names)), (), paces, 0.0, tuple(rungs), **values)


@pytest.fixture
def run_race(monkeypatch, tmp_path):
    """A race whose runs score what a table says, by route and round; returns verdicts and the plan after it.

    With a clock, a run takes as many seconds as it has steps, times `slow`, keeps to its limits, and takes some
    seconds `besides` for its score.
    """

    def call(scores, plan, clock=None, slow=1.0, besides=0.0):
        clock, trunks = clock or Clock(None), dict.fromkeys(scores, 0)
        context = RaceContext(plan, "base", 1, tmp_path, (), (), None, None, clock, lambda line: None)

        def run(context, name, rung, steps, limits=None, earlier=0.0, until=None):
            (limit,) = limits.values() if limits else (1e9,)
            before, stable = trunks[name], stable_steps(steps[0], 0.25)
            trunks[name] = min(stable, before + int(limit / slow))
            clock.started -= slow * (trunks[name] - before)
            if trunks[name] < stable:
                raise OutOfTime(trunks[name], name)
            clock.started -= slow * (steps[0] - stable) + besides
            return trained(name, scores[name][rung - 1], sum(steps), rung)

        monkeypatch.setattr("sentloom.fitting.race._run", run)
        return {(trained.run.route, trained.run.rung): trained.run.verdict for trained in race(context)}, context.plan

    return call


def test_the_better_half_advances_and_a_short_run_may_be_the_best(run_race):
    verdicts, _ = run_race({"a": [50.0], "b": [60.0, 65.0], "c": [None]}, plan_for("abc", [1, 0]))
    assert verdicts == {("a", 1): "dropped", ("b", 1): "advanced", ("c", 1): "done", ("b", 2): "best"}
    verdicts, _ = run_race({"a": [50.0], "b": [60.0, 55.0]}, plan_for("ab", [1, 0]))
    assert verdicts == {("a", 1): "dropped", ("b", 1): "best", ("b", 2): "finished"}


def stopped(seconds, gone=0.0):
    """A clock that only the runs of a test move, however fast the machine is."""
    return Clock(seconds, started=-gone, now=lambda: 0.0)


PACE = Pace((1.0,), (1000,), (1.0,), decays=(0.25,))
SCORES = {"a": [50.0], "b": [60.0, 65.0]}


def test_nothing_changes_if_the_machine_is_as_fast_as_expected(run_race):
    plan = plan_for("ab", [1, 0], PACE, ending=10.0)
    verdicts, after = run_race(SCORES, plan, stopped(80.0))
    assert after == replace(plan, kept=(("a", 1), ("b", 1), ("b", 2)))
    assert verdicts == {("a", 1): "dropped", ("b", 1): "advanced", ("b", 2): "best"}


def test_on_a_slow_machine_runs_are_shortened_and_the_time_is_kept(run_race, tmp_path):
    plan, clock = plan_for("ab", [1, 0], PACE, ending=10.0), stopped(80.0)
    verdicts, after = run_race(SCORES, plan, clock, slow=2.0)
    assert verdicts == {("a", 1): "dropped", ("b", 1): "advanced", ("b", 2): "best"}
    assert 20 > after.rungs[0].steps["a"][0] > 5
    assert after.rungs[1].steps["b"][0] < 40
    assert len(after.changes) == 3
    assert read_plan(tmp_path / "plan.json", {}) == after  # what was decided is on disk
    assert clock.left > 0
    again, unchanged = run_race(SCORES, after, stopped(1000.0))
    assert (again, unchanged) == (verdicts, after)  # a resumed fit does the same


def test_what_has_begun_is_not_dropped_by_a_resumed_fit_that_is_late(run_race):
    plan = plan_for("ab", [1, 0], PACE, ending=10.0, kept=(("a", 1), ("b", 1), ("b", 2)))
    verdicts, _ = run_race(SCORES, plan, stopped(1.0, gone=5.0))
    assert verdicts == {("a", 1): "dropped", ("b", 1): "advanced", ("b", 2): "best"}


def test_a_round_that_there_is_no_time_for_is_dropped(run_race):
    plan = plan_for("ab", [1, 0], PACE, ending=10.0)
    verdicts, after = run_race(SCORES, plan, stopped(80.0), besides=25.0)
    assert verdicts == {("a", 1): "dropped", ("b", 1): "best"}
    assert after.rungs[1].steps.keys() == {"a"}
    assert after.changes[-1] == "b does not run in round 2"


def test_the_time_of_a_shortened_run_counts_from_its_start(monkeypatch, tmp_path):
    passed = [0.0]
    clock = Clock(80.0, started=0.0, now=lambda: passed[0])

    def run(context, name, rung, steps, limits=None, earlier=0.0, until=None):
        if not passed[0]:
            passed[0] = 30.0
            raise OutOfTime(9, name)
        return TrainedRun(Run(name, rung, sum(steps), earlier + 4.0, 50.0, None, None, None, "done"), None, object())

    monkeypatch.setattr("sentloom.fitting.race._run", run)
    plan = plan_for("a", [0], PACE)
    (trained,) = race(RaceContext(plan, "base", 1, tmp_path, (), (), None, None, clock, lambda line: None))
    assert (trained.run.steps, trained.run.seconds) == (12, 34.0)  # the decay is a quarter: three steps after nine


def test_a_second_seed_is_trained_only_if_there_is_time(tmp_path):
    plan, said = plan_for("a", [0], PACE), []
    context = RaceContext(plan, "base", 1, tmp_path, (), (), None, None, stopped(23.0), said.append)  # 20, and 4
    assert train_with_next_seed(context, "a") is None
    assert context.plan.changes == ("the agreement with another seed is not measured",)
    assert said == ["Out of time: the agreement with another seed is not measured"]
    assert read_plan(tmp_path / "plan.json", {}) == context.plan
    resumed = replace(context, clock=stopped(1000.0))
    assert train_with_next_seed(resumed, "a") is None


def test_a_stage_in_a_few_words():
    learn = stage("simcse", name="s", data="a.txt", steps=1500)
    assert stage_summary(learn) == "simcse, 1,500 steps"
    epochs = learn.model_copy(update={"settings": learn.settings.model_copy(update={"steps": None, "epochs": 2.0})})
    assert stage_summary(epochs) == "simcse, 2 epochs"
    mine = stage("mine", name="m", data="a.tsv", model="embedded", rows=300)
    assert stage_summary(mine) == "mine, 300 rows"
    assert stage_summary(stage("views", name="v", data="a.txt", kind="back-translation")) == "views"
