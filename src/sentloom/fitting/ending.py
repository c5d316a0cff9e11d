"""The end of a fit under the clock: if the machine has become slower, less is measured, and the verdict is in time.

What decides nothing is measured after what decides, if there still is time for it. If there is no time even for what
decides, the test rows search a smaller sample of their corpus, the same for base and winner; all held-out candidates
stay. Every decision is written to plan.json first, so that a resumed fit does the same.

If the winner was trained for several dimensions, both models are also scored with vectors cut to each of them.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from sentloom.encoder import Encoder
from sentloom.encoder.heads import cut
from sentloom.encoder.tokens import Prompts, Role
from sentloom.evaluation.bench import Memory, score_tasks, vectors_of
from sentloom.evaluation.task import Kind, Scores, Task
from sentloom.fitting.budget import Speed
from sentloom.fitting.gate import mean_measure, measure
from sentloom.fitting.plan import WATCHED_MODELS, FitPlan, untested_texts
from sentloom.fitting.prepare import Prepared
from sentloom.fitting.race import RaceContext
from sentloom.fitting.result import Measure
from sentloom.fitting.tasks import VERIFY_SHARE, HeldOut, evenly_cut, task_labels
from sentloom.fitting.verify import Duel, HasTime
from sentloom.search.vectors import Vectors

WHOLE = "the score on the planned corpus"  # what was decided about the test rows, in the plan


def time_for_scores(context: RaceContext, speed: Speed | None) -> HasTime:
    """Whether there is time to score tasks that decide nothing; without a clock there always is."""
    return lambda what, tasks: context.has_time(what, WATCHED_MODELS * speed.seconds(tasks) if speed else 0.0)


def searching_in_time(context: RaceContext, prepared: Prepared, speed: Speed | None) -> Prepared:
    """The data with tests that there is time for. Sets of `--against` are never cut."""
    if speed is None or prepared.against or WHOLE in context.plan.measured:
        return prepared
    seconds = min(context.left_at_end, VERIFY_SHARE * (context.clock.seconds or 0.0))
    fewer = _searching_fewer(context.plan, prepared, int(seconds / speed.per_text))
    lines = list(_cut_lines(prepared.test, fewer.test))
    plan = replace(context.plan, measured={**context.plan.measured, WHOLE: not lines}, candidates=fewer.searched)
    context.change(plan, "; ".join(lines))
    return fewer


def _searching_fewer(plan: FitPlan, prepared: Prepared, texts: int) -> Prepared:
    """The data with as many candidates as there is time for: time to encode `texts` texts.

    Scoring takes time besides, which is known from the base and counted in texts. The winner has already encoded the
    texts of the validation rows, unless it was chosen on folds.
    """
    untested, counts = untested_texts(prepared), [count for part in prepared.test for count in candidate_counts(part)]
    besides = max(0, int(plan.testing / plan.seconds_per_text) - untested)
    left = texts - besides - (untested - sum(counts))
    if sum(counts) <= max(left, 0):
        return prepared
    return prepared.searching(replace(plan.candidates, test=evenly_cut(counts, left)))


def candidate_counts(part: HeldOut) -> list[int]:
    """How many candidates are searched, for each direction; none by tasks that search nothing."""
    (task, *_) = part.tasks
    match task.settings.task:
        case Kind.SEARCH:
            return [len(task.texts["document"])]
        case Kind.TRANSLATION:
            return [len(task.texts["symmetric"]) // 2] * 2
        case Kind.NEIGHBOURS:
            return [len(task.texts["symmetric"]) - len(part.data)]
        case _:
            return []


def _cut_lines(before: Sequence[HeldOut], after: Sequence[HeldOut]) -> Iterator[str]:
    """What the test rows search now, where that is less."""
    for old, new in zip(before, after, strict=True):
        for was, now in dict.fromkeys(zip(candidate_counts(old), candidate_counts(new), strict=True)):
            if now < was:
                yield f"the test rows of {old.name} search {now:,} candidates instead of {was:,}"


def dimensions_in_time(context: RaceContext, duel: Duel, tasks: Sequence[Task]) -> tuple[Measure, ...]:
    """Both models with every dimension that the winner was trained for.

    That costs little once there are vectors, unless a probe is trained for each dimension: then only while there is
    time for one more.
    """
    measures, took, probed = list[Measure](), 0.0, any(bool(task.settings.probe) for task in tasks)
    for dimension in duel.after.dimensions:
        if not probed or context.has_time(f"the score with {dimension} dimensions", took):
            began = context.clock.now()
            measures += dimension_measures(duel, tasks, [dimension])
            took = context.clock.now() - began
    return tuple(measures)


def dimension_measures(duel: Duel, tasks: Sequence[Task], dimensions: Sequence[int]) -> tuple[Measure, ...]:
    """Both models on what decides, for every dimension that the winner was trained for."""
    return tuple(_measured(duel, tasks, dimension) for dimension in dimensions)


def _measured(duel: Duel, tasks: Sequence[Task], dimension: int) -> Measure:
    before, after = (_scores(encoder, dimension, duel.memory, tasks) for encoder in (duel.base, duel.after))
    scored = zip(tasks, task_labels(tasks), before, after, strict=True)
    measures = [measure(task, label, "watched", old, new) for task, label, old, new in scored]
    old, new = ([scores[task.main] for task, scores in zip(tasks, side, strict=True)] for side in (before, after))
    mean = mean_measure(measures, old, new)
    return replace(mean, name=str(dimension), label=f"{dimension} dimensions", part="watched")


def _scores(encoder: Encoder, dimension: int, memory: Memory, tasks: Sequence[Task]) -> list[Scores]:
    """The scores of an encoder with its first `dimension` dimensions."""
    if dimension >= encoder.dimension:
        return score_tasks(encoder, tasks, memory)
    return score_tasks(Shortened(encoder, dimension, memory), tasks)


@dataclass(frozen=True)
class Shortened:
    """An encoder whose vectors are cut; whole vectors are cached, so nothing is encoded again."""

    encoder: Encoder
    dimension: int
    memory: Memory

    @property
    def prompts(self) -> Prompts:
        """The prompts of the encoder."""
        return self.encoder.prompts

    def encode(self, texts: Sequence[str], *, role: Role = "symmetric", show_progress: bool = False) -> Vectors:
        """The first `dimension` dimensions of the vectors, at unit length."""
        return cut(vectors_of(self.encoder, texts, role, self.memory), self.dimension, unit_length=True)

    def fingerprint(self) -> str:
        """The fingerprint of the encoder, with the dimension."""
        return f"{self.encoder.fingerprint()}-{self.dimension}"
