"""The race: round by round every route is trained and scored on the validation rows; the better half continues.

After the last round the winner is merged with its base, and with the best run of another route. The gate tests the best
of all runs. Without labels, its route is trained once more with another seed, to see whether the two models agree on
the neighbours of texts.

With a time budget the clock is asked before every run and during training. A run gets its share of the time that is
left, of which each of its trainings gets an equal part if it is cross-validated. If one is too slow, its decay begins
early; if the share is far too small, the run is dropped. Both are written to plan.json first (`RaceContext.change`), so
that a resumed fit does the same.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
from accelerate import Accelerator

from sentloom.encoder import Encoder
from sentloom.encoder.loading import shared_encoder
from sentloom.encoder.reshaping import unlike
from sentloom.engine.artifacts import PREFIX
from sentloom.engine.building import stage
from sentloom.engine.plan import Plan, file_names, to_yaml
from sentloom.engine.runner import PlanResult, prepare
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
from sentloom.fitting.clock import Clock
from sentloom.fitting.making import (
    NO_TOKENS,
    TOKEN_LIMIT,
    at_most,
    fold_key,
    fold_limits,
    is_hopeless,
    limits,
    seconds_of,
    shortened,
    time_share,
    without_run,
    writing_line,
)
from sentloom.fitting.panel import PANEL_TEXTS
from sentloom.fitting.plan import REPORTING, FitPlan
from sentloom.fitting.prepare import Fold, Prepared, fold_scores
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
    def value(self) -> float:
        """What it is ranked by."""
        return float("-inf") if self.run.score is None else self.run.score

    def encoder(self) -> Encoder:
        """The trained model."""
        assert self.result is not None
        return shared_encoder(str(self.result.model))

    def fold_encoders(self) -> list[Encoder]:
        """The models that were trained without each fold."""
        return [shared_encoder(str(fold.model)) for fold in self.folds]


@dataclass
class RaceContext:
    """What all runs share, and the plan, which the clock may change."""

    plan: FitPlan
    base: str
    seed: int
    folder: Path
    tasks: Sequence[Task]  # of the validation rows
    before: Sequence[Score]  # of the base on them, or on the folds
    memory: Memory
    accelerator: Accelerator
    clock: Clock
    log: Log
    folds: tuple[Fold, ...] = ()  # to choose on if there are no validation rows
    spent: float = 0.0  # seconds that the runs so far took
    expected: float = 0.0  # seconds that they were expected to take

    def train(self, plan: Plan, limits: Mapping[str, float] | None = None) -> PlanResult:
        """Run a plan, or reuse what was done before."""
        (runner,) = prepare([plan], self.folder, self.accelerator, self.log, limits)
        (result,) = runner.run()
        return result

    def change(self, plan: FitPlan, lost: str = "") -> None:
        """Change the plan, on disk before it takes effect; `lost` says what there is no time for."""
        self.plan = plan.changed(lost) if lost else plan
        self.plan.write(self.folder / "plan.json")
        if lost:
            self.log(f"Out of time: {lost}")

    @property
    def timed(self) -> bool:
        """Whether a clock may change the plan."""
        return self.clock.seconds is not None

    @property
    def slower(self) -> float:
        """How many times longer than expected the runs so far took."""
        return max(1.0, self.spent / self.expected) if self.expected else 1.0

    @property
    def left(self) -> float:
        """Seconds for each training that is left. If the runs so far were slower than expected, the end will be too."""
        return (self.clock.left - self.plan.ending * self.slower) / self.plan.trainings

    @property
    def left_at_end(self) -> float:
        """Seconds that are left before the report."""
        return self.clock.left - REPORTING * self.slower

    def has_time(self, what: str, seconds: float) -> bool:
        """Whether there is time to measure what decides nothing; asked once, just before, and written down."""
        if not self.timed:
            return True
        if what not in self.plan.measured:
            enough = self.left_at_end >= seconds
            plan = replace(self.plan, measured={**self.plan.measured, what: enough})
            self.change(plan, "" if enough else f"{what} is not measured")
        return self.plan.measured[what]

    def has_planned_time(self, what: str, seconds: float) -> bool:
        """The same if the seconds were planned, and not measured now: the machine may have become slower since."""
        return self.has_time(what, seconds * self.slower)


def race(context: RaceContext) -> list[TrainedRun]:
    """All runs in order. The best of them all wins: a short run may be better than a long one."""
    field = [route.name for route in context.plan.routes]
    runs: list[TrainedRun] = []
    done: set[tuple[str, tuple[int, ...]]] = set()
    for number in range(1, len(context.plan.rungs) + 1):
        rung = context.plan.rungs[number - 1]
        lengths = {(name, rung.steps[name]) for name in field if name in rung.steps}
        if not lengths or lengths <= done:  # there is no time for longer runs, or not enough data
            break
        done |= lengths
        context.log(f"\nRound {number} of {context.plan.rounds}: {'; '.join(field)}")
        attempts = (_next_run(context, number, field[at:], not runs and not at) for at in range(len(field)))
        in_round = [trained for trained in attempts if trained]
        ranked = sorted(in_round, key=lambda trained: -trained.value)
        going = {trained.run.route for trained in ranked[: rung.keep] if trained.result}
        out = "dropped" if rung.keep else "finished"
        runs += [_with_verdict(trained, "advanced" if trained.run.route in going else out) for trained in in_round]
        field = [trained.run.route for trained in ranked if trained.run.route in going]
    remove(context.folder / TRUNKS)
    best = best_run(runs)
    return [_with_verdict(trained, BEST if trained is best else _at_end(trained, runs)) for trained in runs]


def _at_end(trained: TrainedRun, runs: Sequence[TrainedRun]) -> str:
    """A run that advanced has finished if there is no longer one of its route."""
    longer = any(other.run.route == trained.run.route and other.run.rung > trained.run.rung for other in runs)
    return "finished" if trained.run.verdict == "advanced" and not longer else trained.run.verdict


def best_run(runs: Sequence[TrainedRun]) -> TrainedRun | None:
    """The best of all runs; among equals the shorter one. None if all failed."""
    done = [trained for trained in runs if trained.result]
    return max(done, key=lambda trained: (trained.value, -trained.run.steps), default=None)


def _next_run(context: RaceContext, number: int, names: Sequence[str], needed: bool) -> TrainedRun | None:
    """Run the first of the named routes in a round; None if there is no time for it. If `needed`, it always runs."""
    name, plan = names[0], context.plan
    if name not in plan.rungs[number - 1].steps:
        return None  # dropped before
    if not context.timed:
        return _run(context, name, number, plan.rungs[number - 1].steps[name])
    share = time_share(plan, number - 1, names, context.left)
    if (name, number) not in plan.kept:
        if not needed and is_hopeless(plan, name, number - 1, share):
            context.change(without_run(plan, number - 1, name), f"{name} does not run in round {number}")
            return None
        context.change(replace(plan, kept=(*plan.kept, (name, number))))
    before = context.clock.left
    trained = _run_within(context, name, number, share)
    context.spent += (before - context.clock.left) / plan.trainings
    context.expected += seconds_of(context.plan, number - 1).get(name, 0.0)
    return trained


def _run_within(context: RaceContext, name: str, number: int, share: float) -> TrainedRun:
    """Run a route; a stage that runs out of time before its decay gets a shorter length and continues with it."""
    within, earlier, until = limits(context.plan, name, number - 1, share), 0.0, _end(context, share)
    while True:
        steps, began = context.plan.rungs[number - 1].steps[name], context.clock.now()
        try:
            return _run(context, name, number, steps, within, earlier, until)
        except OutOfTime as late:
            earlier += context.clock.now() - began
            shorter = shortened(context.plan, number - 1, name, late)
            now = sum(shorter.rungs[number - 1].steps[name])
            context.change(shorter, f"{name} trains for {now:,} steps in round {number} instead of {sum(steps):,}")
            within = {stage: limit for stage, limit in within.items() if stage != late.stage}


def _end(context: RaceContext, share: float) -> float:
    """When a run has to end, by the clock, if each of its trainings may take `share` seconds."""
    return context.clock.now() + share * context.plan.trainings if context.timed else math.inf


def _with_verdict(trained: TrainedRun, verdict: str) -> TrainedRun:
    return trained if trained.result is None else replace(trained, run=replace(trained.run, verdict=verdict))


def _run(
    context: RaceContext,
    name: str,
    rung: int,
    steps: tuple[int, ...],
    limits: Mapping[str, float] | None = None,
    earlier: float = 0.0,
    until: float = math.inf,
) -> TrainedRun:
    """Train and score a route; `earlier` are the seconds of its attempt that was out of time, which it continues."""
    plan = context.plan.route(name).plan(steps, context.base, context.seed)
    return run_plan(context, Run(name, rung, sum(steps), earlier, None, None, None, None, ""), plan, limits, until)


def run_plan(
    context: RaceContext, run: Run, plan: Plan, limits: Mapping[str, float] | None = None, until: float = math.inf
) -> TrainedRun:
    """Run a plan and score what comes out; a plan that fails is a run that failed."""
    run = replace(run, stages=tuple(map(stage_summary, plan.stages)))
    names = file_names([*(route.name for route in context.plan.routes), run.route])
    with new_file(context.folder / "recipes" / f"{names[run.route]}-{run.rung}-seed-{context.seed}.yaml") as part:
        part.write_text(to_yaml(plan), "utf-8")
    try:
        result = context.train(plan, limits)
        folds = tuple(_train_folds(context, run, plan, until))
    except (InputError, MissingPart, ModelError, TrainingStopped) as error:  # the other routes may not need this
        context.log(f"{run.route} failed: {error}")
        return TrainedRun(replace(run, verdict=f"failed: {error.problem}"), plan, None)
    return _scored(TrainedRun(run, plan, result, folds), result, context)


def _train_folds(context: RaceContext, run: Run, plan: Plan, until: float) -> Iterator[PlanResult]:
    """Train a plan without each fold, as long as the whole if there is time for that."""
    for number, fold in enumerate(context.folds, 1):
        share = (until - context.clock.now()) / (len(context.folds) - number + 1)
        yield _train_fold(context, run, fold.without(plan, number), number, share)


def _train_fold(context: RaceContext, run: Run, plan: Plan, number: int, share: float) -> PlanResult:
    """A stage that runs out of time, or of tokens, continues with a shorter length."""
    known = any(run.route == route.name for route in context.plan.routes)  # a merged model trains nothing
    within = fold_limits(context.plan, run.route, run.rung - 1, share) if known else {}
    key = fold_key(plan, number)
    while True:
        lengths = context.plan.fold_lengths.get(key, {})
        stages = tuple(at_most(stage, lengths) for stage in plan.stages)
        try:
            return context.train(replace(plan, stages=stages), within)
        except OutOfTime as late:
            (decay,) = (stage.settings.decay for stage in plan.stages if stage.name == late.stage and stage.settings)
            stage, length = late.stage, total_steps(late.step, decay)
            lost = f"without fold {number}, {run.route} trains for {length:,} steps in round {run.rung}"
        except WritingStopped as early:
            if not early.rows:
                raise TrainingStopped(run.route, NO_TOKENS, "", f"raise {option('max_tokens')}") from None
            stage, length, lost = early.stage, early.rows, f"without fold {number}, {writing_line(run.route, early)}"
            if not early.late:
                context.plan, lost = context.plan.warned(f"{TOKEN_LIMIT}: {lost}.", context.log), ""
        fold_lengths = {**context.plan.fold_lengths, key: {**lengths, stage: length}}
        context.change(replace(context.plan, fold_lengths=fold_lengths), lost)
        within = {name: limit for name, limit in within.items() if name != stage}


def _scored(trained: TrainedRun, result: PlanResult, context: RaceContext) -> TrainedRun:
    """The run with its length and its score on the validation rows or the folds, beside the base's."""
    if context.folds:
        scores = fold_scores(trained.fold_encoders(), context.folds, context.memory)
    else:
        scores = main_scores(trained.encoder(), context.tasks, context.memory, show_progress=True)
    comparison, value = compare_averages(scores, context.before), sum(score.value for score in scores) / len(scores)
    seconds = trained.run.seconds + sum(training.seconds for training in (result, *trained.folds))
    steps = trained.run.steps or sum(stage["outcome"]["steps"] for stage in result.stages if "outcome" in stage)
    run = replace(trained.run, steps=steps, seconds=seconds, score=value, verdict="done")
    run = replace(run, difference=comparison.difference, low=comparison.low, high=comparison.high)
    context.log(f"{run.route}: {run.steps:,} steps in {duration(seconds)}, {against_base(run)}")
    return replace(trained, run=run, scores=tuple(scores))


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


