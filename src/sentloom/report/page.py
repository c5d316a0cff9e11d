"""The report of a fit as one HTML page that needs nothing but itself: it contains its styles and pictures."""

from collections.abc import Iterable, Mapping
from itertools import chain
from typing import TYPE_CHECKING

from sentloom.fitting.result import FitResult, Measure, Run
from sentloom.report import formatting
from sentloom.report.plots import inline_svg
from sentloom.report.rendering import render

if TYPE_CHECKING:
    from matplotlib.figure import Figure

OUTCOMES = {"advanced": ("on", "advanced →"), "dropped": ("out", "✕ dropped"), "won": ("won", "✓ won")}
TABLES = ("scores", "routes")  # figures that the page shows as tables with bars
Scale = tuple[float, float]


def page(result: FitResult, figures: Mapping[str, "Figure"]) -> str:
    """The whole page, with the figures of `fit_plots.figures`. Sections without content are left out."""
    return render(
        "page.html",
        result,
        outcome=_outcome,
        steps_in_words=formatting.steps_in_words,
        scale_of=_scale,
        bar_scale=_bar_scale(result),
        percent=_percent,
        pictures={name: inline_svg(name, figure) for name, figure in figures.items() if name not in TABLES},
    )


def _outcome(run: Run) -> tuple[str, str]:
    """The CSS class of a run's box and the words in it."""
    return OUTCOMES.get(run.verdict) or (run.verdict.replace(",", ":").partition(":")[0], run.verdict)


def _scale(ones: Iterable[Measure | Run]) -> Scale:
    """The range of all intervals and 0, with a margin on both sides."""
    ends = [0.0, *(end for one in ones for end in (one.low, one.high, one.difference) if end is not None)]
    margin = 0.06 * (max(ends) - min(ends)) or 1.0
    return min(ends) - margin, max(ends) + margin


def _bar_scale(result: FitResult) -> Scale:
    ones = chain.from_iterable(result.parts.values())
    ends = [0.0, *(end for one in ones for end in (one.before_low, one.before_high, one.after_low, one.after_high))]
    return min(ends), max(ends) if max(ends) > min(ends) else min(ends) + 1


def _percent(value: float, scale: Scale, start: float | None = None) -> str:
    """How far along a scale a value is, from its low end or from `start`."""
    low, high = scale
    place, begin = (
        min(100.0, max(0.0, 100 * (x - low) / (high - low))) for x in (value, low if start is None else start)
    )
    return f"{place - begin:.2f}"
