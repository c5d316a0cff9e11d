"""Encoders that CTranslate2 runs: folders that `sentloom export` wrote."""

from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from transformers import PreTrainedConfig

from sentloom.encoder.model_files import CTRANSLATE, inside
from sentloom.encoder.pretrained import loading
from sentloom.encoder.read_only import ReadOnlyBackbone
from sentloom.encoder.workers import keeping_threads
from sentloom.errors import MissingPart
from sentloom.files import sha256


class CTranslateBackbone(ReadOnlyBackbone):
    """A transformer in CTranslate2's format. It scales 8-bit activations per token, so batches change no vector."""

    def __init__(self, engine: Any, config: PreTrainedConfig, name: str, digest: str) -> None:
        super().__init__(config, name, digest, batched=True)
        self.engine = engine

    def run(self, ids: Tensor, mask: Tensor) -> Tensor:
        """(n, L) -> (n, L, d)."""
        rows = [row[real].tolist() for row, real in zip(ids, mask, strict=True)]
        return torch.from_numpy(np.array(self.engine.forward_batch(rows).last_hidden_state, dtype=np.float32))


def open_ctranslate(folder: Path, config: PreTrainedConfig) -> CTranslateBackbone:
    """The backbone of a folder, with a worker for each pack that runs at the same time."""
    path = inside(folder, CTRANSLATE)
    with loading(path, "the model"), keeping_threads():
        engine = ctranslate2(str(folder)).Encoder(
            str(path.parent), device="cpu", inter_threads=torch.get_num_threads(), intra_threads=1
        )
    return CTranslateBackbone(engine, config, str(folder), sha256(path))


def ctranslate2(where: str) -> Any:
    """The package."""
    try:
        import ctranslate2 as package
    except ImportError:
        problem = "the package ctranslate2 is not installed"
        raise MissingPart(where, problem, "", "pip install 'sentloom[ctranslate2]'") from None
    return package
