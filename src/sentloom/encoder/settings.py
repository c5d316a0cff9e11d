"""Read an encoder's settings from a folder written by sentence-transformers, plain transformers, or sentloom.

modules.json comes first; our own `sentloom.json` adds what it cannot express (layers, a suffix prompt).
"""

import re
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from sentloom.encoder.model_files import find, inside, read_json, read_json_value, wrong_value
from sentloom.encoder.pooling import Pooling
from sentloom.encoder.tokens import ROLES, Prompt, Prompts, check_prompts, prompt_for
from sentloom.errors import InputError, ModelError

OURS, MODULES = "sentloom.json", "modules.json"
BATCHED = "batched"  # a key of ours, in exported models
LIMITS, THEIRS = "sentence_bert_config.json", "config_sentence_transformers.json"
ORIGINS = ("sentence_transformers.", "sentloom.")  # packages of the supported modules
NEEDS_US = "NeedsSentloomToLoad"  # not a class: sentence-transformers prints it when it refuses the folder
DOCUMENT_NAMES = ("document", "passage", "corpus")  # where encode_document looks for its prompt, in this order
POOLING_MODES = {"cls": "first", "lasttoken": "last", "mean": "mean", "max": "max"}  # their name -> ours
LEGACY_MODES = {"cls": "pooling_mode_cls_token", "mean": "pooling_mode_mean_tokens", "max": "pooling_mode_max_tokens"}
LEGACY_MODES |= {"lasttoken": "pooling_mode_lasttoken"}


@dataclass(frozen=True)
class EncoderSettings:
    """Settings that determine how token states become a vector."""

    pooling: Pooling = field(default_factory=Pooling)
    dense_folders: tuple[str, ...] = ()
    unit_length: bool = False
    prompts: Prompts = field(default_factory=dict)
    max_length: int | None = None
    lower_case: bool = False
    width: int | None = None  # hidden size, as stated in the pooling's file
    pooling_file: str = ""
    batched: bool = False  # of an exported model: whether a vector is the same in every batch


def read_settings(folder: Path) -> EncoderSettings:
    """Read the settings of a model folder; plain transformers folders get mean pooling."""
    ours = _optional(folder, OURS)
    settings = _read_chain(folder, ours) if find(folder, MODULES) else EncoderSettings()
    limits = _optional(folder, LIMITS)
    length, lower = limits.get("max_seq_length"), limits.get("do_lower_case", False)
    if length is not None and not (type(length) is int and length >= 1):
        raise ModelError(str(folder / LIMITS), f"max_seq_length is {length!r:.100}", "a number of tokens", "correct it")
    if not isinstance(lower, bool | None):
        raise ModelError(str(folder / LIMITS), f"do_lower_case is {lower!r:.100}", "true or false", "correct it")
    prompts, batched = _read_prompts(folder, ours), ours.get(BATCHED) is True
    return replace(settings, max_length=length, lower_case=bool(lower), prompts=prompts, batched=batched)


def own_pooling(folder: Path) -> Pooling | None:
    """Return the pooling stated in a model folder; None for a raw language model in a plain transformers folder."""
    return read_settings(folder).pooling if find(folder, MODULES) else None


def _optional(folder: Path, name: str) -> dict[str, Any]:
    path = find(folder, name)
    return read_json(path) if path else {}


def _read_prompts(folder: Path, ours: dict[str, Any]) -> Prompts:
    """Read sentence-transformers' prefixes, with its default as symmetric; our prompts win if their prefixes agree."""
    config = _optional(folder, THEIRS)
    named, default = _named_prompts(folder / THEIRS, config)
    documents = next((named[name] for name in DOCUMENT_NAMES if name in named), None)
    named = {**named, "symmetric": named.get(default, "")} | ({} if documents is None else {"document": documents})
    prefixes = {role: named[role] for role in ROLES if role in named}
    theirs = {role: Prompt(prefix=text) for role, text in prefixes.items()} if any(prefixes.values()) else {}
    try:
        prompts: dict[Any, Prompt] = {role: Prompt(**prompt) for role, prompt in ours.get("prompts", {}).items()}
        check_prompts(prompts)
        if not all(isinstance(text, str) for prompt in prompts.values() for text in (prompt.prefix, prompt.suffix)):
            raise TypeError("a prompt is not a string")
    except (TypeError, AttributeError, InputError) as error:
        problem = f"the prompts are unreadable ({' '.join(str(error).split())[:200]})"
        raise ModelError(str(folder / OURS), problem, "", "save the model again") from None
    if not all(prompt_for(prompts, role).prefix == prompt_for(theirs, role).prefix for role in ROLES):
        return theirs
    return prompts


