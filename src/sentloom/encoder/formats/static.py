"""Static encoders: a vector per token and no transformer, in the folders that model2vec and `sentloom export` write."""

import json
import sys
from contextlib import AbstractContextManager, nullcontext, redirect_stderr
from copy import deepcopy
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from safetensors.numpy import load_file
from tokenizers import Tokenizer, processors
from torch import Tensor
from transformers import PreTrainedConfig, PreTrainedTokenizerFast

from sentloom.encoder.folder_checks import CONFIG, check_growth
from sentloom.encoder.formats.format import LAST, Format, ReadOnlyBackbone, Target
from sentloom.encoder.loading import quiet
from sentloom.encoder.model_files import LARGEST_VOCABULARY, WEIGHTS, has_weights, inside, read_json, read_shapes
from sentloom.encoder.packing import Pack
from sentloom.encoder.pooling import DECODER_FIRST, Pooling
from sentloom.encoder.pretrained import loading
from sentloom.encoder.tokens import Prompts, Tokens
from sentloom.errors import MissingPart, ModelError, first_line
from sentloom.files import sha256

if TYPE_CHECKING:
    from sentloom.encoder import Encoder

VECTORS, UNKNOWN = "embeddings", "unk_token"
LONGEST = 100_000  # tokens of a text, which costs next to nothing here
NOISY = ("model2vec", "skeletoken")  # warn that a folder is no name of a model on the hub
MOST_DIMENSIONS = 256  # model2vec's default, after PCA
NOTE = "Texts without a known token, such as empty ones or only emoji, get a zero vector from static models."


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
    normalised = read_json(inside(folder, CONFIG)).get("normalize")
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


def _holds(folder: Path) -> bool:
    return has_weights(folder) and read_json(inside(folder, CONFIG)).get("model_type") == "model2vec"


def write_static(encoder: "Encoder", folder: Path) -> None:
    """Distil an encoder with model2vec, into a folder that sentence-transformers reads as well."""
    _refuse_unsupported(encoder)
    try:
        from model2vec.distill import distill_from_model
    except ImportError:
        problem, fix = "the packages model2vec and skeletoken are not installed", "pip install 'sentloom[static]'"
        raise MissingPart("export to static", problem, "", fix) from None
    model: Any = deepcopy(encoder.backbone.model).cpu().eval()
    model.set_attn_implementation("eager")
    try:
        with quiet(*NOISY), _bar_for_terminals():
            static = distill_from_model(
                model,
                deepcopy(encoder.tokens.tokenizer),
                device="cpu",
                pca_dims=min(MOST_DIMENSIONS, encoder.dimension),
                pooling=encoder.pooling.how,
                quantize_to="float32",
            )
    except (ValueError, TypeError, AttributeError, KeyError) as error:
        problem = f"model2vec cannot distil this model ({first_line(error)[:200]})"
        raise ModelError("export to static", problem, "", "use another target") from None
    if static.unk_token_id is not None:  # model2vec leaves unknown tokens out: a zero row has the same effect elsewhere
        static.embedding[static.unk_token_id] = np.zeros(static.dim, np.float32)
    with quiet(*NOISY), _bar_for_terminals():
        static.normalize = encoder.unit_length
    static.save_pretrained(folder)
    (folder / "README.md").unlink(missing_ok=True)  # about model2vec, with a temporary path and a licence of its own
    _rename_origin(folder / CONFIG, Path(model.config.name_or_path).name)


def _bar_for_terminals() -> AbstractContextManager[object]:
    """Where standard error is no terminal, model2vec's progress bar, which is all that it writes there, is dropped."""
    return nullcontext() if sys.stderr.isatty() else redirect_stderr(StringIO())


def _rename_origin(path: Path, name: str) -> None:
    """Keep the name of the model, but not where it is on this machine."""
    path.write_text(json.dumps({**read_json(path), "tokenizer_name": name}, indent=2), "utf-8")


def _refuse_unsupported(encoder: "Encoder") -> None:
    where = "export to static"
    if encoder.prompts:
        problem = "model2vec adds up the tokens of a text and knows no prompts, and this encoder has some"
        raise ModelError(where, problem, "an encoder without prompts", "use another target")
    if len(encoder.heads):
        problem = "model2vec distils a transformer, and this encoder has a projection after it"
        raise ModelError(where, problem, "an encoder without projections", "use another target")
    if encoder.pooling.layers != (-1,) or encoder.pooling.how not in ("mean", "first"):
        unsupported = "the decoder" if encoder.pooling.how == DECODER_FIRST else f"the pooling {encoder.pooling}"
        problem = f"model2vec cannot distil {unsupported}"
        raise ModelError(where, problem, "the pooling mean or first", "use another target")


FORMAT = Format(
    holds=_holds,
    load=load_static,
    targets={"static": Target(write_static, None, NOTE)},
    package="model2vec",
)
