"""What may help after the gate refused a model: by what was measured, not by rote."""

import math
from collections.abc import Iterator, Sequence

from sentloom.fitting.result import Measure
from sentloom.fitting.routes import SkippedRoute

LITTLE_LEFT = 95.0  # a base with this score has little left to gain
MOST_ITEMS = 100_000  # a gain that would need more is as good as none
BUDGET = "the budget"  # how the reason of a route begins that was left out for lack of time


def advise(
    decided: Measure, chosen: float, *, label_free: bool, no_prose: bool, closed: Sequence[SkippedRoute]
) -> tuple[str, ...]:
    """A few sentences: what the numbers mean, and what can be tried. `chosen` is the gain on the rows that chose."""
    if no_prose:
        return (
            "Give labelled pairs, or name a labelled set that decides (--against): short or repetitive texts show too "
            "little by themselves. If the base does not know their language, choose one that does (--base).",
        )
    return tuple(_sentences(decided, chosen, label_free, closed))


def _sentences(decided: Measure, chosen: float, label_free: bool, closed: Sequence[SkippedRoute]) -> Iterator[str]:
    yield _meaning(decided, chosen)
    if decided.before >= LITTLE_LEFT:
        yield f"The base already scores {decided.before:.2f} of 100 on these rows, which leaves little to gain."
    if label_free:
        yield (
            "Raw text alone seldom improves a sentence encoder. A few hundred labelled pairs (a question and its "
            "answer, a title and its body) as a second file help most; --against with labelled rows gives a surer "
            "verdict."
        )
    else:
        yield "What may help: labels checked for mistakes, pairs of another kind from the same domain, another --base."
    late = [one.name for one in closed if one.why.startswith(BUDGET)]
    if late:
        yield f"Not tried for lack of time: {', '.join(late)}. A larger --budget has time for more routes."


def _meaning(decided: Measure, chosen: float) -> str:
    if decided.worse:
        return f"Training made the base worse by {-decided.difference:.2f} points: keep the base as it is."
    if decided.better and chosen <= 0:
        return (
            "The two halves of the held-out rows disagree: more rows, or a set of its own (--against), would settle it."
        )
    needed = _items_needed(decided)
    if needed is None:
        return (
            f"The base is at least as good ({decided.before:.2f} against {decided.after:.2f}): keep the base as it is."
        )
    return (
        f"A gain of {decided.difference:+.2f} cannot be told from chance on {decided.items:,} held-out items; it would "
        f"take about {needed:,}. A tenth of the rows, at most 1,000, is held out for it; --against names a larger set."
    )


def _items_needed(decided: Measure) -> int | None:
    """How many items the interval would need to exclude 0, its width falling with their root; None: no gain to show."""
    if decided.difference <= 0:
        return None
    half = (decided.high - decided.low) / 2
    needed = math.ceil(decided.items * (half / decided.difference) ** 2)
    return max(needed, decided.items + 1) if needed <= MOST_ITEMS else None
