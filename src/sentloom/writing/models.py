"""Open a language model by its name: a folder, a name of the catalogue or of the hub, or `smollm2-nli`.

`smollm2` writes queries. For all other kinds it has the adapters of `smollm2-nli/` added to its weights, in a folder
beside the one that it was unpacked into.
"""

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from transformers.models.auto.modeling_auto import (
    MODEL_FOR_CAUSAL_LM_MAPPING_NAMES,
    MODEL_FOR_MASKED_LM_MAPPING_NAMES,
    MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES,
)

from sentloom.encoder.locate import locate
from sentloom.encoder.model_files import ADAPTER, WEIGHTS, read_json
from sentloom.errors import InputError, ModelError
from sentloom.files import content_sha256, is_sealed, new_folder, seal
from sentloom.writing.causal import Causal
from sentloom.writing.language_model import SETTINGS, LanguageModel
from sentloom.writing.text_to_text import TextToText
from sentloom.writing.writer import Kind

SMOLLM2, SMOLLM2_NLI = "smollm2", "smollm2-nli"  # as published, and trained on NLI data
LEARNED = Path(__file__).with_name("smollm2-nli")
ADAPTERS = "adapter_model.safetensors"  # as peft writes them


def open_model(name: str | Path, **settings: Any) -> LanguageModel:
    """Load the model of this name, with the prompts and lengths that are given."""
    folder = nli_folder() if name == SMOLLM2_NLI else locate(name)
    return family_of(folder).load(folder, **settings)


def family_of(folder: Path) -> type[LanguageModel]:
    """Text-to-text or causal, as config.json says."""
    kind = str(read_json(folder / "config.json").get("model_type"))
    if kind in MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES:
        return TextToText
    if kind in MODEL_FOR_CAUSAL_LM_MAPPING_NAMES and kind not in MODEL_FOR_MASKED_LM_MAPPING_NAMES:
        return Causal
    expected = f"{TextToText.WANTED}, or {Causal.WANTED}"
    raise ModelError(str(folder), f"this is a {kind} model", expected, "choose another model")


def version_for(name: str, kinds: Sequence[Kind], *, shown: bool) -> str:
    """The version of `smollm2` that writes some kinds; any other writer is the one that its name says.

    `shown`: by the user's own examples, which need no training.
    """
    others = [kind for kind in kinds if kind != "query"]
    if name != SMOLLM2 or shown or not others:
        return name
    if len(others) == len(kinds):
        return SMOLLM2_NLI
    problem = f"one version of smollm2 writes queries, and another one {' and '.join(others)}"
    raise InputError("kind", problem, "one or the other", "write them into two ledgers")


def nli_folder() -> Path:
    """The folder of the model that has learned from NLI data."""
    base = locate(SMOLLM2)
    folder = base.with_name(f"{base.name}-{content_sha256(LEARNED / ADAPTERS)[:16]}")
    if not is_sealed(folder):
        with new_folder(folder) as part:
            shutil.copytree(base, part, dirs_exist_ok=True)
            save_file(with_adapters(load_file(base / WEIGHTS), LEARNED), part / WEIGHTS, metadata={"format": "pt"})
            shutil.copyfile(LEARNED / SETTINGS, part / SETTINGS)
        seal(folder)
    return folder


def with_adapters(weights: dict[str, torch.Tensor], folder: Path) -> dict[str, torch.Tensor]:
    """W + alpha/rank B A for every layer with adapters."""
    by, adapters = json.loads((folder / ADAPTER).read_text("utf-8")), load_file(folder / ADAPTERS)
    changed = dict(weights)
    for name, down in adapters.items():  # (rank, in)
        if ".lora_A." in name:
            up = adapters[name.replace(".lora_A.", ".lora_B.")]  # (out, rank)
            layer = name.removeprefix("base_model.model.").replace(".lora_A.", ".")
            changed[layer] = weights[layer] + by["lora_alpha"] / by["r"] * (up.float() @ down.float())
    return changed
