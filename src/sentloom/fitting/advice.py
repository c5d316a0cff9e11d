"""What may help after the gate refused a model, based on what was measured."""

import math
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path

from sentloom.errors import option
from sentloom.evaluation.significance import LEAST_CLUSTERS
from sentloom.fitting.budget import LEAST_STEPS
from sentloom.fitting.result import Measure
from sentloom.fitting.routes import SkippedRoute

LITTLE_LEFT = 95.0  # a base with this score has little left to gain
MOST_CLUSTERS = 100_000  # in test rows
POWER = ((1.96 + 0.84) / 1.96) ** 2  # times as many clusters show a gain in 80% of cases instead of every second one


def advise(
    decided: Measure,
    validation_gain: float,
    *,
    label_free: bool,
    not_prose: bool,
    skipped: Sequence[SkippedRoute],
    folder: Path,
    steps: int,  # of the training; 0: nothing was trained for it
) -> tuple[str, ...]:
    """A few sentences: what the numbers mean, and what to try next."""
    if not_prose:
        return (
            "Give labelled pairs, or name a labelled set that decides (--against): short or repetitive texts show too "
            "little without labels. If the base does not know their language, choose one that does (--base).",
        )
    short = (_too_short(steps),) if 0 < steps <= LEAST_STEPS and not decided.worse else ()
    return (*_sentences(decided, validation_gain, label_free, skipped, folder), *short)


def _sentences(
    decided: Measure, validation_gain: float, label_free: bool, skipped: Sequence[SkippedRoute], folder: Path
) -> Iterator[str]:
    if not label_free or decided.worse or decided.effective < LEAST_CLUSTERS:
        yield _meaning(decided, validation_gain)
    if decided.before >= LITTLE_LEFT:
        yield f"The base already scores {decided.before:.2f} of 100 on these rows, which leaves little to gain."
    if label_free:
        yield tick_advice(folder)
        yield (
            "Raw text alone rarely improves a sentence encoder. A few hundred labelled pairs (a question and its "
            "answer, a title and its body) as a second file help most; labelled rows can also decide "
            f"({option('against', 'SET')})."
        )
    else:
        yield "What may help: labels checked for mistakes, other kinds of pairs from the same domain, another base."
    late = [one.name for one in skipped if one.for_time]
    if late:
        yield f"Not tried for lack of time: {', '.join(late)}. A larger budget leaves time for more routes."


def tick_advice(folder: Path) -> str:
    """That people can decide. It holds if the models disagree often enough, see `ticking.fits`."""
    return (
        f"You can decide in ten minutes: `sentloom tick {shlex.quote(str(folder))}` shows about 30 queries on "
        "which base and model disagree, and asks which result is right."
    )


def _too_short(steps: int) -> str:
    return f"Only {steps} steps were trained, which teaches little: a larger budget ({option('budget')}) may gain more."


def _meaning(decided: Measure, validation_gain: float) -> str:
    if decided.effective < LEAST_CLUSTERS:
        return _too_few(decided)
    if decided.worse:
        return f"Training made the base worse by {-decided.difference:.2f} points: keep the base as it is."
    if decided.better and validation_gain <= 0:
        return (
            "The validation rows and the test rows disagree: more rows, or a separate set (--against), would settle it."
        )
    needed = _clusters_needed(decided)
    if needed is None:
        return (
            f"The base is at least as good ({decided.before:.2f} against {decided.after:.2f}): keep the base as it is."
        )
    return (
        f"A gain of {decided.difference:+.2f} in {decided.clusters:,} test clusters may be chance; about {needed:,} "
        "would detect it with 80% power (rows that share a text count as one cluster). A tenth of the rows "
        "is used for testing, up to a fifth of small files; name a larger set with "
        f"{option('against', 'SET')}."
    )


def _too_few(decided: Measure) -> str:
    more = math.ceil(LEAST_CLUSTERS - decided.effective)
    return (
        f"Too few test clusters to show anything: at least {more} more are needed. Add rows that share no text with "
        f"the others, at least three for each of these clusters, or name a set with {option('against', 'SET')}."
    )


def _clusters_needed(decided: Measure) -> int | None:
    """How many clusters show this gain in 80% of cases (an interval's width falls with their root); None without one.

    A gain that needs more than `MOST_CLUSTERS` is as good as none.
    """
    if decided.difference <= 0:
        return None
    half = decided.difference - decided.low
    needed = math.ceil(POWER * decided.clusters * (half / decided.difference) ** 2)
    return max(needed, decided.clusters + 1) if needed <= MOST_CLUSTERS else None
