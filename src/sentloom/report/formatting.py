"""Numbers and facts of a fit as text: the same on the page, in Markdown, on the model card and in the terminal."""

import math
from collections.abc import Sequence

from sentloom import progress
from sentloom.evaluation.significance import LEAST_P
from sentloom.fitting.result import FitResult, InputSummary, Measure, Run
from sentloom.hygiene.languages import NAMES, recognised

HEADLINES = {
    "written": "Proven better than its base",
    "refused": "Refused: no model was written",
    "forced": "Written with --force, not shown to be better",
}
PARTS = {"deciding": "Decides", "general": "General ability", "watched": "For information only"}
NONE = "–"
MINUS = "\N{MINUS SIGN}"


def number(value: float | None, digits: int = 2) -> str:
    """As in 61.20, or a dash if it is missing or not finite."""
    if value is None or not math.isfinite(value):
        return NONE
    return f"{value:z,.{digits}f}".replace("-", MINUS)


def signed(value: float | None) -> str:
    """As in +13.33."""
    text = number(value)
    return f"+{text}" if value is not None and value > 0 and text not in ("0.00", NONE) else text


def interval_text(low: float | None, high: float | None) -> str:
    """As in "11.80 to 14.91"."""
    return f"{number(low)} to {number(high)}"


def change_text(one: Measure | Run) -> str:
    """A difference and its interval, as in "+11.90 (10.60 to 13.20)"."""
    return (
        signed(one.difference) if one.low is None else f"{signed(one.difference)} ({interval_text(one.low, one.high)})"
    )


def chance(p: float) -> str:
    """As in "p = 0.012", or "p < 0.002" at the smallest p that the bootstrap can give."""
    if p > LEAST_P:
        return f"p = {p:.3f}"
    return f"p < {math.ceil(1000 * LEAST_P) / 1000:.3f}"


def language(source: InputSummary) -> str:
    """As in "English", "English 65%, German 35%" for mixed texts, or "unknown"."""
    if len(known := recognised(source.languages)) > 1:
        return ", ".join(f"{NAMES.get(code, code)} {share:.0%}" for code, share in source.languages.items())
    code = next(iter(known), source.language)
    return NAMES.get(code, code) if code else "unknown"


def stability(result: FitResult) -> str:
    """How far two seeds agree; empty if that was not measured."""
    if (one := result.stability) is None:
        return ""
    return (
        f"Stability: two seeds of the best route agree on {number(one.share, 1)}% of the {one.neighbours} nearest "
        f"neighbours of {one.texts:,} held-out texts (95% interval {number(one.low, 1)}% to {number(one.high, 1)}%). "
        "This is for information only and does not affect the verdict."
    )


def duration(cost: float | str) -> str:
    """As in 4.2 s, 48 s, 5.3 min, 12 min or 3.4 h; text stays as it is."""
    return cost if isinstance(cost, str) else progress.duration(cost)


def titled_parts(result: FitResult) -> dict[str, list[Measure]]:
    """Measures by the title of their part."""
    return {PARTS[part]: ones for part, ones in result.parts.items()}


def steps_in_words(steps: Sequence[int]) -> str:
    """As in "40 steps" or "40 to 62 steps"."""
    return f"{steps[0]:,} steps" if len(steps) == 1 else f"{steps[0]:,} to {steps[-1]:,} steps"


def details(result: FitResult) -> dict[str, dict[str, str]]:
    """What the fit cost and what it was made with."""
    hashes = {source.name: source.sha256 for source in result.sources}
    return {
        "Cost": {name: duration(cost) for name, cost in result.cost.items()},
        "Versions": dict(result.versions),
        "SHA-256": {**hashes, **result.hashes},
    }
