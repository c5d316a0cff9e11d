"""The report of a fit as files: JSON, Markdown, and one HTML page that needs none of the others.

Page, Markdown and model card are Jinja2 templates, in which every value is escaped: as HTML or as Markdown.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from itertools import chain, zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from sentloom.evaluation.significance import LEAST_CLUSTERS
from sentloom.files import new_folder
from sentloom.fitting.measures import Measure, metric_name
from sentloom.fitting.result import FitResult, Run
from sentloom.markdown import fenced, plain
from sentloom.report import classifiers, fit_plots, formatting, plots
from sentloom.report.advice import advice
from sentloom.report.plots import inline_svg
from sentloom.report.tables import write_text

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Scale = tuple[float, float]

PAGE = "report.html"
OUTCOMES = {"advanced": ("on", "advanced →"), "dropped": ("out", "✕ dropped"), "won": ("won", "✓ won")}
TABLES = ("scores", "routes")  # figures that the page shows as tables with bars
ABOUT_LANGUAGES = (
    f"The test rows of each language with at least {LEAST_CLUSTERS} clusters. One model serves all languages."
)
ABOUT_DIMENSIONS = (
    "The deciding score if vectors are truncated to their first dimensions, as the model was trained for."
)
FILTERS = {
    "number": formatting.number,
    "signed": formatting.signed,
    "thousands": "{:,}".format,
    "change": formatting.change_text,
    "chance": formatting.chance,
    "duration": formatting.duration,
    "language": formatting.language,
    "level": formatting.level,
    "metric": metric_name,
    "unit": formatting.unit,
    "facts": classifiers.facts,
    "confused": classifiers.confused,
    "kind": {"better": "better", "closer": "better", "no difference shown": "unsure", "worse": "worse"}.__getitem__,
}


def write_report(result: FitResult, folder: Path) -> Path:
    """Write all files, each completely or not at all; returns the path of the page, which needs none of the others."""
    figures = fit_plots.figures(result)
    if figures:
        with new_folder(folder / "plots") as part:
            for name, figure in figures.items():
                plots.write(figure, part / f"{name}.png")
    result.write(folder / "report.json")
    write_text(folder / "report.md", report_markdown(result, list(figures)))
    write_text(folder / PAGE, page(result, figures))
    return folder / PAGE


def report_markdown(result: FitResult, pictures: Sequence[str]) -> str:
    """The report as Markdown; `pictures` are the names of the files in plots/."""
    return render("report.md", result, pictures=pictures)


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


def _scale(rows: Iterable[Measure | Run]) -> Scale:
    """The range of all intervals and 0, with a margin on both sides."""
    ends = [0.0, *(end for row in rows for end in (row.low, row.high, row.difference) if end is not None)]
    margin = 0.06 * (max(ends) - min(ends)) or 1.0
    return min(ends) - margin, max(ends) + margin


def _bar_scale(result: FitResult) -> Scale:
    rows = chain.from_iterable(result.parts.values())
    ends = [0.0, *(end for row in rows for end in (row.before_low, row.before_high, row.after_low, row.after_high))]
    return min(ends), max(ends) if max(ends) > min(ends) else min(ends) + 1


def _percent(value: float, scale: Scale, start: float | None = None) -> str:
    """How far along a scale a value is, from its low end or from `start`."""
    low, high = scale
    place, begin = (
        min(100.0, max(0.0, 100 * (x - low) / (high - low))) for x in (value, low if start is None else start)
    )
    return f"{place - begin:.2f}"


def render(name: str, result: FitResult, **values: Any) -> str:
    """A template by its name; its ending says how values are escaped."""
    environment = _markdown() if name.endswith(".md") else _html()
    return environment.get_template(name).render(
        result=result,
        advice=advice(result),
        warnings=formatting.warnings(result),
        headline=formatting.headline(result),
        evidence=formatting.evidence(result),
        glossary=formatting.glossary(result),
        about_languages=ABOUT_LANGUAGES,
        about_dimensions=ABOUT_DIMENSIONS,
        about_bases=formatting.about_bases(result),
        parts=formatting.titled_parts(result),
        stability=formatting.stability(result),
        details=formatting.details(result),
        next_steps=formatting.next_steps(result),
        caution=formatting.caution(result),
        **values,
    )


@cache  # with its compiled templates
def _html() -> Environment:
    return _environment()


def _environment(**more: Any) -> Environment:
    environment = Environment(
        loader=PackageLoader("sentloom.report"), autoescape=True, undefined=StrictUndefined, trim_blocks=True,
        lstrip_blocks=True, keep_trailing_newline=True, **more,
    )  # fmt: skip
    environment.filters |= FILTERS
    environment.globals |= {"interval": formatting.interval_text, "zip_longest": zip_longest}
    return environment


@cache
def _markdown() -> Environment:
    """Values become Markdown that means nothing but itself before Jinja2 could escape them as HTML."""
    environment = _environment(finalize=_escaped)
    environment.filters |= {
        "chance": lambda p: Markup(formatting.chance(p)),
        "fenced": lambda text, language: Markup(fenced(text, language)),
    }
    return environment


def _escaped(value: Any) -> Markup:
    return value if isinstance(value, Markup) else Markup(plain(str(value)))
