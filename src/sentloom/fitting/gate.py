"""Better or not: the winner against its base on rows that nothing was chosen on."""

from collections.abc import Sequence
from dataclasses import dataclass

from sentloom.evaluation.metrics import Numbers
from sentloom.evaluation.significance import average_interval, compare_averages
from sentloom.evaluation.task import Score, Scores, Task
from sentloom.fitting.gauges import K
from sentloom.fitting.result import Measure, Part, Stability

GENERAL_MARGIN = 2.0  # points that general ability may fall before it is a warning
TOTAL = "mean"


@dataclass(frozen=True)
class Gate:
    """Whether a model may pass, and the reason in words."""

    passed: bool
    reason: str


def measure(task: Task, label: str, part: Part, before: Scores, after: Scores) -> Measure:
    """One task: the base and the winner on the same items."""
    return _measure(task.name, label, part, task.main, [before[task.main]], [after[task.main]])


def total(measures: Sequence[Measure], before: Sequence[Score], after: Sequence[Score]) -> Measure:
    """The mean over the deciding tasks, each task resampled apart; of a single one, that one."""
    if len(measures) == 1:
        return measures[0]
    label = f"mean of {', '.join(one.name for one in measures)}"
    return _measure(TOTAL, label, "deciding", TOTAL, before, after)


def agreement(shares: Numbers) -> Stability:
    """How far two seeds agree on the neighbours of each text."""
    score = Score("mean", shares[:, None])
    low, high = average_interval([score])
    return Stability(score.value, low, high, len(shares), K)


def _measure(
    name: str, label: str, part: Part, metric: str, before: Sequence[Score], after: Sequence[Score]
) -> Measure:
    found = compare_averages(after, before)
    low, high = average_interval(before), average_interval(after)
    values = [sum(score.value for score in some) / len(some) for some in (before, after)]
    return Measure(
        name=name,
        label=label,
        part=part,
        metric=metric,
        items=sum(len(score.items) for score in before),
        before=values[0],
        before_low=low[0],
        before_high=low[1],
        after=values[1],
        after_low=high[0],
        after_high=high[1],
        difference=found.difference,
        low=found.low,
        high=found.high,
        p=found.p,
    )


def judge(deciding: Measure, chosen: float, why_not: str | None = None) -> Gate:
    """A model passes if the whole interval of its gain is above 0.

    `chosen` is its gain on the rows it was chosen on: two halves that disagree show nothing. `why_not` is a reason that
    stands before all.
    """
    said = f"{deciding.before:.2f} before, {deciding.after:.2f} after: {deciding.difference:+.2f}"
    said += f" (95% interval {deciding.low:+.2f} to {deciding.high:+.2f}, {deciding.items:,} held-out items)"
    if why_not:
        return Gate(False, why_not)
    if deciding.low > 0 and chosen <= 0:
        other = f"but {chosen:+.2f} on the rows that it was chosen by"
        return Gate(False, f"Not better than its base on all held-out rows. {said}, {other}.")
    if deciding.low > 0:
        return Gate(True, f"Better than its base on held-out rows. {said}.")
    if deciding.high < 0:
        return Gate(False, f"Worse than its base on held-out rows. {said}.")
    return Gate(False, f"Not shown to be better than its base on held-out rows. {said}.")


def general_warning(general: Measure) -> str | None:
    """A loud word where general ability fell beyond the margin."""
    if general.difference >= -GENERAL_MARGIN:
        return None
    sure = "is" if general.worse else "may be"
    return (
        f"General ability fell: {general.name} {general.before:.2f} before, {general.after:.2f} after "
        f"({general.difference:+.2f}, more than the margin of {GENERAL_MARGIN:g} points). "
        f"Outside your own kind of text this model {sure} worse than its base."
    )
