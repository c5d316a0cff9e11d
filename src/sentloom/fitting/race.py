"""The race: rung by rung every route is trained and scored on the rows that choose; the better half goes on."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from accelerate import Accelerator

from sentloom.encoder import Encoder
from sentloom.errors import InputError, TrainingStopped
from sentloom.evaluation.bench import Memory, score_tasks
from sentloom.evaluation.significance import Comparison, compare_averages
from sentloom.evaluation.task import Score, Task
from sentloom.fitting.budget import in_time
from sentloom.fitting.plan import FitPlan, is_making, write_recipe
from sentloom.fitting.result import Run
from sentloom.fitting.routes import Route
from sentloom.pipeline.recipe import read_recipe
from sentloom.pipeline.results import file_names
from sentloom.pipeline.runner import PlanResult, prepare

Log = Callable[[str], None]
BEST = "best"  # the verdict of the run that goes before the gate


@dataclass(frozen=True)
class Trained:
    """A route at a rung: its recipe, what came of it, and how it stands against the base on the rows that choose."""

    run: Run
    recipe: Path
    result: PlanResult | None  # None: it failed
    scores: tuple[Score, ...] = ()

    @property
    def value(self) -> float:
        """What it is ranked by."""
        return float("-inf") if self.run.score is None else self.run.score


@dataclass(frozen=True)
class RaceContext:
    """What all runs share."""

    plan: FitPlan
    base: str
    seed: int
    folder: Path
    tasks: Sequence[Task]  # that choose
    before: Sequence[Score]  # of the base on them
    memory: Memory
    accelerator: Accelerator
    log: Log


def race(context: RaceContext) -> list[Trained]:
    """All runs in order. The winner is the best of them all: a short run may be better than a long one."""
    field = [route.name for route in context.plan.routes]
    trained: list[Trained] = []
    done: set[tuple[str, tuple[int, ...]]] = set()
    for number, rung in enumerate(context.plan.rungs, 1):
        lengths = {(name, rung.steps[name]) for name in field}
        if not field or lengths <= done:  # the data bear no longer runs
            break
        done |= lengths
        context.log(f"\nRound {number} of {len(context.plan.rungs)}: {', '.join(field)}")
        these = [_run(context, name, number, rung.steps[name]) for name in field]
        ranked = sorted(these, key=lambda one: -one.value)
        going = {one.run.route for one in ranked[: rung.keep] if one.result}
        out = "dropped" if rung.keep else "finished"
        trained += [_with_verdict(one, "advanced" if one.run.route in going else out) for one in these]
        field = [one.run.route for one in ranked if one.run.route in going]
    best = winner(trained)
    return [_with_verdict(one, BEST if one is best else _at_end(one, field, trained[-1])) for one in trained]


def _at_end(one: Trained, field: Sequence[str], last: Trained) -> str:
    """A run that advanced has finished if there is no longer round."""
    return "finished" if one.run.route in field and one.run.rung == last.run.rung else one.run.verdict


def twin(context: RaceContext, best: Trained) -> Trained | None:
    """The winner's route once more, as long as in the first round, with the next seed; None where that fails."""
    steps = context.plan.rungs[0].steps[best.run.route]
    context.log(f"\n{best.run.route} once more with another seed, to see whether two runs agree on neighbours")
    found = _run(replace(context, seed=context.seed + 1), best.run.route, 1, steps)
    return found if found.result else None


def winner(trained: Sequence[Trained]) -> Trained | None:
    """The best of all runs; of equals the shorter one. None if all failed."""
    done = [one for one in trained if one.result]
    return max(done, key=lambda one: (one.value, -one.run.steps), default=None)


def _with_verdict(one: Trained, verdict: str) -> Trained:
    return one if one.result is None else replace(one, run=replace(one.run, verdict=verdict))


def _run(context: RaceContext, name: str, rung: int, steps: tuple[int, ...]) -> Trained:
    route = context.plan.route(name)
    names = file_names([one.name for one in context.plan.routes])
    recipe = context.folder / "recipes" / f"{names[name]}-{rung}-seed-{context.seed}.yaml"
    write_recipe(route, steps, context.base, context.seed, recipe)
    run = Run(name, rung, sum(steps), 0.0, None, None, None, None, "", _in_words(route, steps))
    try:
        (runner,) = prepare([read_recipe(recipe).resolve()], context.folder, context.accelerator, context.log)
        (result,) = runner.run()
    except (InputError, TrainingStopped) as error:  # such as a synthesizer that nothing is kept of
        context.log(f"{name}: {error}")
        return Trained(replace(run, verdict=f"failed: {error.problem}"), recipe, None)
    scores = score_chosen(Encoder.load(str(result.model)), context.tasks, context.memory)
    found = compare_averages(scores, context.before)
    value = sum(score.value for score in scores) / len(scores)
    seconds = result.seconds
    run = replace(
        run, seconds=seconds, score=value, difference=found.difference, low=found.low, high=found.high, verdict="done"
    )
    context.log(f"{name}: {run.steps:,} steps in {in_time(seconds)}; {value:.2f}, {_against(found)}")
    return Trained(run, recipe, result, tuple(scores))


def score_chosen(encoder: Encoder, tasks: Sequence[Task], memory: Memory) -> list[Score]:
    """The main score of each task."""
    found = score_tasks(encoder, tasks, memory)
    return [scores[task.main] for task, scores in zip(tasks, found, strict=True)]


def _in_words(route: Route, steps: Sequence[int]) -> tuple[str, ...]:
    lengths = iter(steps)
    return tuple(
        f"{stage['method']}, {stage['rows']:,} sentences"
        if is_making(stage)
        else f"{stage['method']}, {next(lengths):,} steps"
        for stage in route.stages
    )


def _against(found: Comparison) -> str:
    return f"{found.difference:+.2f} against the base ({found.low:+.2f} to {found.high:+.2f})"
