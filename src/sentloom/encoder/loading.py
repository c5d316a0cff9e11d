"""From a model folder or name to the parts of an Encoder."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import AutoModel, AutoModelForTextEncoding, PreTrainedModel, PreTrainedTokenizerBase
from transformers.utils import logging

from sentloom.encoder.backbone import Backbone
from sentloom.encoder.heads import Projection
from sentloom.encoder.locate import locate
from sentloom.encoder.model_files import inside
from sentloom.encoder.packing import pack
from sentloom.encoder.pooling import DECODER_FIRST, Pooling
from sentloom.encoder.pretrained import DECODER, MODEL, POOLER, check_ids, load_tokenizer, load_weights, loading
from sentloom.encoder.projections import load_projection
from sentloom.encoder.prompts import Prompts, shared_suffix
from sentloom.encoder.settings import OURS, EncoderSettings, read_settings
from sentloom.encoder.staging import Staged, staged
from sentloom.encoder.tokens import Tokens
from sentloom.errors import InputError, ModelError

ENCODER_DECODERS = ("t5", "mt5", "umt5")
LONGEST_UNSTATED = 512  # for models that state no limit, such as T5


def load(
    name: str | Path,
    *,
    revision: str | None,
    pooling: str | None,
    prompts: Prompts | None,
    max_length: int | None,
) -> dict[str, Any]:
    """The parts of an Encoder."""
    folder = locate(name, revision)
    settings = read_settings(folder)
    chosen = Pooling.parse(pooling) if pooling else settings.pooling
    with quiet(), staged(folder) as stage:
        model = _load_model(stage, decoder=chosen.how == DECODER_FIRST)
        with loading(folder, MODEL):
            backbone = Backbone(model)
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
def quiet() -> Iterator[None]:
    """Without transformers' bars and reports: what matters in them (missing weights) is an error of ours."""
    level, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(level)
        if bars:
            logging.enable_progress_bar()


def _load_model(stage: Staged, decoder: bool) -> PreTrainedModel:
    config = stage.config
    if config.is_encoder_decoder and config.model_type not in ENCODER_DECODERS:
        found = f"an encoder-decoder of the family {config.model_type}"
        raise ModelError(str(stage.origin), found, "T5, mT5 or UMT5, or an encoder", "choose another model")
    encoder_only = config.model_type in ENCODER_DECODERS and not decoder
    kind = AutoModelForTextEncoding if encoder_only else AutoModel
    model = load_weights(kind, stage, may_miss=[POOLER], unused=[DECODER] if encoder_only else [])
    model.config.output_hidden_states = False  # a saved layer pooling asks for them; we ask when we need them
    return model


def _load_tokens(stage: Staged, backbone: Backbone, settings: EncoderSettings, max_length: int | None) -> Tokens:
    tokenizer = load_tokenizer(stage)
    if not hasattr(tokenizer, "backend_tokenizer"):
        found = f"a {type(tokenizer).__name__}, written in Python"
        raise ModelError(str(stage.origin), found, "a tokenizer of the tokenizers library", "choose another model")
    check_ids(tokenizer, backbone.model, stage.origin)
    length = _length(tokenizer, backbone, settings.max_length, max_length)
    suffix = shared_suffix(settings.prompts) or ""
    with loading(stage.origin, "a tokenizer"):
        tokens = Tokens(tokenizer, length, suffix=suffix, lower_case=settings.lower_case)
    if max_length is None and length <= (frame := len(tokens.specials.before) + len(tokens.specials.behind)):
        found = f"a greatest length of {length} tokens, with {frame} special ones"
        raise ModelError(str(stage.origin), found, "room for a sentence", "raise max_seq_length")
    return tokens


def _check_width(settings: EncoderSettings, backbone: Backbone, folder: Path) -> None:
    if settings.width not in (None, backbone.width):
        found, wanted = f"a pooling of {settings.width} numbers", f"{backbone.width}, the width of the model"
        raise ModelError(str(folder / settings.pooling_file), found, wanted, "save the model again")


def _check_pooling(backbone: Backbone, pooling: Pooling, folder: Path) -> None:
    """A pooling that the folder names, and the model cannot give, is a fault of the folder."""
    try:
        backbone.check(pooling)
    except InputError as error:
        raise ModelError(str(folder / OURS), f"{error.where}, {error.problem}", error.expected, error.fix) from None


def _check_runs(backbone: Backbone, tokens: Tokens, heads: Sequence[Projection], folder: Path) -> None:
    """The model must run, on a sentence without words, and its projections must fit it and each other."""
    width = backbone.width
    for place, head in enumerate(heads, 1):
        if head.linear.in_features != width:
            found, wanted = f"{head.linear.in_features} inputs of projection {place}", f"{width}, what it is given"
            raise ModelError(str(folder / "modules.json"), found, wanted, "save the model again")
        width = head.linear.out_features
    ids = [*tokens.specials.before, *tokens.specials.behind] or [0]
    with loading(folder, MODEL), torch.inference_mode():
        backbone.eval().states(pack([ids], np.array([0]), torch.device("cpu")))


def _length(tokenizer: PreTrainedTokenizerBase, backbone: Backbone, saved: int | None, asked: int | None) -> int:
    """How many tokens a sentence may have: what was asked for, else saved, else what tokenizer and model can take."""
    positions = getattr(backbone.model.config, "max_position_embeddings", None)
    room = positions - backbone.first_position if positions else None
    if asked is not None and not 1 <= asked <= (room or asked):
        wanted = f"1 to {room}, the positions of this model" if room else "1 or more"
        raise InputError("max_length", str(asked), wanted, "choose another length")
    if asked is None and saved and room:
        saved = min(saved, room)
    return asked or saved or int(min(tokenizer.model_max_length, room or LONGEST_UNSTATED))
