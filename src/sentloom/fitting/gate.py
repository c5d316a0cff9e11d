"""The gate: whether the winner is better than its base on rows that nothing was chosen on."""

from collections.abc import Sequence
from dataclasses import dataclass

from sentloom.evaluation.significance import average_interval, compare_averages
from sentloom.evaluation.task import Score, Scores, Task
from sentloom.fitting.result import Measure, Part

GENERAL_MARGIN = 2.0  # points that general ability may fall before there is a warning
TOTAL = "mean"


@dataclass(frozen=True)
class Gate:
    """Whether the model passes, and why."""

    passed: bool
    reason: str


def measure(task: Task, label: str, part: Part, before: Scores, after: Scores) -> Measure:
    """One task: the base and the winner on the same items."""
    return _measure(task.name, label, part, task.main, [before[task.main]], [after[task.main]])


def mean_measure(measures: Sequence[Measure], before: Sequence[Score], after: Sequence[Score]) -> Measure:
    """The mean over the deciding tasks, each task resampled by itself; a single measure is its own mean."""
    if len(measures) == 1:
        return measures[0]
    label = f"mean of {', '.join(one.name for one in measures)}"
    return _measure(TOTAL, label, "deciding", TOTAL, before, after)


def _measure(
    name: str, label: str, part: Part, metric: str, before: Sequence[Score], after: Sequence[Score]
) -> Measure:
    found = compare_averages(after, before)
    before_interval, after_interval = average_interval(before), average_interval(after)
    values = [sum(score.value for score in some) / len(some) for some in (before, after)]
    return Measure(
        name=name,
        label=label,
        part=part,
        metric=metric,
        items=sum(len(score.items) for score in before),
        before=values[0],
        before_low=before_interval[0],
        before_high=before_interval[1],
        after=values[1],
        after_low=after_interval[0],
        after_high=after_interval[1],
        difference=found.difference,
        low=found.low,
        high=found.high,
        p=found.p,
    )


def judge(deciding: Measure, validation_gain: float, why_not: str | None = None) -> Gate:
    """A model passes if the whole interval of its gain on the test rows is above 0.

    It must also gain on the validation rows it was chosen by: if the two disagree, nothing is shown. `why_not` is a
    reason to refuse it before any score counts.
    """
    scores = f"{deciding.before:.2f} before, {deciding.after:.2f} after: {deciding.difference:+.2f}"
    scores += f" (95% interval {deciding.low:+.2f} to {deciding.high:+.2f}, {deciding.items:,} test items)"
    if why_not:
        return Gate(False, why_not)
    if deciding.low > 0 and validation_gain <= 0:
        other = f"but {validation_gain:+.2f} on the validation rows"
        return Gate(False, f"Not better than its base on all held-out rows. {scores}, {other}.")
    if deciding.low > 0:
        return Gate(True, f"Better than its base on held-out rows. {scores}.")
    if deciding.high < 0:
        return Gate(False, f"Worse than its base on held-out rows. {scores}.")
    return Gate(False, f"Not shown to be better than its base on held-out rows. {scores}.")


def general_warning(general: Measure) -> str | None:
    """A warning if general ability fell by more than the margin."""
    if general.difference >= -GENERAL_MARGIN:
        return None
    verb = "is" if general.worse else "may be"
    return (
        f"General ability fell: {general.name} {general.before:.2f} before, {general.after:.2f} after "
        f"({general.difference:+.2f}, more than the margin of {GENERAL_MARGIN:g} points). "
        f"Outside your own kind of text this model {verb} worse than its base."
    )
