"""Load models that are not encoders from a folder or the hub, with a hash of their files."""

import hashlib
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from sentloom.encoder.device import device_for, precision_for
from sentloom.encoder.folder_checks import CONFIG
from sentloom.encoder.loading import quiet
from sentloom.encoder.locate import locate
from sentloom.encoder.model_files import inside, read_json
from sentloom.encoder.pretrained import check_ids, load_tokenizer, load_weights
from sentloom.encoder.staging import staged
from sentloom.errors import MissingPart, ModelError
from sentloom.files import sha256

ENDINGS = (".json", ".safetensors", ".txt", ".model", ".spm")  # files that a model's output depends on


@dataclass(frozen=True)
class TextModel:
    """A model and its tokenizer."""

    model: PreTrainedModel
    tokenizer: PreTrainedTokenizerBase
    sha256: str  # of the folder's files
    folder: Path

    @property
    def longest(self) -> int:
        """The maximum number of tokens, assuming for all models that positions start at 2, as in RoBERTa."""
        positions = getattr(self.model.config, "max_position_embeddings", None) or 514
        return min(self.tokenizer.model_max_length, positions - 2)

    def cut(self, ids: list[int]) -> tuple[list[int], list[int]]:
        """Truncate token ids to the maximum length, keeping the final token; also return the ids cut out."""
        if len(ids) <= self.longest:
            return ids, []
        return [*ids[: self.longest - 1], ids[-1]], ids[self.longest - 1 : -1]


def load_model(name: str, kind: Any, expected: str, outputs: int | None = None) -> TextModel:
    """Load a model with one of transformers' Auto classes; `expected` describes it in error messages.

    A model that classifies must have as many `outputs`.
    """
    folder = locate(name)
    if any(folder.glob("*.spm")) and find_spec("sentencepiece") is None:
        problem = "the model's tokenizer needs the package sentencepiece, which is not installed"
        raise MissingPart(name, problem, "", "pip install sentencepiece")
    with quiet(), staged(folder) as stage:
        if type(stage.config) not in kind._model_mapping:
            raise ModelError(
                str(folder), f"this is a {stage.config.model_type} model", expected, "choose another model"
            )
        if outputs is not None:
            _check_outputs(folder, outputs, expected)
            stage.config.num_labels = outputs
        model, tokenizer = load_weights(kind, stage), load_tokenizer(stage)
    check_ids(tokenizer, model, folder)
    if hasattr(tokenizer, "backend_tokenizer"):  # now, because it must not change while several workers use it
        tokenizer.backend_tokenizer.no_truncation()
        tokenizer.backend_tokenizer.no_padding()
    device: Any = device_for()
    return TextModel(model.to(device).eval(), tokenizer, _folder_sha256(folder), folder)


def load_for_inference(name: str, kind: Any, expected: str, outputs: int | None = None) -> TextModel:
    """Load a model that is not trained, in the chosen precision, which is then part of its hash."""
    loaded, precision = load_model(name, kind, expected, outputs), precision_for()
    if precision == "fp32":
        return loaded
    model: Any = loaded.model
    return replace(loaded, model=model.to(torch.bfloat16), sha256=f"{loaded.sha256} {precision}")


def _check_outputs(folder: Path, outputs: int, expected: str) -> None:
    """Compare the number of classes; a configuration without a number means two. The weights are checked later."""
    content = read_json(inside(folder, CONFIG))
    labels = content.get("id2label")
    found = len(labels) if isinstance(labels, dict) and labels else content.get("num_labels", 2)
    if found != outputs:
        raise ModelError(str(folder), f"the model has {found} outputs", expected, "choose another model")


def _folder_sha256(folder: Path) -> str:
    files = sorted(path for path in folder.iterdir() if path.suffix in ENDINGS and path.is_file())
    return hashlib.sha256(" ".join(f"{path.name} {sha256(path)}" for path in files).encode()).hexdigest()
