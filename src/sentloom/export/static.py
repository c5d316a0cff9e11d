"""Distil an encoder into static vectors with model2vec: one vector per token of its vocabulary."""

import json
import sys
from contextlib import AbstractContextManager, nullcontext, redirect_stderr
from copy import deepcopy
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sentloom.encoder.loading import quiet
from sentloom.encoder.model_files import read_json
from sentloom.encoder.pooling import DECODER_FIRST
from sentloom.errors import MissingPart, ModelError, first_line

if TYPE_CHECKING:
    from sentloom.encoder import Encoder

NOISY = ("model2vec", "skeletoken")  # warn that a folder is no name of a model on the hub
MOST_DIMENSIONS = 256  # model2vec's default, after PCA


def write_static(encoder: "Encoder", folder: Path) -> None:
    """Write a folder that model2vec and sentence-transformers read."""
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
    with quiet(*NOISY):
        static.normalize = encoder.unit_length
    static.save_pretrained(folder)
    (folder / "README.md").unlink(missing_ok=True)  # about model2vec, with a temporary path and a licence of its own
    _rename_origin(folder / "config.json", Path(model.config.name_or_path).name)


def _bar_for_terminals() -> AbstractContextManager[object]:
    """Where standard error is no terminal, model2vec's progress bar, which is all that it writes there, is dropped."""
    return nullcontext() if sys.stderr.isatty() else redirect_stderr(StringIO())


def _rename_origin(path: Path, name: str) -> None:
    """Keep the name of the model, but not where it is on this machine."""
    path.write_text(json.dumps({**read_json(path), "tokenizer_name": name}, indent=2), "utf-8")


def _refuse_unsupported(encoder: "Encoder") -> None:
    what = "export to static"
    if encoder.prompts:
        problem = "model2vec adds up the tokens of a text and knows no prompts, and this encoder has some"
        raise ModelError(what, problem, "an encoder without prompts", "use another target")
    if len(encoder.heads):
        problem = "model2vec distils a transformer, and this encoder has a projection after it"
        raise ModelError(what, problem, "an encoder without projections", "use another target")
    if encoder.pooling.layers != (-1,) or encoder.pooling.how not in ("mean", "first"):
        found = "the decoder" if encoder.pooling.how == DECODER_FIRST else f"the pooling {encoder.pooling}"
        problem = f"model2vec cannot distil {found}"
        raise ModelError(what, problem, "the pooling mean or first", "use another target")
