"""How the numbers of a story are said, the same on the page, in Markdown and on the model card."""

import math
from collections.abc import Sequence

from sentloom.evaluation.significance import LEAST_P
from sentloom.fitting.result import FitResult, InputSummary, Measure, Neighbours, Run
from sentloom.hygiene.languages import NAMES, recognised

HEADLINES = {
    "written": "Proven better than its base",
    "refused": "Refused: no model was written",
    "forced": "Written by force, against the gate",
}
PARTS = {"deciding": "What decides", "general": "General ability", "watched": "Watched, decides nothing"}
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


def finding(one: Measure | Run) -> str:
    """One of "better", "worse" and "unsure", by where the interval of the difference lies."""
    if one.low is None or one.high is None:
        return "unsure"
    return "better" if one.low > 0 else "worse" if one.high < 0 else "unsure"


def groups(result: FitResult) -> dict[str, list[Measure]]:
    """Measures below the name of their part: what decides comes first, its mean behind it."""
    total = mean(result)
    shown = [*result.measures, *([total] if total else [])]
    found = {title: [one for one in shown if one.part == part] for part, title in PARTS.items()}
    return {title: ones for title, ones in found.items() if ones}


def mean(result: FitResult) -> Measure | None:
    """The total, where it is more than the single measure that decides."""
    several = sum(one.part == "deciding" for one in result.measures) != 1
    return result.total if several else None


def winner(result: FitResult) -> str | None:
    """The route of the best run, or else that of the last run."""
    won = [run.route for run in result.runs if run.is_best] or [run.route for run in result.runs]
    return won[-1] if won else None


def routes_run(result: FitResult) -> dict[str, dict[int, Run]]:
    """runs[route][rung]: routes that came furthest first, then by score."""
    found: dict[str, dict[int, Run]] = {}
    for run in result.runs:
        found.setdefault(run.route, {})[run.rung] = run
    return dict(sorted(found.items(), key=lambda of: _rank(of[1]), reverse=True))


def _rank(runs: dict[int, Run]) -> tuple[bool, int, float]:
    last = runs[max(runs)]
    return last.is_best, last.rung, -math.inf if last.score is None else last.score


def rungs(result: FitResult) -> dict[int, list[int]]:
    """The different numbers of steps at each rung, in order."""
    found: dict[int, set[int]] = {}
    for run in result.runs:
        found.setdefault(run.rung, set()).add(run.steps)
    return {rung: sorted(found[rung]) for rung in sorted(found)}


def steps_in_words(steps: Sequence[int]) -> str:
    """As in "40 steps" or "40 to 62 steps"."""
    return f"{steps[0]:,} steps" if len(steps) == 1 else f"{steps[0]:,} to {steps[-1]:,} steps"


def marked(one: Neighbours) -> tuple[list[tuple[float, str, bool]], list[tuple[float, str, bool]]]:
    """Both lists with what changed: before, whether a text is gone; after, whether it is new."""
    then, now = {text for _, text in one.before}, {text for _, text in one.after}
    return (
        [(cosine, text, text not in now) for cosine, text in one.before],
        [(cosine, text, text not in then) for cosine, text in one.after],
    )


def overlap(some: Sequence[int], others: Sequence[int]) -> float:
    """The share, from 0 to 1, of two histograms that lies under both, each taken as of the same size."""
    return sum(min(a, b) for a, b in zip(shares(some), shares(others), strict=True)) / 100


def shares(counts: Sequence[int]) -> list[float]:
    """In percent of all."""
    return [100 * count / max(1, sum(counts)) for count in counts]


def routes_not_run(result: FitResult) -> list[tuple[str, str]]:
    """(name, why) of routes that were not tried."""
    return [(route.name, route.why) for route in result.routes if not route.tried]
