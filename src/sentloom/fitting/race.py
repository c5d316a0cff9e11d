"""The race: round by round every route is trained and scored on the validation rows; the better ones continue.

After the last round the winner is merged with its base, and with the best run of another route. The gate tests the best
of all runs. Without labels, its route is trained once more with another seed, to see whether the two models agree on
the neighbours of texts.

With a time budget every run has its share of the time that is left (`clock`), of which each of its trainings gets an
equal part if it is cross-validated. A training whose time is over begins to decay; the length that it will have is
written to the plan, and it continues with that.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from sentloom.encoder import Encoder
from sentloom.encoder.loading import shared_encoder
from sentloom.encoder.reshaping import unlike
from sentloom.engine.artifacts import PREFIX
from sentloom.engine.building import stage
from sentloom.engine.plan import Plan, file_names, to_yaml
from sentloom.engine.runner import PlanResult
from sentloom.engine.stages import Stage
from sentloom.engine.stages.stage import BASE
from sentloom.engine.stages.synthesize import WritingStopped
from sentloom.engine.stages.train import TRUNKS
from sentloom.errors import InputError, MissingPart, ModelError, TrainingStopped, option
from sentloom.evaluation.bench import Memory, main_scores, score_tasks
from sentloom.evaluation.metrics import Numbers
from sentloom.evaluation.significance import average_interval, compare_averages
from sentloom.evaluation.task import Score, Task
from sentloom.files import new_file, remove
from sentloom.fitting.clock import stage_seconds
from sentloom.fitting.lengths import Round
from sentloom.fitting.making import NO_TOKENS, TOKEN_LIMIT, at_most, writes, writing_line
from sentloom.fitting.plan import Job
from sentloom.fitting.prepare import Fold, fold_scores
from sentloom.fitting.request import Log
from sentloom.fitting.result import Merging, Run, Stability
from sentloom.progress import OutOfTime, duration
from sentloom.search.nearest import top_k
from sentloom.training.optimizers import total_steps

BEST = "best"  # the verdict of the run that the gate tests
AGREEMENT = "the agreement with another seed"

SHARES = (
    0.25,
    0.5,
    0.75,
)  # of the base in a merged model; a quarter costs nothing where it was measured (docs/results-fit.md)
OTHER_SHARES = (0.5, 0.25)  # of the best run of another route
KEPT_GAIN = 0.9  # of the winner's: in a tie, a merged model must keep this much of the gain
ONE_ERROR = 0.6827  # the level of an interval that reaches one standard error to either side

LOG_EVERY = 5  # steps, of a run that the clock ends
K = 10  # neighbours of a text that are compared between two seeds


@dataclass(frozen=True)
class TrainedRun:
    """A route in one round: its plan, what came of it, and how it compares with the base on the validation rows."""

    run: Run
    plan: Plan
    result: PlanResult | None  # None: it failed
    folds: tuple[PlanResult, ...] = ()  # the same plan trained without each fold
    scores: tuple[Score, ...] = ()  # on the validation rows
    route: str = ""  # what it was trained by, if its run has another name: a merged model

    @property
    def steps(self) -> tuple[int | None, ...]:
        """The length of each of its training stages."""
        return tuple(train.settings.steps for train in self.plan.training)

    @property
    def value(self) -> float:
        """What it is ranked by."""
        return float("-inf") if self.run.score is None else self.run.score

    @property
    def model(self) -> Path:
        """The folder of the trained model."""
        assert self.result is not None
        assert self.result.model is not None
        return self.result.model

    def encoder(self) -> Encoder:
        """The trained model."""
        return shared_encoder(str(self.model))

    def fold_encoders(self) -> list[Encoder]:
        """The models that were trained without each fold."""
        return [shared_encoder(str(fold.model)) for fold in self.folds]


@dataclass(frozen=True)
class Training:
    """One training of a run, as it was."""

    plan: Plan
    result: PlanResult
    earlier: float = 0.0  # seconds before it was known how long it would be

    @property
    def seconds(self) -> float:
        """All that it took."""
        return self.earlier + self.result.seconds


@dataclass
class Race:
    """What all runs share."""

    job: Job
    base: str  # that plans start from
    seed: int
    tasks: Sequence[Task]  # of the validation rows
    before: Sequence[Score]  # of the base on them, or on the folds
    log: Log
    folds: tuple[Fold, ...] = ()  # to choose on if there are no validation rows

    @property
    def trainings(self) -> int:
        """How often a run trains: on all rows, and without each fold."""
        return 1 + len(self.folds)


def race(race: Race) -> list[TrainedRun]:
    """All runs in order. The best of them all wins: a short run may be better than a long one."""
    plan, field = race.job.plan, [route.name for route in race.job.plan.routes]
    runs: list[TrainedRun] = []
    for number, planned in enumerate(plan.rounds, 1):
        if number > 1 and not _can_be_longer(field, planned, runs):
            break
        race.log(f"\nRound {number} of {len(plan.rounds)}: {'; '.join(field)}")
        in_round = [_run(race, name, number, len(field) - at) for at, name in enumerate(field)]
        ranked = sorted(in_round, key=lambda trained: -trained.value)
        going = {trained.run.route for trained in ranked[: planned.keep] if trained.result}
        out = "dropped" if planned.keep else "finished"
        runs += [_with_verdict(trained, "advanced" if trained.run.route in going else out) for trained in in_round]
        field = [trained.run.route for trained in ranked if trained.run.route in going]
    remove(race.job.request.folder / TRUNKS)
    best = best_run(runs)
    return [_with_verdict(trained, BEST if trained is best else _at_end(trained, runs)) for trained in runs]


def _can_be_longer(field: Sequence[str], planned: Round, runs: Sequence[TrainedRun]) -> bool:
    """Whether a round has a run that was not there before: there may not be enough steps, or rows, for a longer one."""
    done = {(trained.run.route, trained.steps) for trained in runs}
    return any((name, planned.steps[name]) not in done for name in field)


def _at_end(trained: TrainedRun, runs: Sequence[TrainedRun]) -> str:
    """A run that advanced has finished if there is no longer one of its route."""
    longer = any(other.run.route == trained.run.route and other.run.rung > trained.run.rung for other in runs)
    return "finished" if trained.run.verdict == "advanced" and not longer else trained.run.verdict


def best_run(runs: Sequence[TrainedRun]) -> TrainedRun | None:
    """The best of all runs; among equals the shorter one. None if all failed."""
    done = [trained for trained in runs if trained.result]
    return max(done, key=lambda trained: (trained.value, -trained.run.steps), default=None)


def _with_verdict(trained: TrainedRun, verdict: str) -> TrainedRun:
    return trained if trained.result is None else replace(trained, run=replace(trained.run, verdict=verdict))


def _run(race: Race, name: str, number: int, waiting: int) -> TrainedRun:
    """Train and score a route in one round (from 1), while `waiting` runs of the round, with this one, are to come."""
    job, rounds = race.job, race.job.plan.rounds
    later = len(rounds[0].steps) if number < len(rounds) else 0  # the last run gets as much as all before it
    end = job.clock.now() + job.clock.share(waiting, later + job.plan.again)
    return _train_route(race, name, number, end)


def _train_route(race: Race, name: str, number: int, end: float) -> TrainedRun:
    steps = race.job.plan.rounds[number - 1].steps[name]
    plan = race.job.plan.route(name).plan(steps, race.base, race.seed)
    return run_plan(race, Run(name, number, sum(steps)), _with_many_lines(plan) if end < math.inf else plan, end)


def _with_many_lines(plan: Plan) -> Plan:
    """A plan whose journals have many lines: how long it will be is not known yet."""
    train = [
        stage.model_copy(update={"settings": stage.settings.model_copy(update={"log_every": LOG_EVERY})})
        if stage.settings
        else stage
        for stage in plan.stages
    ]
    return replace(plan, stages=tuple(train))


def run_plan(race: Race, run: Run, plan: Plan, end: float = math.inf) -> TrainedRun:
    """Run a plan and score what comes out, until `end` by the clock; a plan that fails is a run that failed."""
    end -= race.job.clock.scoring(race.job.clock.size_of_run)
    try:
        whole = _train(race, run, plan, 0, end)
        folds = [_train(race, run, whole.plan, number, end) for number in range(1, race.trainings)]
    except (InputError, MissingPart, ModelError, TrainingStopped) as error:  # the other routes may not need this
        race.log(f"{run.route} failed: {error}")
        return TrainedRun(replace(run, verdict=f"failed: {error.problem}"), plan, None)
    seconds = sum(training.seconds for training in (whole, *folds))
    run = replace(run, seconds=seconds, stages=tuple(map(stage_summary, whole.plan.stages)))
    _write_recipe(race, run, whole.plan)
    return _scored(TrainedRun(run, whole.plan, whole.result, tuple(fold.result for fold in folds)), race)


def _train(race: Race, run: Run, plan: Plan, fold: int, end: float) -> Training:
    """Train on all rows (fold 0) or without a fold, as planned or for as long as there is time."""
    job, training, began = race.job, training_key(run, plan, fold), race.job.clock.now()
    asked = race.folds[fold - 1].without(plan, fold) if fold else plan
    within = _seconds(race, run, fold, max(0.0, end - began) / (race.trainings - fold))
    while True:
        decided = job.plan.lengths.get(training, {})
        asked = replace(asked, stages=tuple(at_most(stage, decided) for stage in asked.stages))
        tried = job.clock.now()
        try:
            result = job.run(
                asked, {name: seconds for name, seconds in within.items() if name not in decided}, race.log
            )
        except OutOfTime as late:
            (decay,) = (train.settings.decay for train in asked.training if train.name == late.stage)
            job.change(job.plan.with_length(training, late.stage, total_steps(late.step, decay)))
        except WritingStopped as early:
            _note_writing(job, training, early, f"without fold {fold}, {writing_line(run.route, early)}")
        else:
            return Training(asked, result, tried - began)


def _note_writing(job: Job, training: str, early: WritingStopped, line: str) -> None:
    """Write down that less is written."""
    if not early.rows:
        raise TrainingStopped(training, NO_TOKENS, "", f"raise {option('max_tokens')}") from None
    job.plan = job.plan.with_length(training, early.stage, early.rows)
    if early.late:
        job.give_up(line)
    else:
        job.warn(f"{TOKEN_LIMIT}: {line}.")


def training_key(run: Run, plan: Plan, fold: int) -> str:
    """The name of a training in the plan of a fit. Without a fold, a merged model has the trainings of its winner."""
    trained = ", ".join(f"{train.name} {train.settings.steps}" for train in plan.training)
    return f"{plan.base}, {trained}, fold {fold}" if fold else f"{run.route}, round {run.rung}, seed {plan.seeds[0]}"


def _seconds(race: Race, run: Run, fold: int, seconds: float) -> dict[str, float]:
    """The seconds of each stage of a training; without a fold, data has to be written again, in half of them."""
    route = next((route for route in race.job.plan.routes if route.name == run.route), None)
    if route is None or seconds == math.inf:  # a merged model trains nothing
        return {}
    writers = [stage.name for stage in route.makers if writes(stage)] if fold else []
    training = seconds / 2 if writers else seconds
    weights = race.job.plan.extents[route.name].weights
    return {**dict.fromkeys(writers, seconds / 2), **stage_seconds(route, weights, training)}


def _write_recipe(race: Race, run: Run, plan: Plan) -> None:
    names = file_names([*(route.name for route in race.job.plan.routes), run.route])
    path = race.job.request.folder / "recipes" / f"{names[run.route]}-{run.rung}-seed-{race.seed}.yaml"
    with new_file(path) as part:
        part.write_text(to_yaml(plan), "utf-8")


def _scored(trained: TrainedRun, race: Race) -> TrainedRun:
    """The run with its length and its score on the validation rows or the folds, beside the base's."""
    assert trained.result is not None
    with race.job.clock.scoring_of_run():
        scores = _scores(trained, race)
    comparison, value = compare_averages(scores, race.before), sum(score.value for score in scores) / len(scores)
    steps = sum(stage["outcome"]["steps"] for stage in trained.result.stages if "outcome" in stage)
    run = replace(trained.run, steps=steps, score=value, verdict="done")
    run = replace(run, difference=comparison.difference, low=comparison.low, high=comparison.high)
    race.log(f"{run.route}: {run.steps:,} steps in {duration(run.seconds)}, {against_base(run)}")
    return replace(trained, run=run, scores=tuple(scores))