def _named_prompts(path: Path, config: dict[str, Any]) -> tuple[dict[str, str], str]:
    """Return sentence-transformers' prompts and the name of its default prompt ("" for none)."""
    stored, default = config.get("prompts"), config.get("default_prompt_name")
    named = {} if stored is None else stored
    if not isinstance(named, dict) or not all(isinstance(text, str) for text in named.values()):
        raise wrong_value(path, "prompts", named, "an object that maps names to strings")
    if default is not None and not (isinstance(default, str) and default in named):
        raise wrong_value(path, "default_prompt_name", default, f"null or one of {', '.join(named) or 'no prompts'}")
    return named, default or ""


def _read_chain(folder: Path, ours: dict[str, Any]) -> EncoderSettings:
    """Read modules.json; the pooling is in `sentloom.json` only if it uses layers, a template or a decoder."""
    path = inside(folder, MODULES)
    chain = _read_modules(path)
    kinds = [kind for kind, _ in chain]
    expected = "Transformer, Pooling, any number of Dense, and optionally Normalize"
    if not re.fullmatch(
        rf"(Transformer ((WeightedLayerPooling|WordWeights) )?Pooling|{NEEDS_US}( Pooling)?)( Dense)*( Normalize)?",
        " ".join(kinds),
    ):
        problem = f"the modules are {', '.join(kinds)[:300]}"
        raise ModelError(str(path), problem, expected, "load this model with sentence-transformers")
    if chain[0][1]:
        problem = f"the transformer is in the folder {chain[0][1][:100]!r}"
        raise ModelError(str(path), problem, "it in the model's main folder", "save it with sentence-transformers")
    places = {kind: inside(folder, place) for kind, place in chain}
    dense = tuple(place for kind, place in chain if kind == "Dense")
    settings = EncoderSettings(dense_folders=dense, unit_length="Normalize" in kinds)
    if {"WeightedLayerPooling", "WordWeights", NEEDS_US} & set(kinds):
        return replace(settings, pooling=_own_pooling(folder / OURS, ours))
    file = inside(places["Pooling"], "config.json")
    config = read_json(file)
    width = _pooling_width(file, config)
    return replace(
        settings, pooling=_read_pooling(file, config), width=width, pooling_file=str(file.relative_to(folder))
    )


def _read_modules(path: Path) -> list[tuple[str, str]]:
    """Return the type and the folder of each module."""
    modules = read_json_value(path)
    expected, fix = "a list of sentence-transformers' modules", "save the model again"
    if not isinstance(modules, list):
        raise ModelError(str(path), f"the JSON value is a {type(modules).__name__}", expected, fix)
    for module in modules:
        named = isinstance(module, dict) and all(isinstance(module.get(key), str) for key in ("type", "path"))
        if not named or not module["type"].startswith(ORIGINS):
            raise ModelError(str(path), f"the module {module!r:.200} is not supported", expected, fix)
    return [(module["type"].rpartition(".")[2], module["path"]) for module in modules]


def _own_pooling(path: Path, ours: dict[str, Any]) -> Pooling:
    try:
        return Pooling.parse(ours["pooling"])
    except (KeyError, TypeError, AttributeError, InputError):
        problem = f"the pooling is {ours.get('pooling')!r:.100}"
        expected = "a pooling, because modules.json does not state it"
        raise ModelError(str(path), problem, expected, "save the model again") from None


def _pooling_width(path: Path, config: dict[str, Any]) -> int | None:
    for key in ("word_embedding_dimension", "embedding_dimension"):
        width: int | None = config.get(key)
        if width is not None and not (type(width) is int and width >= 1):
            raise wrong_value(path, key, width, "a whole number, 1 or more")
        if width:
            return width
    return None


def _read_pooling(path: Path, config: dict[str, Any]) -> Pooling:
    for key, value in config.items():
        if (key.startswith("pooling_mode_") or key == "include_prompt") and not isinstance(value, bool | None):
            raise wrong_value(path, key, value, "true or false")
    mode = config.get("pooling_mode") or [name for name, key in LEGACY_MODES.items() if config.get(key)]
    modes = mode if isinstance(mode, list) else [mode]
    unsupported = [
        key for key, on in config.items() if key.startswith("pooling_mode_") and on and key not in LEGACY_MODES.values()
    ]
    if config.get("include_prompt") is False:
        unsupported.append("without the prompt")
    if len(modes) != 1 or str(modes[0]) not in POOLING_MODES or unsupported:
        named = ", ".join(map(str, [*modes, *unsupported]))[:200] or "none"
        expected = f"one of {', '.join(POOLING_MODES)}"
        raise ModelError(str(path), f"the pooling is {named}", expected, "load this model with sentence-transformers")
    return Pooling(POOLING_MODES[modes[0]])
