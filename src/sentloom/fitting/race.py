"""The race: round by round every route is trained and scored on the validation rows; the better half continues."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from accelerate import Accelerator

from sentloom.encoder import Encoder
from sentloom.errors import InputError, TrainingStopped
from sentloom.evaluation.bench import Memory, score_tasks
from sentloom.evaluation.significance import compare_averages
from sentloom.evaluation.task import Score, Task
from sentloom.files import new_file
from sentloom.fitting.plan import FitPlan
from sentloom.fitting.request import Log
from sentloom.fitting.result import Run
from sentloom.pipeline.plan import Plan, to_yaml
from sentloom.pipeline.results import file_names
from sentloom.pipeline.runner import PlanResult, prepare
from sentloom.pipeline.stages import Stage
from sentloom.progress import duration

BEST = "best"  # the verdict of the run that the gate tests


@dataclass(frozen=True)
class Trained:
    """A route in one round: its plan, what came of it, and how it compares with the base on the validation rows."""

    run: Run
    plan: Plan
    result: PlanResult | None  # None: it failed

    @property
    def value(self) -> float:
        """What it is ranked by."""
        return float("-inf") if self.run.score is None else self.run.score

    def encoder(self) -> Encoder:
        """The trained model."""
        assert self.result is not None
        return Encoder.load(str(self.result.model))


@dataclass(frozen=True)
class RaceContext:
    """What all runs share."""

    plan: FitPlan
    base: str
    seed: int
    folder: Path
    tasks: Sequence[Task]  # of the validation rows
    before: Sequence[Score]  # of the base on them
    memory: Memory
    accelerator: Accelerator
    log: Log


def race(context: RaceContext) -> list[Trained]:
    """All runs in order. The best of them all wins: a short run may be better than a long one."""
    field = [route.name for route in context.plan.routes]
    trained: list[Trained] = []
    done: set[tuple[str, tuple[int, ...]]] = set()
    for number, rung in enumerate(context.plan.rungs, 1):
        lengths = {(name, rung.steps[name]) for name in field}
        if not field or lengths <= done:  # there is not enough data for longer runs
            break
        done |= lengths
        context.log(f"\nRound {number} of {len(context.plan.rungs)}: {'; '.join(field)}")
        these = [_run(context, name, number, rung.steps[name]) for name in field]
        ranked = sorted(these, key=lambda one: -one.value)
        going = {one.run.route for one in ranked[: rung.keep] if one.result}
        out = "dropped" if rung.keep else "finished"
        trained += [_with_verdict(one, "advanced" if one.run.route in going else out) for one in these]
        field = [one.run.route for one in ranked if one.run.route in going]
    best = best_run(trained)
    return [_with_verdict(one, BEST if one is best else _at_end(one, field, trained[-1])) for one in trained]


def _at_end(one: Trained, field: Sequence[str], last: Trained) -> str:
    """A run that advanced has finished if there is no longer round."""
    return "finished" if one.run.route in field and one.run.rung == last.run.rung else one.run.verdict


def best_run(trained: Sequence[Trained]) -> Trained | None:
    """The best of all runs; among equals the shorter one. None if all failed."""
    done = [one for one in trained if one.result]
    return max(done, key=lambda one: (one.value, -one.run.steps), default=None)


def train_with_next_seed(context: RaceContext, best: Trained) -> Trained | None:
    """Train the best route again, as long as in the first round, with the next seed; None if that fails."""
    steps = context.plan.rungs[0].steps[best.run.route]
    context.log(f"\nTraining {best.run.route} again with another seed, to see whether two runs agree on neighbours")
    found = _run(replace(context, seed=context.seed + 1), best.run.route, 1, steps)
    return found if found.result else None


def _with_verdict(one: Trained, verdict: str) -> Trained:
    return one if one.result is None else replace(one, run=replace(one.run, verdict=verdict))


def _run(context: RaceContext, name: str, rung: int, steps: tuple[int, ...]) -> Trained:
    plan = context.plan.route(name).plan(steps, context.base, context.seed)
    names = file_names([one.name for one in context.plan.routes])
    with new_file(context.folder / "recipes" / f"{names[name]}-{rung}-seed-{context.seed}.yaml") as part:
        part.write_text(to_yaml(plan), "utf-8")
    run = Run(name, rung, sum(steps), 0.0, None, None, None, None, "", tuple(map(stage_summary, plan.stages)))
    try:
        (runner,) = prepare([plan], context.folder, context.accelerator, context.log)
        (result,) = runner.run()
    except (InputError, TrainingStopped) as error:  # for example if nothing is kept of what a synthesizer wrote
        context.log(f"{name} failed: {error}")
        return Trained(replace(run, verdict=f"failed: {error.problem}"), plan, None)
    return Trained(_scored(run, result, context), plan, result)


def _scored(run: Run, result: PlanResult, context: RaceContext) -> Run:
    """The run with its length and its score on the validation rows, beside the base's."""
    scores = main_scores(Encoder.load(str(result.model)), context.tasks, context.memory)
    found = compare_averages(scores, context.before)
    value, seconds = sum(score.value for score in scores) / len(scores), result.seconds
    steps = run.steps or sum(one["outcome"]["steps"] for one in result.stages if one["produces"] == "encoder")
    context.log(
        f"{run.route}: {steps:,} steps in {duration(seconds)}, score {value:.2f}, "
        f"{found.difference:+.2f} compared with the base ({found.low:+.2f} to {found.high:+.2f})"
    )
    done = replace(run, steps=steps, seconds=seconds, score=value, verdict="done")
    return replace(done, difference=found.difference, low=found.low, high=found.high)


def main_scores(encoder: Encoder, tasks: Sequence[Task], memory: Memory) -> list[Score]:
    """The main score of each task."""
    found = score_tasks(encoder, tasks, memory)
    return [scores[task.main] for task, scores in zip(tasks, found, strict=True)]


def stage_summary(one: Stage) -> str:
    """A stage in a few words, for the report."""
    if one.settings is not None:
        steps, epochs = one.settings.steps, one.settings.epochs
        return f"{one.method}, {steps:,} steps" if steps else f"{one.method}, {epochs:g} epochs"
    rows = getattr(one.options, "rows", None)
    return f"{one.method}, {rows:,} rows" if rows else one.method
