"""Load the parts of an Encoder from a model folder or name."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from logging import ERROR, getLogger
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import PreTrainedTokenizerBase
from transformers.utils import logging

from sentloom.encoder.backbone import Backbone
from sentloom.encoder.formats.registry import format_of
from sentloom.encoder.heads import Projection
from sentloom.encoder.locate import READ_ONLY, locate
from sentloom.encoder.model_files import inside
from sentloom.encoder.packing import pack
from sentloom.encoder.pooling import Pooling
from sentloom.encoder.pretrained import MODEL, check_ids, load_tokenizer, loading
from sentloom.encoder.projections import load_projection
from sentloom.encoder.prompts import Prompts, shared_suffix
from sentloom.encoder.settings import OURS, EncoderSettings, read_settings
from sentloom.encoder.staging import Staged, staged
from sentloom.encoder.tokens import Tokens
from sentloom.errors import InputError, ModelError

LONGEST_UNSTATED = 512  # for models without a stated limit, such as T5


def load(name: str | Path, *, revision: str | None, **asked: Any) -> dict[str, Any]:
    """Load a model and return the constructor arguments of an Encoder; `asked` as of `Format.load`."""
    if name in READ_ONLY:
        from sentloom.encoder.embedded_bge import load_bge

        return load_bge(**asked)
    folder = locate(name, revision)
    return format_of(folder).load(folder, **asked)


def load_folder(
    open_backbone: Callable[[Staged, EncoderSettings], Backbone],
    folder: Path,
    *,
    pooling: str | None,
    prompts: Prompts | None,
    max_length: int | None,
    weighted: bool = False,
) -> dict[str, Any]:
    """Load a folder with the modules of sentence-transformers around a backbone; `weighted` as of `staged`.

    The backbone is opened with the pooling and the length that are asked for, or else the folder's own.
    """
    settings = read_settings(folder)
    chosen = Pooling.parse(pooling) if pooling else settings.pooling
    with quiet(), staged(folder, weighted=weighted) as stage:
        longest = max_length or settings.max_length
        backbone = open_backbone(stage, replace(settings, pooling=chosen, max_length=longest))
        tokens = _load_tokens(stage, backbone, settings, max_length)
    _check_width(settings, backbone, folder)
    heads = [load_projection(inside(folder, place)) for place in settings.dense_folders]
    if not pooling:
        _check_pooling(backbone, chosen, folder)
    _check_runs(backbone, tokens, heads, folder)
    return {
        "backbone": backbone,
        "tokens": tokens,
        "pooling": chosen,
        "heads": heads,
        "unit_length": settings.unit_length,
        "prompts": settings.prompts if prompts is None else prompts,
    }


@contextmanager
def quiet(*others: str) -> Iterator[None]:
    """Silence transformers' progress bars and reports; we raise our own error for missing weights.

    `others` are names of loggers whose warnings are silenced too.
    """
    loggers = {one: one.level for one in map(getLogger, others)}
    level, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    for one in loggers:
        one.setLevel(ERROR)
    try:
        yield
    finally:
        for one, given in loggers.items():
            one.setLevel(given)
        logging.set_verbosity(level)
        if bars:
            logging.enable_progress_bar()


def _load_tokens(stage: Staged, backbone: Backbone, settings: EncoderSettings, max_length: int | None) -> Tokens:
    tokenizer = load_tokenizer(stage)
    if not hasattr(tokenizer, "backend_tokenizer"):
        problem = f"{type(tokenizer).__name__} is a slow tokenizer, written in Python"
        raise ModelError(str(stage.origin), problem, "a tokenizer of the tokenizers library", "choose another model")
    check_ids(tokenizer, backbone.model, stage.origin)
    length = _length(tokenizer, backbone, settings.max_length, max_length)
    suffix = shared_suffix(settings.prompts) or ""
    with loading(stage.origin, "the tokenizer"):
        tokens = Tokens(tokenizer, length, suffix=suffix, lower_case=settings.lower_case)
    if max_length is None and length <= (frame := len(tokens.specials.before) + len(tokens.specials.after)):
        problem = f"the maximum length is {length} tokens, and {frame} of them are special tokens"
        raise ModelError(str(stage.origin), problem, "room for a sentence", "raise max_seq_length")
    return tokens


def _check_width(settings: EncoderSettings, backbone: Backbone, folder: Path) -> None:
    if settings.width not in (None, backbone.width):
        problem = f"the pooling has {settings.width} dimensions"
        expected = f"{backbone.width}, the hidden size of the model"
        raise ModelError(str(folder / settings.pooling_file), problem, expected, "save the model again")


def _check_pooling(backbone: Backbone, pooling: Pooling, folder: Path) -> None:
    """Raise a ModelError if the folder names a pooling that its model does not support."""
    try:
        backbone.check(pooling)
    except InputError as error:
        raise ModelError(str(folder / OURS), f"{error.where}: {error.problem}", error.expected, error.fix) from None


def _check_runs(backbone: Backbone, tokens: Tokens, heads: Sequence[Projection], folder: Path) -> None:
    """Check that the projections fit the model and each other, and that the model runs on a sentence without words."""
    width = backbone.width
    for place, head in enumerate(heads, 1):
        if head.linear.in_features != width:
            problem, expected = f"projection {place} has {head.linear.in_features} inputs", f"{width}"
            raise ModelError(str(folder / "modules.json"), problem, expected, "save the model again")
        width = head.linear.out_features
    ids = [*tokens.specials.before, *tokens.specials.after] or [0]
    with loading(folder, MODEL), torch.inference_mode():
        backbone.eval().states(pack([ids], np.array([0]), torch.device("cpu")))


def _length(tokenizer: PreTrainedTokenizerBase, backbone: Backbone, saved: int | None, asked: int | None) -> int:
    """Return the maximum length in tokens: the requested, else the saved one, else the limit of tokenizer and model."""
    positions = getattr(backbone.model.config, "max_position_embeddings", None)
    room = positions - backbone.first_position if positions else None
    if asked is not None and not 1 <= asked <= (room or asked):
        expected = f"1 to {room}, the positions of this model" if room else "1 or more"
        raise InputError("max_length", f"{asked} is out of range", expected, "choose another length")
    if asked is None and saved and room:
        saved = min(saved, room)
    return asked or saved or int(min(tokenizer.model_max_length, room or LONGEST_UNSTATED))