def with_merged(context: RaceContext, runs: Sequence[TrainedRun]) -> list[TrainedRun]:
    """The runs of a race, and merged ones after them; the best of all is marked again."""
    best = best_run(runs)
    if best is None or not context.plan.merges:
        return list(runs)
    context.log("\nMerging ...")
    rung = max(trained.run.rung for trained in runs) + 1
    merged, took = list[TrainedRun](), 0.0
    for name, plan in list(_plans(context, runs, best))[: context.plan.merges]:
        if context.timed and len(merged) >= context.plan.merged:
            if _is_late(context, took):
                tried = "1 merged model is" if len(merged) == 1 else f"{len(merged)} merged models are"
                few = f"only {tried} tried" if merged else "nothing is merged"
                context.change(replace(context.plan, merges=len(merged)), few)
                break
            context.change(replace(context.plan, merged=len(merged) + 1))
        began = context.clock.now()
        quiet = replace(context, log=lambda line: None)  # about stages that are reused
        trained = run_plan(quiet, Run(name, rung, 0, 0.0, None, None, None, None, ""), plan)
        took = context.clock.now() - began
        if trained.result is None:
            context.log(f"{name} {trained.run.verdict}")
            continue
        run = replace(trained.run, steps=0, seconds=trained.result.stages[-1]["seconds"], verdict="finished")
        merged.append(replace(trained, run=run, route=best.run.route))
        context.log(f"{name}: {against_base(run)}")
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


