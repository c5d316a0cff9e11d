"""The gate: whether the winner is better than its base on the test rows, and what those can show at all.

The smallest gain that they can show (their power) is stated before anything is trained. Every model that is tested on
the same rows is counted as a use of them, and raises the level of the next interval.
"""

import hashlib
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple, assert_never

import pyarrow as pa

from sentloom.data.hygiene.leaks import forms
from sentloom.encoder import Encoder
from sentloom.errors import DamagedFile, DiskError, NothingToGain, option
from sentloom.evaluation.bench import Memory, main_scores
from sentloom.evaluation.metrics import CORRELATIONS
from sentloom.evaluation.significance import (
    CORRELATION,
    LEAST_CLUSTERS,
    LEVEL,
    are_enough,
    average_interval,
    compare_averages,
    corrected_level,
    count_clusters,
    effective_clusters,
    is_within,
    smallest_gain,
)
from sentloom.evaluation.task import Score, Scores, Task
from sentloom.files import cache_folder, read_record, write_record
from sentloom.fitting.measures import NO_DIFFERENCE, Limit, Measure, Part, Power, Verdict, metric_name, rounded_down
from sentloom.fitting.result import Run, chosen_on
from sentloom.progress import note

GENERAL_MARGIN = 2.0  # points that general ability may fall before there is a warning
EQUIVALENT = 0.5  # points: a difference shown to be smaller than this is none that matters
TOTAL = "mean"
WITHOUT_LABELS = (
    "No difference can be shown without labels: label-free scores can only reveal a worse model, and this one is not "
    "shown to be worse"
)

PROBABILITY = 0.8  # with which the smallest gain is detected
HIGHEST = 100.0  # score

FOLDER = "test-uses"  # in the cache: a file per use
SAME = 0.5  # of the smaller set that two sets share, to count as the same rows
MINED_ROWS = "titles and headings of your documents"


@dataclass(frozen=True)
class Gate:
    """What the test rows show, and why."""

    verdict: Verdict
    reason: str

    @property
    def passed(self) -> bool:
        """Whether the model is written."""
        return self.verdict in ("better", "closer")


@dataclass(frozen=True)
class Basis:
    """What a verdict rests on."""

    other: str = "its base"  # the model that has to be beaten
    folds: int = 0  # of the training rows that the model was chosen on; 0: validation rows
    label_free: bool = False  # scores without labels can show that a model is worse, and nothing else
    agreement: bool = False  # without labels, with a teacher: the scores say how close a model is to it
    mined: bool = False  # whether the structure of documents gave the rows: the verdict says so

    @property
    def rows(self) -> str:
        """What the test rows are."""
        return MINED_ROWS if self.mined else "held-out rows"


USUAL = Basis()


def judge(deciding: Measure, validation_gain: float, basis: Basis = USUAL, why_not: str | None = None) -> Gate:
    """A model is better than another one if the whole interval of its gain on the test rows is above 0.

    It must also gain on the rows it was chosen by: if the two disagree, nothing is shown. Nothing is shown either by
    fewer clusters than intervals hold for; a few large clusters count as fewer. `why_not` is a reason that comes before
    any score.
    """
    if why_not:
        return Gate(NO_DIFFERENCE, why_not)
    if not deciding.has_enough_clusters:
        few = few_clusters(deciding.clusters, deciding.effective)
        return Gate(NO_DIFFERENCE, f"No difference can be shown: {few}. {_scores(deciding)}.")
    if basis.label_free and not deciding.worse:
        return Gate(NO_DIFFERENCE, f"{WITHOUT_LABELS}. {_scores(deciding)}.")
    if basis.agreement:
        return _agreement(deciding, validation_gain)
    if _is_vetoed(deciding, validation_gain):
        but = f"but {validation_gain:+.2f} on {chosen_on(basis.folds)}"
        return Gate(NO_DIFFERENCE, f"Not better than {basis.other} on all {basis.rows}. {_scores(deciding)}, {but}.")
    if deciding.better:
        return Gate("better", f"Compared with {basis.other} on {basis.rows}: {_scores(deciding)}.")
    if deciding.worse:
        return Gate("worse", f"Compared with {basis.other} on {basis.rows}: {_scores(deciding)}.")
    same = f" It is within {EQUIVALENT:g} points of {basis.other}." if deciding.equivalent else ""
    return Gate(NO_DIFFERENCE, f"Not shown to be better than {basis.other} on {basis.rows}. {_scores(deciding)}.{same}")


def untested(decided: Measure, folds: int) -> Gate:
    """Without test rows nothing is proven: the rows that chose the winner make it look better than it is."""
    why = f"No rows are held out, so no difference is proven. By cross-validation on {chosen_on(folds)}"
    return Gate(NO_DIFFERENCE, f"{why}: {_scores(decided)}.")


def _agreement(deciding: Measure, validation_gain: float) -> Gate:
    """Closer to the teacher, on all rows, or not: nothing else was tested."""
    if deciding.better and validation_gain > 0:
        tested = "Agreement with the teacher was tested; whether the model is of more use was not"
        return Gate("closer", f"Closer to its teacher on held-out texts: {_scores(deciding)}. {tested}.")
    return Gate(NO_DIFFERENCE, f"Not shown to be closer to its teacher on held-out texts. {_scores(deciding)}.")


