"""The model card: the README.md of a fitted model's folder, from the same numbers as the report."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sentloom.fitting.result import FitResult, InputSummary
from sentloom.hygiene.languages import recognised
from sentloom.markdown import fenced, plain
from sentloom.report import fit_markdown, formatting

if TYPE_CHECKING:
    from sentloom.encoder import Encoder

EMBEDDED = "sentence-transformers/all-MiniLM-L6-v2"  # the hub's name of the encoder that `embedded` stands for
HUB_NAME = re.compile(r"(?:[A-Za-z0-9][\w.-]*/)?[A-Za-z0-9][\w.-]*")
LANGUAGE = re.compile(r"[a-z]{2,3}")
READING = (
    "Before is the base, after this model. Scores are times 100 with 95% bootstrap intervals; differences are paired."
)
NATIVE_USE = """from sentence_transformers import SentenceTransformer

model = SentenceTransformer({place!r})
vectors = model.encode(["A first sentence.", "Another one."])
print(model.similarity(vectors, vectors))"""
OUR_USE = """from sentloom import Encoder  # sentence-transformers cannot say what this model does

model = Encoder.load({place!r})
vectors = model.encode(["A first sentence.", "Another one."])
print(vectors @ vectors.T)"""


@dataclass(frozen=True)
class ModelFacts:
    """What a card says of the model itself."""

    dimension: int
    max_length: int  # tokens
    pooling: str
    native: bool  # whether sentence-transformers loads it


def facts_of(encoder: "Encoder") -> ModelFacts:
    """The facts of an encoder as it will be saved."""
    from sentloom.encoder.saving import is_native

    return ModelFacts(encoder.dimension, encoder.tokens.max_length, str(encoder.pooling), is_native(encoder))


def model_card(result: FitResult, facts: ModelFacts) -> str:
    """The text of README.md, with front matter as the hub reads it."""
    place = result.model or "path/to/the/model"
    use = (NATIVE_USE if facts.native else OUR_USE).format(place=place)
    parts = [
        f"---\n{_front_matter(result, facts)}---",
        f"# {plain(result.title)}",
        _opening(result, facts),
        *(f"> **Warning:** {plain(warning)}" for warning in result.warnings),
        "## Use",
        fenced(use, "python"),
        "## Results",
        f"**{formatting.HEADLINES[result.verdict]}.** {plain(result.reason)}",
        fit_markdown.deciding(result),
        fit_markdown.measures(result),
        plain(formatting.stability(result)),
        READING,
        "## Data" if result.sources else "",
        fit_markdown.sources(result),
        "## Limits",
        "\n".join(f"- {limit}" for limit in _limits(result, facts)),
        "## How it was made",
        _made(result),
        fenced(result.command, "sh"),
        fenced(result.recipe, "yaml") if result.recipe else "",
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _front_matter(result: FitResult, facts: ModelFacts) -> str:
    import yaml

    languages = [code for code in _codes(result) if LANGUAGE.fullmatch(code)]
    library = "sentence-transformers" if facts.native else "sentloom"
    found: dict[str, Any] = {
        "library_name": library,
        "pipeline_tag": "sentence-similarity",
        "tags": list(dict.fromkeys([library, "sentence-similarity", "feature-extraction", "sentloom"])),
        "language": languages,
        "base_model": hub_name(result.base),
    }
    kept = {name: value for name, value in found.items() if value}
    return yaml.safe_dump(kept, sort_keys=False, allow_unicode=True)


def _codes(result: FitResult) -> list[str]:
    """The languages of all training texts."""
    return sorted({code for one in result.sources for code in _codes_of(one)})


def _codes_of(source: InputSummary) -> list[str]:
    return list(recognised(source.languages)) or ([source.language] if source.language else [])


def hub_name(base: str) -> str | None:
    """The name that the hub knows a base by, without its revision; None for a folder of one's own."""
    if base == "embedded":
        return EMBEDDED
    name = base.partition("@")[0]
    return name if HUB_NAME.fullmatch(name) and not Path(base).exists() else None


def _opening(result: FitResult, facts: ModelFacts) -> str:
    base = hub_name(result.base) or result.base
    return (
        f"A sentence encoder, fitted from {plain(base)}: texts to vectors of {facts.dimension:,} numbers "
        f"({plain(facts.pooling)} pooling, at most {facts.max_length:,} tokens). Near vectors mean near in sense."
    )


def _limits(result: FitResult, facts: ModelFacts) -> list[str]:
    languages = list(dict.fromkeys(formatting.language(one) for one in result.sources if _codes_of(one)))
    general = [one for one in result.measures if one.part == "general"]
    decided_on = plain(", ".join(result.against)) if result.against else "held-out rows of its own data"
    limits = [
        f"Its gain was measured on {decided_on} alone. On other texts it may be better or worse.",
        "A score says no more than its measure in the table says; none of them is your own task.",
        f"Texts longer than {facts.max_length:,} tokens are cut.",
        "What is unfair or wrong in the base or in the texts, it may have learned; this was not measured.",
    ]
    if languages:
        limits.append(f"Language of the training texts: {plain('; '.join(languages))}. Others were not measured.")
    if not general:
        limits.append("General ability, beyond the kind of text it was fitted on, was not measured.")
    limits += [
        f"{plain(one.label)}: worse than the base by {formatting.number(-one.difference)}."
        for one in general
        if one.worse
    ]
    if result.verdict == "forced":
        limits.append("It is not proven to be better than its base: it was written by force.")
    return limits


def _made(result: FitResult) -> str:
    versions = ", ".join(f"{name} {version}" for name, version in result.versions.items())
    cost = "; ".join(f"{name} {formatting.duration(one)}" for name, one in result.cost.items())
    said = [
        f"By `sentloom fit`, {plain(result.created)}.",
        f"Route: {plain(route)}." if (route := result.winner) else "",
        f"Budget: {plain(result.budget)}." if result.budget else "",
        f"Cost: {plain(cost)}." if cost else "",
        f"Versions: {plain(versions)}." if versions else "",
    ]
    return " ".join(part for part in said if part)