def _is_late(context: RaceContext, took: float) -> bool:
    """Whether there is no time for one more, if the last one `took` this many seconds: what follows must still fit."""
    after = context.plan.ending - context.plan.merges * context.plan.scoring
    return context.clock.left < after * context.slower + max(took, context.plan.scoring * context.slower)


def _plans(context: RaceContext, runs: Sequence[TrainedRun], best: TrainedRun) -> Iterator[tuple[str, Plan]]:
    """Every merged model as a plan: the winner's stages and a merge, or two models that are there."""
    base, encoder = str(best.plan.base), best.encoder()
    if why := unlike(encoder, shared_encoder(base)):
        context.log(f"Not merged with the base: {why}")
    else:
        last = f"{PREFIX}{best.plan.stages[-1].name}"
        for share in SHARES:
            merge = stage("merge", name="merged", models=[last, BASE], weights=[1 - share, share])
            name = f"{best.run.route}, merged with {share:.0%} of the base"
            yield name, replace(best.plan, name=name, title=name, stages=(*best.plan.stages, merge))
    same_base = [trained for trained in runs if trained.plan.base == best.plan.base]
    others = [trained for trained in same_base if trained.run.route != best.run.route]
    second = best_run([trained for trained in others if (trained.run.difference or 0) > 0])
    if second is None or context.folds:  # models of all rows have seen every fold
        return
    if why := unlike(encoder, second.encoder()):
        context.log(f"Not merged with {second.run.route}: {why}")
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