def few_clusters(clusters: int, effective: float) -> str:
    """Why nothing can be shown on these test rows."""
    large = "" if effective == clusters else f", which count as {rounded_down(effective)} because some are large"
    return f"the test rows form {clusters:,} independent clusters{large}, and intervals need {LEAST_CLUSTERS}"


def _is_vetoed(deciding: Measure, validation_gain: float) -> bool:
    """Whether validation rows contradict a gain on the test rows."""
    return deciding.better and validation_gain <= 0


def _scores(measured: Measure) -> str:
    name = metric_name(measured.metric)
    scores = f"{name} {measured.before:.2f} before, {measured.after:.2f} after, {measured.difference:+.2f}"
    interval = f"{100 * measured.level:.4g}% interval {measured.low:+.2f} to {measured.high:+.2f}"
    return f"{scores} ({interval}, {measured.items:,} test items in {measured.clusters:,} clusters)"


def which_to_believe(deciding: Measure, chosen: Run, runs: int, folds: int = 0) -> str:
    """Whether the rows that chose the winner agree with the test rows, and which to believe if not, as `judge` does."""
    if chosen.difference is None:
        return ""
    both = f"{chosen.difference:+.2f} on {chosen_on(folds)} and {deciding.difference:+.2f} on the test rows"
    gain = "gain" if min(chosen.difference, deciding.difference) > 0 else "difference"
    if not deciding.has_enough_clusters:
        return f"The {gain} is {both}: too few clusters to say whether the two agree."
    if _is_vetoed(deciding, chosen.difference):
        why = "Chance favoured one of the two; more rows would settle it, and until then no difference is claimed"
        return f"The {gain}s disagree: {both}. {why}."
    if _are_compatible(deciding, chosen):
        alike = gain == "gain" or max(chosen.difference, deciding.difference) < 0
        return f"The {gain}s agree: {both}." if alike else f"The {gain} is {both}, and chance can explain the gap."
    why = "nothing was chosen on them"
    if chosen.difference > deciding.difference and runs > 1:
        why += f", while the best of {runs} runs on the rows that choose looks better than it is"
    return f"The {gain}s disagree: {both}. Believe the test rows: {why}."


def _are_compatible(deciding: Measure, chosen: Run) -> bool:
    """Whether two differences are apart by no more than their intervals together explain."""
    assert chosen.difference is not None
    own = 0.0 if chosen.low is None or chosen.high is None else (chosen.high - chosen.low) / 2
    half = math.hypot((deciding.high - deciding.low) / 2, own)
    return abs(chosen.difference - deciding.difference) <= half


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


def measure(task: Task, label: str, part: Part, before: Scores, after: Scores, level: float = LEVEL) -> Measure:
    """One task: the base and the winner on the same items."""
    named = _Named(task.name, label, part, task.main)
    measured = _measure(named, [before[task.main]], [after[task.main]], level)
    documents = len(task.texts["document"]) if "document" in task.texts else None
    also = {name: (before[name].value, after[name].value) for name in before if name != task.main}
    of_documents = task.settings.of_documents or documents
    return replace(measured, documents=documents, of_documents=of_documents, also=also)


def mean_measure(
    measures: Sequence[Measure], before: Sequence[Score], after: Sequence[Score], level: float = LEVEL
) -> Measure:
    """The mean over the deciding tasks; a single measure is its own mean."""
    if len(measures) == 1:
        return measures[0]
    label = f"mean of {', '.join(Path(measured.name).name for measured in measures)}"
    return _measure(_Named(TOTAL, label, "deciding", TOTAL), before, after, level)


class _Named(NamedTuple):
    name: str
    label: str
    part: Part
    metric: str


def _measure(named: _Named, before: Sequence[Score], after: Sequence[Score], level: float) -> Measure:
    comparison = compare_averages(after, before, level=level)
    before_interval, after_interval = average_interval(before), average_interval(after)
    values = [sum(score.value for score in scores) / len(scores) for scores in (before, after)]
    widest = 200.0 if any(score.metric in CORRELATIONS for score in after) else 100.0  # and JSON has no infinity
    return Measure(
        **named._asdict(),
        items=sum(len(score.items) for score in before),
        before=values[0],
        before_low=before_interval[0],
        before_high=before_interval[1],
        after=values[1],
        after_low=after_interval[0],
        after_high=after_interval[1],
        difference=comparison.difference,
        low=max(comparison.low, -widest),
        high=min(comparison.high, widest),
        p=comparison.p,
        level=level,
        clusters=comparison.clusters,
        effective=comparison.effective,
        equivalent=are_enough(comparison.effective) and is_within(after, before, EQUIVALENT),
    )


def expected_power(base: Encoder, tasks: Sequence[Task], memory: Memory, *, label_free: bool = False) -> Power:
    """What the tasks that decide can show, at the level that the next verdict on them will have."""
    scores, level = main_scores(base, tasks, memory, show_progress=True), corrected_level(1 + earlier_uses(tasks))
    return power_of(scores, level, label_free=label_free)