def _scores(trained: TrainedRun, race: Race) -> list[Score]:
    if race.folds:
        return fold_scores(trained.fold_encoders(), race.folds, race.job.memory)
    return main_scores(trained.encoder(), race.tasks, race.job.memory, show_progress=True)


def against_base(run: Run) -> str:
    """The score of a run and its difference from the base, on the validation rows."""
    interval = f"{run.low:+.2f} to {run.high:+.2f}"
    return f"score {run.score:.2f}, {run.difference:+.2f} compared with the base ({interval})"


def stage_summary(stage: Stage) -> str:
    """A stage in a few words, for the report."""
    if stage.settings is not None:
        steps, epochs = stage.settings.steps, stage.settings.epochs
        return f"{stage.method}, {steps:,} steps" if steps else f"{stage.method}, {epochs:g} epochs"
    rows = getattr(stage.options, "rows", None)
    return f"{stage.method}, {rows:,} rows" if rows else stage.method


def with_merged(race: Race, runs: Sequence[TrainedRun]) -> list[TrainedRun]:
    """The runs of a race, and merged ones after them; the best of all is marked again."""
    best, job = best_run(runs), race.job
    if best is None or not job.plan.merges:
        return list(runs)
    race.log("\nMerging ...")
    rung, merged = max(trained.run.rung for trained in runs) + 1, list[TrainedRun]()
    plans = list(_plans(race, runs, best))[: job.plan.merges]
    for name, plan in plans:
        if not job.clock.has_time_to_merge:
            tried = "1 merged model is" if len(merged) == 1 else f"{len(merged)} merged models are"
            job.give_up(f"only {tried} tried" if merged else "nothing is merged", replace(job.plan, merges=len(merged)))
            break
        trained = run_plan(replace(race, log=lambda line: None), Run(name, rung), plan)  # stages are reused
        if trained.result is None:
            race.log(f"{name} {trained.run.verdict}")
            continue
        run = replace(trained.run, steps=0, seconds=trained.result.stages[-1]["seconds"], verdict="finished")
        merged.append(replace(trained, run=run, route=best.run.route))
        race.log(f"{name}: {against_base(run)}")
    return _marked([*runs, *merged], choose(best, merged))