def measure_stability(
    context: RaceContext, runs: Sequence[TrainedRun], best: TrainedRun, prepared: Prepared
) -> Stability | None:
    """Train the best route again with another seed, and compare neighbours; None if there are too few texts."""
    texts = list(dict.fromkeys(text for part in prepared.test for _, _, text in part.data.sentences()))[:PANEL_TEXTS]
    route = best.route or best.run.route
    first = next(trained for trained in runs if trained.run.route == route and trained.result)
    second = train_with_next_seed(context, route) if len(texts) > K else None
    if second is None:
        return None
    vectors, again = (trained.encoder().encode(texts) for trained in (first, second))
    return agreement(shared_neighbours(vectors, again))


def train_with_next_seed(context: RaceContext, route: str) -> TrainedRun | None:
    """Train a route again, as long as in the first round, with the next seed; None if that fails or takes too long."""
    seconds = context.plan.trainings * seconds_of(context.plan, 0).get(route, 0.0)
    if not context.has_planned_time(AGREEMENT, seconds):
        return None
    context.log(f"\nTraining {route} again with another seed, to see whether two runs agree on neighbours")
    other, steps = replace(context, seed=context.seed + 1), context.plan.rungs[0].steps[route]
    share = context.left_at_end / context.plan.trainings
    within = limits(context.plan, route, 0, share) if context.timed else {}
    try:
        second = _run(other, route, 1, steps, within, until=_end(context, share))
    except OutOfTime:
        measured = {**context.plan.measured, AGREEMENT: False}
        context.change(replace(context.plan, measured=measured), f"the second seed of {route} was given up")
        return None
    finally:
        remove(context.folder / TRUNKS)
    return second if second.result else None


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
