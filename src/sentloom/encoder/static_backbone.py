"""Static encoders: a vector per token and no transformer, in the folders that model2vec and `sentloom export` write."""

from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.numpy import load_file
from tokenizers import Tokenizer, processors
from torch import Tensor
from transformers import PreTrainedConfig, PreTrainedTokenizerFast

from sentloom.encoder.model_files import LARGEST_VOCABULARY, WEIGHTS, inside, read_json, read_shapes
from sentloom.encoder.packing import Pack
from sentloom.encoder.pooling import Pooling
from sentloom.encoder.pretrained import loading
from sentloom.encoder.prompts import Prompts
from sentloom.encoder.read_only import LAST, ReadOnlyBackbone
from sentloom.encoder.tokenizer_growth import check_growth
from sentloom.encoder.tokens import Tokens
from sentloom.errors import ModelError
from sentloom.files import sha256

VECTORS, UNKNOWN = "embeddings", "unk_token"
LONGEST = 100_000  # tokens of a text, which costs next to nothing here


class StaticBackbone(ReadOnlyBackbone):
    """A table (V, d) of vectors."""

    def __init__(self, table: Tensor, name: str, digest: str) -> None:
        config: Any = PreTrainedConfig()
        config.pad_token_id = 0
        config.hidden_size, config.num_hidden_layers, config.vocab_size = table.shape[1], 0, table.shape[0]
        super().__init__(config, name, digest, batched=False)
        self.register_buffer("table", table)

    def states(self, pack: Pack, layers: Any = LAST) -> list[Tensor]:
        """The vectors of the tokens (T, d)."""
        table: Any = self.table
        return [table[pack.ids[0]]]


def load_static(
    folder: Path, *, pooling: str | None, prompts: Prompts | None, max_length: int | None
) -> dict[str, Any]:
    """Return the constructor arguments of an Encoder: the mean of the tokens' vectors, at unit length."""
    path = inside(folder, WEIGHTS)
    if read_shapes(path).keys() != {VECTORS}:
        problem, expected = "the tensors are not those of a plain static model", f"only {VECTORS}"
        raise ModelError(str(path), problem, expected, "export the model again")
    with loading(path, "the model"):
        table = torch.from_numpy(load_file(path)[VECTORS].astype(np.float32))
    normalised = read_json(inside(folder, "config.json")).get("normalize")
    return {
        "backbone": StaticBackbone(table, str(folder), sha256(path)),
        "tokens": _tokens(folder, len(table), max_length or LONGEST),
        "pooling": Pooling.parse(pooling or "mean"),
        "unit_length": normalised is True,
        "prompts": prompts,
    }


def _tokens(folder: Path, rows: int, max_length: int) -> Tokens:
    """The tokenizer, without special tokens."""
    path = inside(folder, "tokenizer.json")
    content = read_json(path, LARGEST_VOCABULARY)
    check_growth(path, content)
    with loading(path, "the tokenizer"):
        backend = Tokenizer.from_file(str(path))
        backend.post_processor = processors.TemplateProcessing(single="$A", pair="$A $B")
        unknown = content["model"].get(UNKNOWN) or backend.id_to_token(content["model"].get("unk_id") or 0)
        tokenizer = PreTrainedTokenizerFast(tokenizer_object=backend, **{UNKNOWN: unknown})
    if max(backend.get_vocab().values(), default=-1) >= rows:
        problem, expected = "the tokenizer has ids without a vector", f"ids below {rows}"
        raise ModelError(str(path), problem, expected, "export the model again")
    return Tokens(tokenizer, max_length)
