"""The model card: the README.md of a fitted model's folder, from the same numbers as the report."""

import re
import shlex
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from sentloom.data.hygiene.languages import recognised
from sentloom.encoder.locate import HUB_NAME, catalogue_entry
from sentloom.files import without_folders
from sentloom.fitting.result import FitResult, InputSummary
from sentloom.report import formatting
from sentloom.report.page import render
from sentloom.terminal import printable

if TYPE_CHECKING:
    from sentloom.encoder import Encoder

LANGUAGE = re.compile(r"[a-z]{2,3}|multilingual")
NATIVE_USE = """from sentence_transformers import SentenceTransformer

model = SentenceTransformer({place!r})
vectors = model.encode(["A first sentence.", "Another one."])
print(model.similarity(vectors, vectors))"""
NATIVE_SEARCH = """from sentence_transformers import SentenceTransformer

model = SentenceTransformer({place!r})
queries = model.encode_query(["A question?"])  # with the prompts that the model was trained with
documents = model.encode_document(["An answer.", "Another one."])
print(model.similarity(queries, documents))"""
NATIVE_SHORT = """model = SentenceTransformer({place!r}, truncate_dim={dimension})"""
OUR_SHORT = """vectors = model.encode(["A first sentence."], dimension={dimension})"""
PREDICT_USE = """from sentloom import Predictor

print(Predictor.load({place!r}).predict(["A text without a label."]))"""
OUR_USE = """from sentloom import Encoder  # sentence-transformers has no module for this model

model = Encoder.load({place!r})
vectors = model.encode(["A first sentence.", "Another one."])
print(vectors @ vectors.T)"""


@dataclass(frozen=True)
class ModelFacts:
    """Facts about the model itself."""

    dimension: int
    max_length: int  # tokens
    pooling: str
    native: bool  # whether sentence-transformers loads it
    asymmetric: bool = False  # whether queries and documents have different prompts
    dimensions: tuple[int, ...] = ()  # that vectors can be truncated to, the largest first


def facts_of(encoder: "Encoder") -> ModelFacts:
    """The facts about an encoder as it will be saved."""
    from sentloom.encoder.saving import is_native
    from sentloom.encoder.tokens import prompt_for

    query, document = (prompt_for(encoder.prompts, role) for role in ("query", "document"))
    return ModelFacts(
        encoder.dimension,
        encoder.tokens.max_length,
        str(encoder.pooling),
        is_native(encoder),
        asymmetric=query != document,
        dimensions=encoder.dimensions,
    )


def model_card(result: FitResult, facts: ModelFacts) -> str:
    """The text of README.md, with the front matter that the hub reads. It has no paths of this machine."""
    front_matter, started_from = _front_matter(result, facts), result.started_from or result.base
    on_hub, result = base_on_hub(started_from), without_paths(result)
    place, base = result.model or "path/to/the/model", on_hub or result.started_from or result.base
    native = NATIVE_SEARCH if facts.asymmetric else NATIVE_USE
    shorter = [dimension for dimension in facts.dimensions if dimension < facts.dimension]
    short = (NATIVE_SHORT if facts.native else OUR_SHORT).format(place=place, dimension=min(shorter)) if shorter else ""
    text = render(
        "model_card.md",
        result,
        facts=facts,
        front_matter=Markup(front_matter.rstrip()),
        base=base,
        use=(native if facts.native else OUR_USE).format(place=place),
        short_use=short,
        predict_use=PREDICT_USE.format(place=place),
        languages=list(dict.fromkeys(formatting.language(source) for source in result.sources if _codes_of(source))),
    )
    return printable(text)


def without_paths(result: FitResult) -> FitResult:
    """The result with the names of files and folders, but not where they are on this machine."""
    from pydantic import TypeAdapter

    parts = _words(result.command)
    fit = result.model and f"{result.model}.fit"  # which is there when the model is not yet
    names = [*parts, *filter(None, (result.model, fit, result.base, result.started_from))]
    values = _without_folders(asdict(result), names)
    command = shlex.join(without_folders(part, names) for part in parts)  # cut before it is quoted
    return TypeAdapter(FitResult).validate_python({**values, "command": command})


def _words(command: str) -> list[str]:
    """The words of a command; a text that is none stays whole."""
    try:
        return shlex.split(command)
    except ValueError:
        return [command]


def _without_folders(value: Any, names: Sequence[str]) -> Any:
    """Every text in a value, cut."""
    if isinstance(value, str):
        return without_folders(value, names)
    if isinstance(value, dict):
        return {_without_folders(key, names): _without_folders(item, names) for key, item in value.items()}
    return tuple(_without_folders(item, names) for item in value) if isinstance(value, list | tuple) else value


def _front_matter(result: FitResult, facts: ModelFacts) -> str:
    import yaml

    languages = [code for code in _card_codes(result) if LANGUAGE.fullmatch(code)]
    library = "sentence-transformers" if facts.native else "sentloom"
    fields: dict[str, Any] = {
        "library_name": library,
        "pipeline_tag": "sentence-similarity",
        "tags": list(dict.fromkeys([library, "sentence-similarity", "feature-extraction", "sentloom"])),
        "language": languages,
        "base_model": base_on_hub(result.started_from or result.base),
    }
    kept = {name: value for name, value in fields.items() if value}
    return yaml.safe_dump(kept, sort_keys=False, allow_unicode=True)


def _card_codes(result: FitResult) -> list[str]:
    """The languages of the base and of all training texts."""
    own = next((base.languages for base in result.bases if base.name == result.started_from), ())
    return sorted({*own, *(code for source in result.sources for code in _codes_of(source))})


def _codes_of(source: InputSummary) -> list[str]:
    return list(recognised(source.languages)) or ([source.language] if source.language else [])


def base_on_hub(base: str) -> str | None:
    """What the hub calls a base, without its revision; None for a local folder."""
    if entry := catalogue_entry(base):
        return entry.upstream
    name = base.partition("@")[0]
    return name if HUB_NAME.fullmatch(name) and not Path(base).exists() else None
