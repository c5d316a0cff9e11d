"""Convert an encoder's transformer for CTranslate2, which has BERT, DistilBERT, RoBERTa and their relatives."""

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from sentloom.encoder.ctranslate_backbone import ctranslate2
from sentloom.encoder.loading import quiet
from sentloom.errors import ModelError, first_line

if TYPE_CHECKING:
    from sentloom.encoder import Encoder

FAMILIES = ("bert", "camembert", "distilbert", "roberta", "xlm-roberta")
NEXT_STEP = "export to onnx"


def write_ctranslate(encoder: "Encoder", folder: Path, weights: Literal["float32", "int8"]) -> None:
    """Write the converted model into a new folder."""
    _refuse_unsupported(encoder)
    ctranslate2("export to ctranslate2")
    from ctranslate2.converters import TransformersConverter

    class Converter(TransformersConverter):  # type: ignore[misc]
        def load_model(self, *given: Any, **named: Any) -> Any:
            model = super().load_model(*given, **named)
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