def choose(best: TrainedRun, merged: Sequence[TrainedRun]) -> TrainedRun:
    """The best merged model if it is better than the winner or ties with it, otherwise the winner."""
    candidate = best_run(merged)
    if candidate is None:
        return best
    kept = (candidate.run.difference or 0.0) >= KEPT_GAIN * (best.run.difference or 0.0)
    return candidate if kept and compare_averages(candidate.scores, best.scores, level=ONE_ERROR).high >= 0 else best


def _marked(runs: Sequence[TrainedRun], best: TrainedRun) -> list[TrainedRun]:
    """The runs with the verdict of the best on the right one."""
    verdicts = ["finished" if trained.run.verdict == BEST else trained.run.verdict for trained in runs]
    marked = ((trained, BEST if trained is best else old) for trained, old in zip(runs, verdicts, strict=True))
    return [replace(trained, run=replace(trained.run, verdict=verdict)) for trained, verdict in marked]


def _plans(race: Race, runs: Sequence[TrainedRun], best: TrainedRun) -> Iterator[tuple[str, Plan]]:
    """Every merged model as a plan: the winner's stages and a merge, or two models that are there."""
    base, encoder = str(best.plan.base), best.encoder()
    if why := unlike(encoder, shared_encoder(base)):
        race.log(f"Not merged with the base: {why}")
    else:
        last = f"{PREFIX}{best.plan.stages[-1].name}"
        for share in SHARES:
            merge = stage("merge", name="merged", models=[last, BASE], weights=[1 - share, share])
            name = f"{best.run.route}, merged with {share:.0%} of the base"
            yield name, replace(best.plan, name=name, title=name, stages=(*best.plan.stages, merge))
    same_base = [trained for trained in runs if trained.plan.base == best.plan.base]
    others = [trained for trained in same_base if trained.run.route != best.run.route]
    second = best_run([trained for trained in others if (trained.run.difference or 0) > 0])
    if second is None or race.folds:  # models of all rows have seen every fold
        return
    if why := unlike(encoder, second.encoder()):
        race.log(f"Not merged with {second.run.route}: {why}")
        return
    assert best.result is not None
    assert second.result is not None
    models = [str(model.resolve()) for model in (best.result.model, second.result.model) if model]
    for share in OTHER_SHARES:
        name = f"{best.run.route}, merged with {share:.0%} of {second.run.route}"
        merge = stage("merge", name="merged", models=models, weights=[1 - share, share])
        yield name, replace(best.plan, name=name, title=name, stages=(merge,))


