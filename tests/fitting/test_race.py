"""The race: who is best, which verdict each run gets, and how a stage is summed up; its runs are real in test_fit."""

import pytest

from sentloom.fitting.budget import Rung
from sentloom.fitting.plan import FitPlan
from sentloom.fitting.race import RaceContext, Trained, best_run, race, stage_summary
from sentloom.fitting.result import Run
from sentloom.fitting.routes import Route
from sentloom.pipeline.building import stage


def trained(route, score, steps=10, rung=1):
    run = Run(route, rung, steps, 0.0, score, None, None, None, "done")
    return Trained(run, None, None if score is None else object())


def test_the_best_run_is_the_shorter_one_of_equals_and_no_failed_one():
    short, long, failed = trained("a", 60.0, 10), trained("b", 60.0, 30), trained("c", None)
    assert best_run([long, short, failed]) is short
    assert best_run([failed]) is None


@pytest.fixture
def run_race(monkeypatch):
    """A race whose runs score what a table says, by route and round."""

    def call(scores, keeps):
        routes = tuple(Route(name, "", ()) for name in scores)
        rungs = []
        for number, keep in enumerate(keeps, 1):
            rungs.append(
                Rung(dict.fromkeys(scores, (10 * number,)), len(scores) if number == 1 else keeps[number - 2], keep)
            )
        plan = FitPlan({}, routes, (), {}, 0.0, tuple(rungs))
        context = RaceContext(plan, "base", 1, None, (), (), None, None, lambda line: None)
        monkeypatch.setattr(
            "sentloom.fitting.race._run",
            lambda context, name, rung, steps: trained(name, scores[name][rung - 1], sum(steps), rung),
        )
        return {(one.run.route, one.run.rung): one.run.verdict for one in race(context)}

    return call


def test_the_better_half_advances_and_a_short_run_may_be_the_best(run_race):
    found = run_race({"a": [50.0], "b": [60.0, 65.0], "c": [None]}, [1, 0])
    assert found == {("a", 1): "dropped", ("b", 1): "advanced", ("c", 1): "done", ("b", 2): "best"}
    found = run_race({"a": [50.0], "b": [60.0, 55.0]}, [1, 0])
    assert found == {("a", 1): "dropped", ("b", 1): "best", ("b", 2): "finished"}


def test_a_stage_in_a_few_words():
    learn = stage("simcse", name="s", data="a.txt", steps=1500)
    assert stage_summary(learn) == "simcse, 1,500 steps"
    epochs = learn.model_copy(update={"settings": learn.settings.model_copy(update={"steps": None, "epochs": 2.0})})
    assert stage_summary(epochs) == "simcse, 2 epochs"
    mine = stage("mine", name="m", data="a.tsv", model="embedded", rows=300)
    assert stage_summary(mine) == "mine, 300 rows"
    assert stage_summary(stage("views", name="v", data="a.txt", kind="back-translation")) == "views"