def refuse_no_room(power: Power, where: str) -> None:
    """Stop before anything is trained, if nothing could be shown."""
    if power.limit is Limit.HIGHEST:
        other = option("against", "SET")
        fix = f"add rows that the base gets wrong, name another set ({other}), or train anyway: {option('force', True)}"
        raise NothingToGain(where, limit_line(power.limit, power), "", fix)


def power_of(base: Sequence[Score], level: float = LEVEL, *, label_free: bool = False) -> Power:
    """What test rows can show, from the scores of the base alone; without labels, no gain."""
    clusters, effective = count_clusters(base), effective_clusters(base)
    gain = smallest_gain(base, level=level, power=PROBABILITY, correlation=CORRELATION)
    limit = _limit(base, gain, effective) or (Limit.LABELS if label_free else None)
    return Power(None if limit else gain, PROBABILITY, CORRELATION, clusters, level, effective, limit)


def no_test_rows(folds: Sequence[Score]) -> Power:
    """What is known without test rows, from the scores of the base on the folds."""
    clusters, effective = count_clusters(folds), effective_clusters(folds)
    return Power(None, PROBABILITY, CORRELATION, clusters, LEVEL, effective, Limit.NOT_HELD_OUT)


def _limit(base: Sequence[Score], gain: float | None, effective: float) -> Limit | None:
    if not are_enough(effective):
        return Limit.CLUSTERS
    if all(score.value >= HIGHEST for score in base):
        return Limit.HIGHEST
    return Limit.CONSTANT if gain is None else None


def limit_line(limit: Limit, power: Power) -> str:
    """Why the test rows can show no gain, in words."""
    match limit:
        case Limit.CLUSTERS:
            few, other = few_clusters(power.clusters, power.effective), option("against", "SET")
            return f"no difference can be shown: {few}; add rows with other texts, or name a set with {other}"
        case Limit.HIGHEST:
            return "no gain can be shown: the base already has the highest score on every test row"
        case Limit.CONSTANT:
            scores = "the scores of the base do not vary on them"
            return f"the smallest gain that the test rows can show is unknown: {scores}"
        case Limit.NOT_HELD_OUT:
            return "nothing can be proven on test rows: there are none, because so few rows per label all train"
        case Limit.LABELS:
            return "without labels no gain can be shown, only that a model is worse"
        case _:
            assert_never(limit)


def power_line(power: Power) -> str:
    """What the test rows can show, in words."""
    if power.limit or power.gain is None:
        return limit_line(power.limit or Limit.CONSTANT, power)
    rows = f"the test rows ({power.clusters:,} clusters)"
    level = f" ({100 * power.level:.4g}% interval, because they were used before)" if power.level > LEVEL else ""
    return f"{rows} have {power.probability:.0%} power to detect a gain of {power.gain:.1f} points{level}"


@dataclass(frozen=True)
class Uses:
    """Which use of the test rows this is, from 1, and the hash of their content."""

    number: int
    sha256: str


def record_use(tasks: Sequence[Task], model: str, other: str) -> Uses:
    """Record that a model, by its fingerprint, is tested against another one; before it is, so that a crash counts too.

    A model that is compared with itself shows nothing, so that is no use.
    """
    content = hashlib.sha256(str(sorted(_asked(tasks))).encode()).hexdigest()
    if model == other:
        return Uses(max(1, earlier_uses(tasks)), content)
    path = _folder() / f"{hashlib.sha256(f'{content} {model} {other}'.encode()).hexdigest()[:32]}.json"
    if known := _read(path):
        return Uses(known["number"], content)
    number = 1 + earlier_uses(tasks)
    try:
        write_record(path, {"number": number, "sha256": content, "model": model, "asked": sorted(_asked(tasks))})
    except (OSError, DiskError) as error:
        note(f"uses of the test rows cannot be counted in {path.parent}: {error}")
    return Uses(number, content)


def earlier_uses(tasks: Sequence[Task]) -> int:
    """How many models have been tested on these rows; asking is no use."""
    asked = _asked(tasks)
    return sum(_is_same(asked, set(record["asked"])) for record in _records(_folder()))


def _folder() -> Path:
    return cache_folder() / FOLDER


def _asked(tasks: Sequence[Task]) -> set[int]:
    """Hashes of what the tasks ask, or of their texts if they do not say; case and punctuation do not matter."""
    texts = [" ".join(item) for task in tasks for item in task.items or zip(*task.texts.values(), strict=False)]
    return {int(key) for key in forms(pa.array(texts, pa.large_string()))[-1]}


def _is_same(asked: set[int], other: set[int]) -> bool:
    return bool(asked and other) and len(asked & other) > SAME * min(len(asked), len(other))


def _records(folder: Path) -> Iterator[dict[str, Any]]:
    for path in sorted(folder.glob("*.json")):
        if record := _read(path):
            yield record


def _read(path: Path) -> dict[str, Any] | None:
    try:
        return read_record(path, "") if path.is_file() else None
    except DamagedFile:
        note(f"{path} is damaged and is not counted")
        return None
