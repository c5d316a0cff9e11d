"""ONNX files: folders that `sentloom export` or other tools wrote.

optimum, fastembed, text-embeddings-inference and sentence-transformers read the folders as well.
"""

import hashlib
import re
from copy import copy
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor
from transformers import PreTrainedConfig

from sentloom.encoder.folder_checks import TOKENIZER_CONFIG
from sentloom.encoder.formats.format import CLOSE, Format, ReadOnlyBackbone, Target, first_position
from sentloom.encoder.formats.onnx_graph import write_int8, write_onnx
from sentloom.encoder.formats.onnx_probe import IDS, MASK, TYPES, batch_shapes, check_onnx, open_session, output_name
from sentloom.encoder.loading import load_folder
from sentloom.encoder.model_files import find, has_weights, inside, read_json
from sentloom.encoder.pooling import DECODER_FIRST, MASK_TOKEN, Pooling
from sentloom.encoder.pretrained import Staged, loading
from sentloom.encoder.saving import patch_json, write_json, write_settings
from sentloom.encoder.settings import BATCHED, OURS, EncoderSettings
from sentloom.encoder.tokens import shared_suffix
from sentloom.errors import ModelError

if TYPE_CHECKING:
    from onnxruntime import InferenceSession

    from sentloom.encoder import Encoder

ONNX = "onnx/model.onnx"  # where optimum and text-embeddings-inference look
LONGEST = 512  # tokens, if neither the model nor the folder has a limit
# The protobuf key of a tensor that names another file; a number may be written with more bytes than it needs.
ELSEWHERE = re.compile(rb"(\n|\x8a\x80*\x00)(\x08|\x88\x80*\x00)location")


class OnnxBackbone(ReadOnlyBackbone):
    """A transformer in an ONNX file.

    8-bit activations may be scaled by the range of the whole batch. A vector would then depend on the other sentences,
    so a file runs one sentence at a time unless it is known to be `batched`.
    """

    def __init__(
        self, session: "InferenceSession", config: PreTrainedConfig, name: str, digest: str, *, batched: bool
    ) -> None:
        super().__init__(config, name, digest, batched=batched)
        self.session = session
        self.inputs = {node.name for node in session.get_inputs()}
        self.output = output_name(name, self.inputs, [node.name for node in session.get_outputs()])

    def run(self, ids: Tensor, mask: Tensor) -> Tensor:
        """(n, L) -> (n, L, d)."""
        rows = ids.numpy()
        arrays = {IDS: rows, MASK: mask.numpy().astype(np.int64), TYPES: np.zeros_like(rows)}
        feed = {key: value for key, value in arrays.items() if key in self.inputs}
        return torch.from_numpy(self.session.run([self.output], feed)[0])


def open_onnx(folder: Path, config: PreTrainedConfig, *, batched: bool, max_length: int | None = None) -> OnnxBackbone:
    """The backbone of a folder, for texts of up to `max_length` tokens; its file is tried in another process first."""
    path = inside(folder, ONNX)
    content = path.read_bytes()
    if ELSEWHERE.search(content):
        raise ModelError(str(path), "its weights are in other files", "a single file", "export the model again")
    check_onnx(content, str(path), batch_shapes(_longest(config, max_length), batched=batched), config.vocab_size)
    with loading(path, "the model"):
        session = open_session(content, str(folder))
    return OnnxBackbone(session, config, str(folder), hashlib.sha256(content).hexdigest(), batched=batched)


def _longest(config: PreTrainedConfig, max_length: int | None) -> int:
    """The most tokens that a text may have."""
    positions = getattr(config, "max_position_embeddings", None)
    room = max(1, positions - first_position(config)) if positions else max_length or LONGEST
    return min(max_length or room, room)


def _open(stage: Staged, settings: EncoderSettings) -> OnnxBackbone:
    return open_onnx(stage.origin, stage.config, batched=settings.batched, max_length=settings.max_length)


def _holds(folder: Path) -> bool:
    return not has_weights(folder) and find(folder, ONNX) is not None


def _write(encoder: "Encoder", folder: Path) -> None:
    _refuse_suffixes(encoder)
    (folder / ONNX).parent.mkdir()
    write_onnx(encoder, folder / ONNX)
    encoder.backbone.model.config.save_pretrained(folder)
    write_settings(with_plain_pooling(encoder), folder)
    patch_json(folder / OURS, **{BATCHED: True})
    write_json(folder / TOKENIZER_CONFIG, readable_tokenizer_config(encoder, read_json(folder / TOKENIZER_CONFIG)))


def _write_int8(encoder: "Encoder", folder: Path) -> None:
    _write(encoder, folder)
    write_int8(folder / ONNX)


def _refuse_suffixes(encoder: "Encoder") -> None:
    if shared_suffix(encoder.prompts) is None:
        problem = "the suffixes of the prompts differ by role, and a tokenizer can add only one"
        raise ModelError("export to onnx", problem, "one suffix, or none", "use ctranslate2, which sentloom reads")


def with_plain_pooling(encoder: "Encoder") -> "Encoder":
    """The encoder as an ONNX folder describes it: layers, the decoder and a template's mask are inside the file."""
    plain = copy(encoder)  # with the same weights
    how = "first" if encoder.pooling.how in (DECODER_FIRST, MASK_TOKEN) else encoder.pooling.how
    plain.pooling = replace(encoder.pooling, how=how, layers=Pooling().layers)
    return plain


def readable_tokenizer_config(encoder: "Encoder", written: dict[str, Any]) -> dict[str, Any]:
    """tokenizer_config.json as peers on transformers 4 read it, which version 5 reads as well.

    fastembed needs the length, which it cuts texts at. Version 5 calls the additional tokens `extra_special_tokens`,
    where version 4 wants a mapping, and has a class that version 4 has under another name.
    """
    config = {**written, "model_max_length": encoder.tokens.max_length}
    if isinstance(additional := config.get("extra_special_tokens"), list):
        del config["extra_special_tokens"]
        config |= {"additional_special_tokens": additional} if additional else {}
    if config.get("tokenizer_class") == "TokenizersBackend":
        config["tokenizer_class"] = "PreTrainedTokenizerFast"
    return config


FORMAT = Format(
    holds=_holds,
    load=partial(load_folder, _open),
    targets={"onnx": Target(_write), "onnx-int8": Target(_write_int8, CLOSE)},
    package="onnxruntime",
)
