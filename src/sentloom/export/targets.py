"""The forms that an encoder can be exported to, and how each is written."""

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sentloom.encoder.folder_checks import TOKENIZER_CONFIG
from sentloom.encoder.golden import EXACT
from sentloom.encoder.model_files import CTRANSLATE, ONNX, read_json
from sentloom.encoder.pooling import DECODER_FIRST, Pooling
from sentloom.encoder.prompts import shared_suffix
from sentloom.encoder.saving import is_native, patch_json, write_json, write_model, write_settings
from sentloom.encoder.settings import BATCHED, OURS
from sentloom.errors import InputError, ModelError
from sentloom.export.ctranslate import write_ctranslate
from sentloom.export.onnx_graph import write_onnx
from sentloom.export.onnx_int8 import write_int8
from sentloom.export.static import write_static

if TYPE_CHECKING:
    from sentloom.encoder import Encoder

CLOSE = 0.99  # the mean cosine that 8-bit weights must reach


@dataclass(frozen=True)
class Target:
    """A form: how it is written into a folder, and how close its vectors must be; None: they are others by design."""

    name: str
    write: Callable[["Encoder", Path], None]
    required: float | None = EXACT

    @property
    def lossy(self) -> bool:
        """Whether vectors are not the same, so that a score has to be compared too."""
        return self.required != EXACT


def _onnx(encoder: "Encoder", folder: Path) -> None:
    _refuse_suffixes(encoder)
    (folder / ONNX).parent.mkdir()
    write_onnx(encoder, folder / ONNX)
    encoder.backbone.model.config.save_pretrained(folder)
    write_settings(with_plain_pooling(encoder), folder)
    patch_json(folder / OURS, **{BATCHED: True})
    write_json(folder / TOKENIZER_CONFIG, readable_tokenizer_config(encoder, read_json(folder / TOKENIZER_CONFIG)))


def readable_tokenizer_config(encoder: "Encoder", written: dict[str, Any]) -> dict[str, Any]:
    """tokenizer_config.json as peers on transformers 4 read it, which version 5 reads as well.

    fastembed needs the length, which it cuts texts at. Version 5 calls the additional tokens `extra_special_tokens`,
    where version 4 wants a mapping, and has a class that version 4 has under another name.
    """
    config = {**written, "model_max_length": encoder.tokens.max_length}
    if isinstance(more := config.get("extra_special_tokens"), list):
        del config["extra_special_tokens"]
        config |= {"additional_special_tokens": more} if more else {}
    if config.get("tokenizer_class") == "TokenizersBackend":
        config["tokenizer_class"] = "PreTrainedTokenizerFast"
    return config


def _onnx_int8(encoder: "Encoder", folder: Path) -> None:
    _onnx(encoder, folder)
    write_int8(folder / ONNX)


def _ctranslate(encoder: "Encoder", folder: Path) -> None:
    write_ctranslate(encoder, (folder / CTRANSLATE).parent, "float32")
    _write_rest(encoder, folder)


def _ctranslate_int8(encoder: "Encoder", folder: Path) -> None:
    write_ctranslate(encoder, (folder / CTRANSLATE).parent, "int8")
    _write_rest(encoder, folder)


def _write_rest(encoder: "Encoder", folder: Path) -> None:
    encoder.backbone.model.config.save_pretrained(folder)
    write_settings(encoder, folder)


def _sentence_transformers(encoder: "Encoder", folder: Path) -> None:
    if not is_native(encoder):
        why = "decoder-first pooling" if encoder.pooling.how == DECODER_FIRST else "suffixes that differ by role"
        problem = f"sentence-transformers has no module for {why}"
        raise ModelError("export to sentence-transformers", problem, "", "export to onnx, or load it with sentloom")
    write_model(encoder, folder)


def with_plain_pooling(encoder: "Encoder") -> "Encoder":
    """The encoder as an ONNX folder describes it: layers and the decoder are inside the file."""
    plain = copy(encoder)  # with the same weights
    how = "first" if encoder.pooling.how == DECODER_FIRST else encoder.pooling.how
    plain.pooling = replace(encoder.pooling, how=how, layers=Pooling().layers)
    return plain


def _refuse_suffixes(encoder: "Encoder") -> None:
    if shared_suffix(encoder.prompts) is None:
        problem = "the suffixes of the prompts differ by role, and a tokenizer can add only one"
        raise ModelError("export to onnx", problem, "one suffix, or none", "use ctranslate2, which sentloom reads")


TARGETS = {
    one.name: one
    for one in (
        Target("onnx", _onnx),
        Target("onnx-int8", _onnx_int8, CLOSE),
        Target("ctranslate2", _ctranslate),
        Target("ctranslate2-int8", _ctranslate_int8, CLOSE),
        Target("static", write_static, None),
        Target("sentence-transformers", _sentence_transformers),
    )
}


def target_named(name: str) -> Target:
    """A target by name."""
    if name not in TARGETS:
        raise InputError("to", f"{name!r} is unknown", f"one of {', '.join(TARGETS)}", "correct the name")
    return TARGETS[name]
