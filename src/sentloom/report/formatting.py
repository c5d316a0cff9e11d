"""How the numbers of a story are said, the same on the page, in Markdown and on the model card."""

import math
from collections.abc import Sequence

from sentloom.evaluation.significance import LEAST_P
from sentloom.fitting.result import FitResult, InputSummary, Measure, Run
from sentloom.hygiene.languages import NAMES, recognised

HEADLINES = {
    "written": "Proven better than its base",
    "refused": "Refused: no model was written",
    "forced": "Written by force, against the gate",
}
PARTS = {"deciding": "Decides", "general": "General ability", "watched": "For information only"}
NONE = "–"
MINUS = "\N{MINUS SIGN}"


def number(value: float | None, digits: int = 2) -> str:
    """As in 61.20; a dash where there is none."""
    if value is None or not math.isfinite(value):
        return NONE
    return f"{value:z,.{digits}f}".replace("-", MINUS)


def signed(value: float | None) -> str:
    """As in +13.33."""
    said = number(value)
    return f"+{said}" if value is not None and value > 0 and said not in ("0.00", NONE) else said


def interval(low: float | None, high: float | None) -> str:
    """As in "11.80 to 14.91"."""
    return f"{number(low)} to {number(high)}"


def change(one: Measure | Run) -> str:
    """A difference with its interval, as in "+11.90 (10.60 to 13.20)"."""
    return signed(one.difference) if one.low is None else f"{signed(one.difference)} ({interval(one.low, one.high)})"


def chance(p: float) -> str:
    """The p of a difference, as in "p = 0.012"; at the least that the bootstrap can give, "p < 0.002"."""
    if p > LEAST_P:
        return f"p = {p:.3f}"
    return f"p < {math.ceil(1000 * LEAST_P) / 1000:.3f}"


def language(source: InputSummary) -> str:
    """As in "English", of mixed texts "English 65%, German 35%"; "unknown" where none is recognised."""
    if len(known := recognised(source.languages)) > 1:
        return ", ".join(f"{NAMES.get(code, code)} {share:.0%}" for code, share in source.languages.items())
    code = next(iter(known), source.language)
    return NAMES.get(code, code) if code else "unknown"


def stability(result: FitResult) -> str:
    """How far two seeds agree, in a sentence; empty where that was not measured."""
    if (one := result.stability) is None:
        return ""
    return (
        f"Stability: two seeds of the best route agree on {number(one.share, 1)}% of the {one.neighbours} nearest "
        f"neighbours of {one.texts:,} held-out texts (95% interval {number(one.low, 1)}% to {number(one.high, 1)}%). "
        "It is watched and decides nothing."
    )


def duration(cost: float | str) -> str:
    """For people: 4.2 s, 48 s, 5.3 min, 12 min, 3.4 h; words as they are."""
    if isinstance(cost, str):
        return cost
    value, unit = (cost, "s") if cost < 90 else (cost / 60, "min") if cost < 5400 else (cost / 3600, "h")
    return f"{value:.1f} {unit}" if value < 10 else f"{value:.0f} {unit}"


def titled_parts(result: FitResult) -> dict[str, list[Measure]]:
    """Measures by the title of their part."""
    return {PARTS[part]: ones for part, ones in result.parts.items()}


def steps_in_words(steps: Sequence[int]) -> str:
    """As in "40 steps" or "40 to 62 steps"."""
    return f"{steps[0]:,} steps" if len(steps) == 1 else f"{steps[0]:,} to {steps[-1]:,} steps"