def merging_effect(runs: Sequence[TrainedRun], base: Encoder, general: Task, memory: Memory) -> Merging | None:
    """What merging changed: the best merged model beside the best trained one; None if nothing was merged."""
    tuned, merged = (best_run([trained for trained in runs if bool(trained.route) is kind]) for kind in (False, True))
    if tuned is None or merged is None:
        return None
    models = (base, tuned.encoder(), merged.encoder())
    scores = [score_tasks(model, [general], memory)[0][general.main].value for model in models]
    return Merging(merged.run.route, merged.run.verdict == BEST, tuned.value, merged.value, general.name, *scores)


def measure_stability(job: Job, first: TrainedRun, texts: Sequence[str]) -> Stability | None:
    """Train a run again with another seed, and compare neighbours; None if there are too few texts, or no time."""
    if len(texts) <= K:
        return None
    job.log(f"\nTraining {first.run.route} again with another seed, to see whether two runs agree on neighbours")
    again = job.if_time(AGREEMENT, lambda: train_with_next_seed(job, first).encode(texts))
    return None if again is None else agreement(shared_neighbours(first.encoder().encode(texts), again))


def train_with_next_seed(job: Job, first: TrainedRun) -> Encoder:
    """Train as in a run, with the next seed."""
    (seed,) = first.plan.seeds
    try:
        return shared_encoder(str(job.run(replace(first.plan, seeds=(seed + 1,)), {}, job.log).model))
    finally:
        remove(job.request.folder / TRUNKS)


