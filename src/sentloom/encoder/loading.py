"""From a model folder or name to the parts of an Encoder."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from transformers import (
    AutoConfig,
    AutoModel,
    AutoModelForTextEncoding,
    AutoTokenizer,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)
from transformers.utils import logging

from sentloom.encoder.backbone import Backbone
from sentloom.encoder.heads import Projection
from sentloom.encoder.locate import locate, read_json
from sentloom.encoder.pooling import DECODER_FIRST, Pooling
from sentloom.encoder.prompts import Prompts, shared_suffix
from sentloom.encoder.settings import ACTIVATIONS, Settings, read_settings
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
    with quiet():
        backbone = Backbone(_load_model(folder, decoder=chosen.how == DECODER_FIRST))
        tokens = _load_tokens(folder, backbone, settings, max_length)
    return {
        "backbone": backbone,
        "tokens": tokens,
        "pooling": chosen,
        "heads": [_load_projection(folder / place) for place in settings.dense_folders],
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


def _load_model(folder: Path, decoder: bool) -> PreTrainedModel:
    try:
        config = AutoConfig.from_pretrained(folder, trust_remote_code=False)
        if config.is_encoder_decoder and config.model_type not in ENCODER_DECODERS:
            found = f"an encoder-decoder of the family {config.model_type}"
            raise ModelError(str(folder), found, "T5, mT5 or UMT5, or an encoder", "choose another model")
        encoder_only = config.model_type in ENCODER_DECODERS and not decoder
        kind = AutoModelForTextEncoding if encoder_only else AutoModel
        with torch.random.fork_rng(devices=[]):  # a pooler that the folder lacks is drawn: the same one each time
            torch.manual_seed(0)
            model, report = kind.from_pretrained(
                folder, use_safetensors=True, trust_remote_code=False, dtype=torch.float32, output_loading_info=True
            )
    except (OSError, ValueError, KeyError, RuntimeError, SafetensorError) as error:
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise ModelError(
            str(folder), f"a model that does not load ({reason[:300]})", "sound weights and config", "save it anew"
        ) from None
    missing = sorted(key for key in report["missing_keys"] if "pooler" not in key)
    if missing or report["mismatched_keys"]:
        found = f"no fitting weights for {', '.join([*missing, *map(str, report['mismatched_keys'])][:3])}"
        raise ModelError(
            str(folder), found, "all weights of the model", "choose another pooling, or a whole checkpoint"
        )
    model.config.output_hidden_states = False  # a saved layer pooling asks for them; we ask when we need them
    return model


def _load_tokens(folder: Path, backbone: Backbone, settings: Settings, max_length: int | None) -> Tokens:
    try:
        tokenizer = AutoTokenizer.from_pretrained(folder, trust_remote_code=False)
    except Exception as error:  # of many kinds, from several libraries: all mean that these files are no good
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        found = f"a tokenizer that does not load ({reason[:300]})"
        raise ModelError(str(folder), found, "sound tokenizer files", "fetch or save them anew") from None
    if not hasattr(tokenizer, "backend_tokenizer"):
        found = f"a {type(tokenizer).__name__}, written in Python"
        raise ModelError(str(folder), found, "a tokenizer of the tokenizers library", "choose another model")
    length = _length(tokenizer, backbone, settings.max_length, max_length)
    suffix = shared_suffix(settings.prompts) or ""
    return Tokens(tokenizer, length, suffix=suffix, lower_case=settings.lower_case)


def _length(tokenizer: PreTrainedTokenizerBase, backbone: Backbone, saved: int | None, asked: int | None) -> int:
    """How many tokens a sentence may have: what was asked for, else saved, else what tokenizer and model can take."""
    positions = getattr(backbone.model.config, "max_position_embeddings", None)
    room = positions - backbone.first_position if positions else None
    if asked is not None and not 1 <= asked <= (room or asked):
        wanted = f"1 to {room}, the positions of this model" if room else "1 or more"
        raise InputError("max_length", str(asked), wanted, "choose another length")
    if asked is None and saved and room:
        saved = min(saved, room)
    return asked or saved or min(tokenizer.model_max_length, room or LONGEST_UNSTATED)


def _load_projection(folder: Path) -> Projection:
    config: dict[str, Any] = read_json(folder / "config.json")
    activation = ACTIVATIONS.get(config.get("activation_function", "torch.nn.modules.activation.Tanh"))
    elsewhere = {config.get(f"module_{side}_name") for side in ("input", "output")} - {None, "sentence_embedding"}
    wanted = "a Dense layer on sentence embeddings, Identity or Tanh, without a residual, with safetensors weights"
    if activation is None or config.get("use_residual") or elsewhere:
        raise ModelError(str(folder), f"a layer of {config}", wanted, "load it with sentence-transformers")
    try:
        widths = config["in_features"], config["out_features"]
        head = Projection(*widths, bias=config.get("bias", True), activation=activation)
        head.load_state_dict(load_file(folder / "model.safetensors"))
    except (OSError, KeyError, TypeError, RuntimeError, SafetensorError) as error:
        raise ModelError(str(folder), f"a layer that does not load ({error})", wanted, "save it anew") from None
    return head
