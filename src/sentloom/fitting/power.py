"""Power: the smallest gain that the test rows can show, stated before anything is trained."""

from collections.abc import Sequence

from sentloom.encoder import Encoder
from sentloom.errors import NothingToGain, option
from sentloom.evaluation.bench import Memory, main_scores
from sentloom.evaluation.significance import (
    CORRELATION,
    LEAST_CLUSTERS,
    LEVEL,
    corrected_level,
    count_clusters,
    effective_clusters,
    smallest_gain,
)
from sentloom.evaluation.task import Score, Task
from sentloom.fitting.gate import few_clusters
from sentloom.fitting.result import Power
from sentloom.fitting.uses import earlier_uses

PROBABILITY = 0.8  # with which the smallest gain is found
HIGHEST = 100.0
ONLY_WORSE = "without labels no gain can be shown, only that a model is worse"
NO_ROOM = "no gain can be shown: the base already has the highest score on every test row"


def expected_power(base: Encoder, tasks: Sequence[Task], memory: Memory, *, label_free: bool = False) -> Power:
    """What the tasks that decide can show, at the level that the next verdict on them will have."""
    scores, level = main_scores(base, tasks, memory, show_progress=True), corrected_level(1 + earlier_uses(tasks))
    return power_of(scores, level, label_free=label_free)


def refuse_no_room(power: Power, where: str) -> None:
    """Stop before anything is trained, if nothing could be shown."""
    if power.note == NO_ROOM:
        other = option("against", "SET")
        fix = f"add rows that the base gets wrong, name another set ({other}), or train anyway: {option('force', True)}"
        raise NothingToGain(where, power.note, "", fix)


def power_of(base: Sequence[Score], level: float = LEVEL, *, label_free: bool = False) -> Power:
    """What test rows can show, from the scores of the base alone; without labels, no gain."""
    clusters, effective = count_clusters(base), effective_clusters(base)
    gain = smallest_gain(base, level=level, power=PROBABILITY, correlation=CORRELATION)
    note = _why_nothing(base, gain, clusters, effective) or (ONLY_WORSE if label_free else "")
    return Power(None if note else gain, PROBABILITY, CORRELATION, clusters, level, effective, note)


def _why_nothing(base: Sequence[Score], gain: float | None, clusters: int, effective: float) -> str:
    if effective < LEAST_CLUSTERS:
        few, other = few_clusters(clusters, effective), option("against", "SET")
        return f"no difference can be shown: {few}; add rows with other texts, or name a set with {other}"
    if all(score.value >= HIGHEST for score in base):
        return NO_ROOM
    if gain is None:
        return "the smallest gain that the test rows can show is unknown: the scores of the base do not vary on them"
    return ""


def power_line(power: Power) -> str:
    """What the test rows can show, in words."""
    if power.gain is None:
        return power.note
    rows = f"the test rows ({power.clusters:,} clusters)"
    level = f" ({100 * power.level:.4g}% interval, because they were used before)" if power.level > LEVEL else ""
    return f"{rows} have {power.probability:.0%} power to detect a gain of {power.gain:.1f} points{level}"
