"""What may help after the gate refused a model, based on what was measured."""

import math
from collections.abc import Iterator, Sequence

from sentloom.fitting.result import Measure
from sentloom.fitting.routes import SkippedRoute

LITTLE_LEFT = 95.0  # a base with this score has little left to gain
MOST_ITEMS = 100_000  # a gain that needs more items than this is as good as none


def advise(
    decided: Measure, validation_gain: float, *, label_free: bool, not_prose: bool, skipped: Sequence[SkippedRoute]
) -> tuple[str, ...]:
    """A few sentences: what the numbers mean, and what to try next."""
    if not_prose:
        return (
            "Give labelled pairs, or name a labelled set that decides (--against): short or repetitive texts show too "
            "little without labels. If the base does not know their language, choose one that does (--base).",
        )
    return tuple(_sentences(decided, validation_gain, label_free, skipped))


def _sentences(
    decided: Measure, validation_gain: float, label_free: bool, skipped: Sequence[SkippedRoute]
) -> Iterator[str]:
    yield _meaning(decided, validation_gain)
    if decided.before >= LITTLE_LEFT:
        yield f"The base already scores {decided.before:.2f} of 100 on these rows, which leaves little to gain."
    if label_free:
        yield (
            "Raw text alone rarely improves a sentence encoder. A few hundred labelled pairs (a question and its "
            "answer, a title and its body) as a second file help most; --against with labelled rows gives a more "
            "reliable verdict."
        )
    else:
        yield "What may help: labels checked for mistakes, other kinds of pairs from the same domain, another --base."
    late = [one.name for one in skipped if one.for_time]
    if late:
        yield f"Not tried for lack of time: {', '.join(late)}. A larger --budget leaves time for more routes."


def _meaning(decided: Measure, validation_gain: float) -> str:
    if decided.worse:
        return f"Training made the base worse by {-decided.difference:.2f} points: keep the base as it is."
    if decided.better and validation_gain <= 0:
        return (
            "The validation rows and the test rows disagree: more rows, or a separate set (--against), would settle it."
        )
    needed = _items_needed(decided)
    if needed is None:
        return (
            f"The base is at least as good ({decided.before:.2f} against {decided.after:.2f}): keep the base as it is."
        )
    return (
        f"A gain of {decided.difference:+.2f} on {decided.items:,} test items may be chance; about {needed:,} would be "
        f"needed to show it. A tenth of the rows, 25 to 1,000, is used for testing; name a larger set with --against."
    )


def _items_needed(decided: Measure) -> int | None:
    """How many items it takes for the interval to exclude 0 (its width falls with their root); None without a gain."""
    if decided.difference <= 0:
        return None
    half = (decided.high - decided.low) / 2
    needed = math.ceil(decided.items * (half / decided.difference) ** 2)
    return max(needed, decided.items + 1) if needed <= MOST_ITEMS else None
