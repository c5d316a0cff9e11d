"""CTranslate2's format, which only sentloom reads: folders that `sentloom export` wrote.

CTranslate2 has BERT, DistilBERT, RoBERTa and their relatives.
"""

import tempfile
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import torch
from torch import Tensor
from transformers import PreTrainedConfig

from sentloom.encoder.device import keeping_threads
from sentloom.encoder.formats.format import CLOSE, Format, ReadOnlyBackbone, Target
from sentloom.encoder.loading import load_folder, quiet
from sentloom.encoder.model_files import find, has_weights, inside
from sentloom.encoder.pretrained import Staged, loading
from sentloom.encoder.saving import write_settings
from sentloom.encoder.settings import EncoderSettings
from sentloom.errors import MissingPart, ModelError, first_line
from sentloom.files import sha256

if TYPE_CHECKING:
    from sentloom.encoder import Encoder

CTRANSLATE = "ctranslate2/model.bin"
FAMILIES = ("bert", "camembert", "distilbert", "roberta", "xlm-roberta")
NEXT_STEP = "export to onnx"


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


def _open(stage: Staged, settings: EncoderSettings) -> CTranslateBackbone:
    return open_ctranslate(stage.origin, stage.config)


def _holds(folder: Path) -> bool:
    return not has_weights(folder) and find(folder, CTRANSLATE) is not None


def _write(weights: Literal["float32", "int8"], encoder: "Encoder", folder: Path) -> None:
    write_ctranslate(encoder, (folder / CTRANSLATE).parent, weights)
    encoder.backbone.model.config.save_pretrained(folder)
    write_settings(encoder, folder)


def write_ctranslate(encoder: "Encoder", folder: Path, weights: Literal["float32", "int8"]) -> None:
    """Write the converted model into a new folder."""
    _refuse_unsupported(encoder)
    ctranslate2("export to ctranslate2")
    from ctranslate2.converters import TransformersConverter

    class Converter(TransformersConverter):  # type: ignore[misc]
        def load_model(self, *arguments: Any, **options: Any) -> Any:
            model = super().load_model(*arguments, **options)
            model.config.position_embedding_type = "absolute"  # which older versions of transformers say
            _start_after_padding(model.base_model.embeddings.position_embeddings)
            return model

    with tempfile.TemporaryDirectory() as name, quiet():
        encoder.backbone.model.save_pretrained(name)
        encoder.tokens.tokenizer.save_pretrained(name)
        try:
            Converter(name).convert(str(folder), quantization=weights)
        except (ValueError, NotImplementedError, KeyError, AttributeError, AssertionError) as error:
            problem = f"CTranslate2 cannot convert this model ({first_line(error)[:200]})"
            raise ModelError("export to ctranslate2", problem, "", NEXT_STEP) from None


def _start_after_padding(positions: Any) -> None:
    """Remove the row of padding if it is the first: RoBERTa's positions start after it, and CTranslate2 does that only
    for paddings other than 0.
    """
    if positions.padding_idx == 0:
        positions.weight = type(positions.weight)(positions.weight[1:])


def _refuse_unsupported(encoder: "Encoder") -> None:
    family = encoder.backbone.model.config.model_type
    if family not in FAMILIES:
        problem = f"CTranslate2 has no encoder for {family} models"
        raise ModelError("export to ctranslate2", problem, f"one of {', '.join(FAMILIES)}", NEXT_STEP)
    if encoder.pooling.layers != (-1,):
        problem = f"CTranslate2 gives the states of the last layer only, and the pooling is {encoder.pooling}"
        raise ModelError("export to ctranslate2", problem, "a pooling of the last layer", NEXT_STEP)


FORMAT = Format(
    holds=_holds,
    load=partial(load_folder, _open),
    targets={
        "ctranslate2": Target(partial(_write, "float32")),
        "ctranslate2-int8": Target(partial(_write, "int8"), CLOSE),
    },
    package="ctranslate2",
    reader="sentloom",
)
