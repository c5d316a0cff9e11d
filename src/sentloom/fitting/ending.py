"""The end of a fit under the clock: if the machine has become slower, less is measured, and the verdict comes in time.

What decides nothing is measured after what decides, if there still is time for it. If there is no time even for what
decides, the test rows search a smaller sample of their corpus, the same for base and winner; all held-out candidates
stay. Every decision is written to plan.json first, so that a resumed fit does the same.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from sentloom.fitting.plan import WATCHED_MODELS, FitPlan, untested_texts
from sentloom.fitting.prepare import Prepared
from sentloom.fitting.race import RaceContext
from sentloom.fitting.searched import VERIFY_SHARE, evenly_cut
from sentloom.fitting.speed import Speed
from sentloom.fitting.tasks import HeldOut
from sentloom.fitting.verify import HasTime

WHOLE = "the score on the planned corpus"  # what was decided about the test rows, in the plan


def time_for_scores(context: RaceContext, speed: Speed | None) -> HasTime:
    """Whether there is time to score tasks that decide nothing; without a clock there always is."""
    return lambda what, tasks: context.has_time(what, WATCHED_MODELS * speed.seconds(tasks) if speed else 0.0)


def searching_in_time(context: RaceContext, prepared: Prepared, speed: Speed | None) -> Prepared:
    """The data with tests that there is time for. Sets of `--against` are never cut."""
    if speed is None or prepared.against or WHOLE in context.plan.measured:
        return prepared
    seconds = min(context.left_at_end, VERIFY_SHARE * (context.clock.seconds or 0.0))
    fewer = _searching_fewer(context.plan, prepared, int(seconds / speed.each))
    lines = list(_cut_lines(prepared.test, fewer.test))
    plan = replace(context.plan, measured={**context.plan.measured, WHOLE: not lines}, candidates=fewer.searched)
    context.change(plan, "; ".join(lines))
    return fewer


def _searching_fewer(plan: FitPlan, prepared: Prepared, texts: int) -> Prepared:
    """The data with as many candidates as there is time for, if that is time to encode so many texts.

    Scoring takes time besides, which is known from the base and counted in texts. The winner has already encoded the
    texts of the validation rows, unless it was chosen on folds.
    """
    untested, counts = untested_texts(prepared), [count for part in prepared.test for count in candidate_counts(part)]
    besides = max(0, int(plan.testing / plan.each) - untested)
    left = texts - besides - (untested - sum(counts))
    if sum(counts) <= max(left, 0):
        return prepared
    return prepared.searching(replace(plan.candidates, test=evenly_cut(counts, left)))


def candidate_counts(part: HeldOut) -> list[int]:
    """How many candidates are searched, for each direction; none by tasks that search nothing."""
    (task, *_) = part.tasks
    match task.settings.get("task"):
        case "search":
            return [len(task.texts["document"])]
        case "translation":
            return [len(task.texts["symmetric"]) // 2] * 2
        case "neighbours":
            return [len(task.texts["symmetric"]) - len(part.data)]
        case _:
            return []


def _cut_lines(before: Sequence[HeldOut], after: Sequence[HeldOut]) -> Iterator[str]:
    """What the test rows search now, where that is less."""
    for old, new in zip(before, after, strict=True):
        for was, now in dict.fromkeys(zip(candidate_counts(old), candidate_counts(new), strict=True)):
            if now < was:
                yield f"the test rows of {old.name} search {now:,} candidates instead of {was:,}"
