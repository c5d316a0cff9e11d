"""What lies beside a model's weights: read from a folder of sentence-transformers, of plain transformers, or of ours.

The chain of modules.json is the ground; our own `sentloom.json` adds what it cannot say (layers, a suffix prompt).
"""

import json
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from sentloom.encoder.locate import read_json
from sentloom.encoder.pooling import Pooling
from sentloom.encoder.prompts import ROLES, Prompt, Prompts
from sentloom.errors import ModelError

OURS = "sentloom.json"
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
    prompts: Prompts | None = None
    max_length: int | None = None
    lower_case: bool = False


def read_settings(folder: Path) -> Settings:
    """The settings of a model folder; plain transformers folders get mean pooling."""
    settings = _read_chain(folder) if (folder / "modules.json").is_file() else Settings()
    limits = _optional(folder / "sentence_bert_config.json")
    settings = replace(
        settings, max_length=limits.get("max_seq_length"), lower_case=bool(limits.get("do_lower_case", False))
    )
    ours = _optional(folder / OURS)
    if not ours:
        return replace(settings, prompts=_foreign_prompts(folder))
    prompts: dict[Any, Prompt] = {role: Prompt(**prompt) for role, prompt in ours["prompts"].items()}
    return replace(settings, pooling=Pooling.parse(ours["pooling"]), prompts=prompts)


def _optional(path: Path) -> dict[str, Any]:
    return read_json(path) if path.is_file() else {}


def _foreign_prompts(folder: Path) -> Prompts:
    """The prefix prompts that sentence-transformers keeps; its default prompt is our symmetric one."""
    config = _optional(folder / "config_sentence_transformers.json")
    named = config.get("prompts") or {}
    default = config.get("default_prompt_name")
    by_role = {"symmetric": named.get(default, "")} | {role: named.get(role, "") for role in ROLES[1:]}
    return {role: Prompt(prefix=by_role[role]) for role in ROLES if by_role[role]}


def _read_chain(folder: Path) -> Settings:
    """Walk modules.json. Layer pooling and decoder-first are ours: what they say stands in `sentloom.json`."""
    path = folder / "modules.json"
    try:
        modules = json.loads(path.read_text(encoding="utf-8"))
        chain = [(str(module["type"]).rpartition(".")[2], str(module["path"])) for module in modules]
    except (OSError, ValueError, TypeError, KeyError) as error:
        found = f"an unreadable list of modules ({error})"
        raise ModelError(str(path), found, "sentence-transformers' form", "save the model anew") from None
    settings = Settings()
    for kind, place in chain:
        if kind == "Pooling":
            settings = replace(settings, pooling=_read_pooling(folder / place / "config.json"))
        elif kind == "Dense":
            settings = replace(settings, dense_folders=(*settings.dense_folders, place))
        elif kind == "Normalize":
            settings = replace(settings, unit_length=True)
        elif kind != "Transformer" and not (folder / OURS).is_file():
            wanted = "Transformer, Pooling, Dense and Normalize"
            raise ModelError(str(path), f"a module {kind}", wanted, "load this model with sentence-transformers")
    return settings


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
    if len(modes) != 1 or modes[0] not in POOLING_MODES or others:
        found = ", ".join(map(str, [*modes, *others])) or "none"
        raise ModelError(
            str(path), f"pooling {found}", "one of cls, mean, max", "load this model with sentence-transformers"
        )
    return Pooling(POOLING_MODES[modes[0]])
