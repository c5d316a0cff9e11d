"""sentence-transformers' folders, which are sentloom's own: a transformer that torch runs and trains.

`saving` writes them.
"""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from transformers import AutoModel, AutoModelForTextEncoding, PreTrainedModel

from sentloom.encoder.backbone import Backbone
from sentloom.encoder.formats.format import Format, Target
from sentloom.encoder.loading import load_folder
from sentloom.encoder.model_files import has_weights
from sentloom.encoder.pooling import DECODER_FIRST
from sentloom.encoder.pretrained import DECODER, MODEL, POOLER, Staged, load_weights, loading
from sentloom.encoder.saving import is_native, write_model
from sentloom.encoder.settings import EncoderSettings
from sentloom.errors import ModelError

if TYPE_CHECKING:
    from sentloom.encoder import Encoder

ENCODER_DECODERS = ("t5", "mt5", "umt5")


def open_torch(stage: Staged, settings: EncoderSettings) -> Backbone:
    """The backbone of a folder; the decoder of an encoder-decoder is loaded only if it is pooled."""
    model = _load_model(stage, decoder=settings.pooling.how == DECODER_FIRST)
    with loading(stage.origin, MODEL):
        return Backbone(model)


def _load_model(stage: Staged, decoder: bool) -> PreTrainedModel:
    config = stage.config
    if config.is_encoder_decoder and config.model_type not in ENCODER_DECODERS:
        problem = f"encoder-decoder models of the family {config.model_type} are not supported"
        raise ModelError(str(stage.origin), problem, "T5, mT5 or UMT5, or an encoder", "choose another model")
    encoder_only = config.model_type in ENCODER_DECODERS and not decoder
    kind = AutoModelForTextEncoding if encoder_only else AutoModel
    model = load_weights(kind, stage, may_miss=[POOLER], unused=[DECODER] if encoder_only else [])
    model.config.output_hidden_states = False  # a saved layer pooling sets it; we request them when needed
    return model


def _write(encoder: "Encoder", folder: Path) -> None:
    if not is_native(encoder):
        why = "decoder-first pooling" if encoder.pooling.how == DECODER_FIRST else "suffixes that differ by role"
        problem = f"sentence-transformers has no module for {why}"
        raise ModelError("export to sentence-transformers", problem, "", "export to onnx, or load it with sentloom")
    write_model(encoder, folder)


FORMAT = Format(
    holds=has_weights,
    load=partial(load_folder, open_torch, weighted=True),
    targets={"sentence-transformers": Target(_write)},
    package="torch",
    trainable=True,
)
