"""Open the model that writes: the embedded one, a folder, a hub name; text-to-text or causal."""

from pathlib import Path
from typing import Any

from transformers.models.auto.modeling_auto import (
    MODEL_FOR_CAUSAL_LM_MAPPING_NAMES,
    MODEL_FOR_MASKED_LM_MAPPING_NAMES,
    MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES,
)

from sentloom.encoder.locate import locate
from sentloom.encoder.model_files import read_json
from sentloom.errors import ModelError
from sentloom.writing.causal import Causal
from sentloom.writing.embedded import EMBEDDED_NLI, EMBEDDED_WRITER, embedded_folder, nli_folder
from sentloom.writing.language_model import LanguageModel
from sentloom.writing.text_to_text import TextToText

UNPACKED_BY = {EMBEDDED_WRITER: embedded_folder, EMBEDDED_NLI: nli_folder}


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
    wanted = f"{TextToText.WANTED}, or {Causal.WANTED}"
    raise ModelError(str(folder), f"this is a {kind} model", wanted, "choose another model")
