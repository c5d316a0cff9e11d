"""What lies beside a model's weights: read from a folder of sentence-transformers, of plain transformers, or of ours.

The chain of modules.json is the ground; our own `sentloom.json` adds what it cannot say (layers, a suffix prompt).
"""

import json
import re
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from sentloom.encoder.locate import read_json
from sentloom.encoder.pooling import Pooling
from sentloom.encoder.prompts import ROLES, Prompt, Prompts, prompt_for
from sentloom.errors import ModelError

OURS = "sentloom.json"
NEEDS_US = "NeedsSentloomToLoad"  # names no class: sentence-transformers prints it when it refuses the folder
POOLING_MODES = {"cls": "first", "mean": "mean", "max": "max"}  # their name -> ours
LEGACY_MODES = {"cls": "pooling_mode_cls_token", "mean": "pooling_mode_mean_tokens", "max": "pooling_mode_max_tokens"}
ACTIVATIONS = {
    "torch.nn.modules.linear.Identity": "identity",
    "torch.nn.modules.activation.Tanh": "tanh",
}


@dataclass(frozen=True)
class Settings:
    """How token states become a vector."""

    pooling: Pooling = field(default_factory=Pooling)
    dense_folders: tuple[str, ...] = ()
    unit_length: bool = False
    prompts: Prompts = field(default_factory=dict)
    max_length: int | None = None
    lower_case: bool = False


def read_settings(folder: Path) -> Settings:
    """The settings of a model folder; plain transformers folders get mean pooling."""
    ours = _optional(folder / OURS)
    settings = _read_chain(folder, ours) if (folder / "modules.json").is_file() else Settings()
    limits = _optional(folder / "sentence_bert_config.json")
    return replace(
        settings,
        max_length=limits.get("max_seq_length"),
        lower_case=bool(limits.get("do_lower_case", False)),
        prompts=_read_prompts(folder, ours),
    )


def own_pooling(folder: Path) -> Pooling | None:
    """The pooling that a model folder states; None for a raw language model, a folder of plain transformers."""
    return read_settings(folder).pooling if (folder / "modules.json").is_file() else None


def _optional(path: Path) -> dict[str, Any]:
    return read_json(path) if path.is_file() else {}


def _read_prompts(folder: Path, ours: dict[str, Any]) -> Prompts:
    """sentence-transformers' prefixes, its default one for symmetric; ours, if they still agree with those."""
    config = _optional(folder / "config_sentence_transformers.json")
    named = dict(config.get("prompts") or {})
    named["symmetric"] = named.get(config.get("default_prompt_name"), "")
    prefixes = {role: named[role] for role in ROLES if role in named}
    theirs = {role: Prompt(prefix=text) for role, text in prefixes.items()} if any(prefixes.values()) else {}
    try:
        prompts: dict[Any, Prompt] = {role: Prompt(**prompt) for role, prompt in ours.get("prompts", {}).items()}
    except (TypeError, AttributeError) as error:
        raise ModelError(str(folder / OURS), f"unreadable prompts ({error})", "our own form", "save anew") from None
    if not all(prompt_for(prompts, role).prefix == prompt_for(theirs, role).prefix for role in ROLES):
        return theirs
    return prompts


def _read_chain(folder: Path, ours: dict[str, Any]) -> Settings:
    """Walk modules.json. Layers and decoder-first are ours: there, and only there, `sentloom.json` has the pooling."""
    path = folder / "modules.json"
    try:
        modules = json.loads(path.read_text(encoding="utf-8"))
        chain = [(str(module["type"]).rpartition(".")[2], str(module["path"])) for module in modules]
    except (OSError, ValueError, TypeError, KeyError) as error:
        found = f"an unreadable list of modules ({error})"
        raise ModelError(str(path), found, "sentence-transformers' form", "save the model anew") from None
    kinds = [kind for kind, _ in chain]
    wanted = "Transformer, Pooling, then any Dense, then perhaps Normalize"
    if not re.fullmatch(
        rf"(Transformer (WeightedLayerPooling )?Pooling|{NEEDS_US}( Pooling)?)( Dense)*( Normalize)?", " ".join(kinds)
    ):
        found = f"the modules {', '.join(kinds)}"
        raise ModelError(str(path), found, wanted, "load this model with sentence-transformers")
    if {"WeightedLayerPooling", NEEDS_US} & set(kinds):
        if "pooling" not in ours:
            raise ModelError(str(path), f"{kinds[1]} without {OURS}", wanted, "load it with sentence-transformers")
        pooling = Pooling.parse(str(ours["pooling"]))
    else:
        pooling = _read_pooling(folder / dict(chain)["Pooling"] / "config.json")
    dense = tuple(place for kind, place in chain if kind == "Dense")
    return Settings(pooling=pooling, dense_folders=dense, unit_length="Normalize" in kinds)


def _read_pooling(path: Path) -> Pooling:
    config: dict[str, Any] = read_json(path)
    mode = config.get("pooling_mode")
    modes = (
        [mode]
        if isinstance(mode, str)
        else list(mode or [name for name, key in LEGACY_MODES.items() if config.get(key)])
    )
    others = [
        key for key, on in config.items() if key.startswith("pooling_mode_") and on and key not in LEGACY_MODES.values()
    ]
    if config.get("include_prompt") is False:
        others.append("without the prompt")
    if len(modes) != 1 or modes[0] not in POOLING_MODES or others:
        found = ", ".join(map(str, [*modes, *others])) or "none"
        raise ModelError(
            str(path), f"pooling {found}", "one of cls, mean, max", "load this model with sentence-transformers"
        )
    return Pooling(POOLING_MODES[modes[0]])
