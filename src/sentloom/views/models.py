"""Models that make views: loaded from a folder or the hub, safetensors only, whole, and known by a hash."""

import hashlib
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from transformers import AutoTokenizer, PreTrainedModel, PreTrainedTokenizerBase

from sentloom.encoder.loading import quiet
from sentloom.encoder.locate import locate
from sentloom.errors import MissingPart, ModelError
from sentloom.files import sha256

ENDINGS = (".json", ".safetensors", ".txt", ".model", ".spm")  # of files that a model's output depends on


@dataclass(frozen=True)
class ViewModel:
    """A model and its tokenizer."""

    model: PreTrainedModel
    tokenizer: PreTrainedTokenizerBase
    sha256: str  # of the folder's files

    @property
    def longest(self) -> int:
        """How many tokens it reads; RoBERTa counts positions from 2, which all models are taken to do."""
        positions = getattr(self.model.config, "max_position_embeddings", None) or 514
        return min(self.tokenizer.model_max_length, positions - 2)

    def cut(self, ids: list[int]) -> tuple[list[int], list[int]]:
        """Token ids that the model can read, with the last, which closes a text; and those that were in between."""
        if len(ids) <= self.longest:
            return ids, []
        return [*ids[: self.longest - 1], ids[-1]], ids[self.longest - 1 : -1]


def load_model(name: str, kind: Any, wanted: str) -> ViewModel:
    """Load with one of transformers' Auto classes; `wanted` says for people what is looked for."""
    folder = locate(name)
    if any(folder.glob("*.spm")) and find_spec("sentencepiece") is None:
        found = "no package sentencepiece"
        raise MissingPart(name, found, "what this model's tokenizer needs", "pip install sentencepiece")
    with quiet():
        model, tokenizer = _load(folder, kind, wanted)
    if hasattr(tokenizer, "backend_tokenizer"):  # now, since it must not change while several workers use it
        tokenizer.backend_tokenizer.no_truncation()
        tokenizer.backend_tokenizer.no_padding()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    return ViewModel(model.to(device).eval(), tokenizer, _folder_sha256(folder))


def _load(folder: Path, kind: Any, wanted: str) -> tuple[Any, Any]:
    try:
        model, report = kind.from_pretrained(
            folder, use_safetensors=True, trust_remote_code=False, dtype=torch.float32, output_loading_info=True
        )
        tokenizer = AutoTokenizer.from_pretrained(folder, trust_remote_code=False)
    except (OSError, ValueError, KeyError, RuntimeError, TypeError, ImportError, SafetensorError) as error:
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise ModelError(
            str(folder), f"a model that does not load ({reason[:300]})", wanted, "choose another"
        ) from None
    if faults := [*sorted(report["missing_keys"]), *map(str, report["mismatched_keys"])]:
        found = f"no fitting weights for {', '.join(faults[:3])}"
        raise ModelError(str(folder), found, f"{wanted}, with all its weights", "choose another, or a whole checkpoint")
    return model, tokenizer


def _folder_sha256(folder: Path) -> str:
    files = sorted(path for path in folder.iterdir() if path.suffix in ENDINGS)
    return hashlib.sha256(" ".join(f"{path.name} {sha256(path)}" for path in files).encode()).hexdigest()
