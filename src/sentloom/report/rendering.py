"""Fills in the Jinja2 templates, in which every value is escaped: as HTML or as Markdown."""

from functools import cache
from itertools import zip_longest
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from sentloom.evaluation.significance import LEAST_CLUSTERS
from sentloom.fitting.result import FitResult, metric_name
from sentloom.markdown import fenced, plain
from sentloom.report import formatting

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
    "kind": {"better": "better", "no difference shown": "unsure", "worse": "worse"}.__getitem__,
}


def render(name: str, result: FitResult, **values: Any) -> str:
    """A template by its name; its ending says how values are escaped."""
    environment = _markdown() if name.endswith(".md") else _html()
    return environment.get_template(name).render(
        result=result,
        headline=formatting.headline(result),
        evidence=formatting.evidence(result),
        glossary=formatting.glossary(result),
        about_languages=ABOUT_LANGUAGES,
        about_dimensions=ABOUT_DIMENSIONS,
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
