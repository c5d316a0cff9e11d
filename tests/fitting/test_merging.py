"""Merging in a fit: what is merged, when the merged model is preferred, and what is reported."""

from dataclasses import replace

import numpy as np
import pytest

from sentloom.encoder import Encoder
from sentloom.engine.building import stage
from sentloom.evaluation.bench import main_scores
from sentloom.evaluation.evaluate import open_memory
from sentloom.evaluation.task import Score
from sentloom.fitting.evaluation_sets import general_task
from sentloom.fitting.inputs import InputSource, look
from sentloom.fitting.lengths import Round
from sentloom.fitting.plan import FitPlan, Job
from sentloom.fitting.race import Race, TrainedRun, choose, merging_effect, race, with_merged
from sentloom.fitting.result import Run
from sentloom.fitting.routes import Route
from sentloom.fitting.tasks import held_out
from tests.fitting import small_base
from tests.fitting.small_job import job_in, still


def scored(name, values, base=0.0):
    score = Score("mean", np.array(values, float)[:, None], clusters=np.arange(len(values)))
    gain = score.value - base
    return TrainedRun(
        Run(name, 1, 10, score=score.value, difference=gain, verdict="best"), None, object(), scores=(score,)
    )


def test_a_merged_model_within_one_standard_error_is_preferred():
    """Of 100 items, 10 get worse by a half and some better: the standard error of the mean is about 2 points."""
    tuned = np.full(100, 0.5)
    worse = tuned.copy()
    worse[:10] -= 0.5
    tie = worse.copy()
    tie[10:18] += 0.5  # 1 point below, with a standard error of 2.1
    best = scored("tuned", tuned)
    assert choose(best, [scored("worse", worse)]) is best  # 5 points below, with a standard error of 1.5
    merged = scored("tie", tie)
    assert choose(best, [scored("worse", worse), merged]) is merged
    assert choose(best, []) is best
    own, other = (scored("run", values, base=42.0) for values in (tuned, tie))
    assert choose(own, [other]) is own  # 7 points of a gain of 8 are not enough


@pytest.fixture(scope="module")
def raced(tmp_path_factory):
    """Two short routes on a small base, and their merged models."""
    folder = tmp_path_factory.mktemp("merging")
    base, data = small_base.build_base(folder), small_base.pairs(folder / "faq.tsv", 200)
    steps = {"batch": 16, "steps": 8, "max_length": 16}
    routes = [
        Route(name, "", (stage("contrastive", name=name, data=str(data), learning_rate=rate, **steps),))
        for name, rate in (("fast", 1e-3), ("slow", 3e-4))
    ]
    plan = FitPlan({}, tuple(routes), (), {}, (Round({"fast": (8,), "slow": (8,)}, 2, 0),), merges=5)
    (fit_input,) = look([InputSource(str(small_base.pairs(folder / "held-out.tsv", 100)))])
    tasks, memory = held_out("faq", fit_input.data).tasks, open_memory(folder / "measured")
    encoder = Encoder.load(str(base))
    before, told = main_scores(encoder, tasks, memory), []
    job = job_in(folder, plan, log=told.append)
    context = Race(job, str(base), 1, tasks, before, told.append)
    runs = race(context)
    return context, runs, with_merged(context, runs), encoder, told


def test_the_winner_is_merged_with_its_base_and_with_the_other_route(raced):
    context, runs, all_runs, encoder, _ = raced
    best = next(run for run in runs if run.run.verdict == "best")
    other = next(run for run in runs if run is not best)
    names = [f"{best.run.route}, merged with {share} of the base" for share in ("25%", "50%", "75%")]
    names += [f"{best.run.route}, merged with {share} of {other.run.route}" for share in ("50%", "25%")]
    merged = all_runs[len(runs) :]
    assert [run.run.route for run in merged] == names
    assert {(run.run.rung, run.run.steps, run.route) for run in merged} == {(2, 0, best.run.route)}
    name = "backbone.model.embeddings.word_embeddings.weight"
    weights = [model.state_dict()[name] for model in (encoder, best.encoder(), other.encoder())]
    of_base = [(0.25, 0.75, 0), (0.5, 0.5, 0), (0.75, 0.25, 0)]
    for run, shares in zip(merged, [*of_base, (0, 0.5, 0.5), (0, 0.75, 0.25)], strict=True):
        expected = sum(share * weight.double() for share, weight in zip(shares, weights, strict=True))
        assert (run.encoder().state_dict()[name].double() - expected).abs().max() < 1e-6
        assert (context.job.request.folder / "recipes").is_dir()
    assert [run.run.verdict for run in all_runs].count("best") == 1
    assert choose(best, merged).run.route == next(run.run.route for run in all_runs if run.run.verdict == "best")


def test_the_effect_on_general_ability_is_reported(raced, tmp_path):
    _, runs, all_runs, encoder, _ = raced
    memory, general = open_memory(tmp_path), general_task()
    effect = merging_effect(all_runs, encoder, general, memory)
    merged = max((run for run in all_runs if run.route), key=lambda run: run.value)
    assert (effect.route, effect.merged) == (merged.run.route, merged.value)
    assert effect.tuned == max(run.value for run in runs)
    assert effect.general_before == main_scores(encoder, [general], memory)[0].value
    assert effect.general_merged == main_scores(merged.encoder(), [general], memory)[0].value
    assert merging_effect(runs, encoder, general, memory) is None


def test_unlike_models_and_a_plan_without_merging_are_left_alone(raced, tmp_path, monkeypatch):
    context, runs, _, _, told = raced
    monkeypatch.setattr("sentloom.fitting.race.unlike", lambda base, other: "they have different vocabularies")
    assert with_merged(context, runs) == runs
    assert "Not merged with the base: they have different vocabularies" in told
    without = replace(context, job=job_in(tmp_path))
    assert with_merged(without, runs) == runs


def test_merging_stops_when_its_time_is_over_and_the_plan_says_so(raced, tmp_path):
    """What follows needs 20 s of the 60 s, and each merged model takes 15 s."""
    context, runs, *_ = raced

    class Late(Job):
        def run(self, plan, seconds, log):
            """Each takes 15 s."""
            self.clock.passed += 15.0
            return super().run(plan, seconds, log)

    def merged(seconds):
        clock = still(seconds)
        clock.speed, clock.size_of_winner, clock.size_of_run = 0.1, 100, 10
        job = replace(context.job, clock=clock, plan=context.job.plan)
        job = Late(**{**vars(job), "request": replace(job.request, output=tmp_path / "model")})
        return with_merged(replace(context, job=job), runs)[len(runs) :], job.plan

    none, plan = merged(21.0)
    assert (none, plan.merges, plan.changes) == ([], 0, ("nothing is merged",))
    two, plan = merged(51.0)
    assert (len(two), plan.merges, plan.changes) == (2, 2, ("only 2 merged models are tried",))
    assert len(with_merged(replace(context, job=replace(context.job, plan=plan)), runs)) == len(runs) + 2