def first_run(runs: Sequence[TrainedRun], best: TrainedRun) -> TrainedRun:
    """The first run of the route that the best one comes from."""
    route = best.route or best.run.route
    return next(trained for trained in runs if trained.run.route == route and trained.result)


def agreement(shares: Numbers) -> Stability:
    """The mean share with its interval over texts."""
    score = Score("mean", shares[:, None])
    low, high = average_interval([score])
    return Stability(score.value, low, high, len(shares), K)


def shared_neighbours(a: npt.NDArray[np.floating], b: npt.NDArray[np.floating], k: int = K) -> npt.NDArray[np.float64]:
    """For each text, the share of its k nearest neighbours that two models agree on; row i of both is text i.

    1 if they agree on all of them; for n texts, chance gives k / (n - 1).
    """
    if len(a) != len(b) or len(a) <= k:
        problem = f"{len(a)} and {len(b)} vectors for k = {k}"
        raise InputError("shared neighbours", problem, "vectors of the same texts, more than k", "take more texts")
    pairs = zip(_neighbours(a, k), _neighbours(b, k), strict=True)
    return np.array([len(set(own) & set(other)) / k for own, other in pairs])


def _neighbours(vectors: npt.NDArray[np.floating], k: int) -> list[list[int]]:
    """The k nearest others of each vector."""
    numbers, _ = top_k(vectors, vectors, k + 1)
    return [[number for number in row if number != own][:k] for own, row in enumerate(numbers.tolist())]
