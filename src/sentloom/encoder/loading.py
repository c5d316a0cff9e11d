"""Load models by name: the parts of an Encoder, encoders that are shared, and other models that read text."""

import hashlib
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib.util import find_spec
from logging import ERROR, getLogger
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import PreTrainedConfig, PreTrainedModel, PreTrainedTokenizerBase
from transformers.utils import logging

from sentloom.encoder.backbone import Backbone, is_causal
from sentloom.encoder.device import device_for, precision_for
from sentloom.encoder.encoder import Encoder
from sentloom.encoder.folder_checks import CONFIG, checked_config
from sentloom.encoder.formats.registry import format_of
from sentloom.encoder.heads import Projection, load_projection
from sentloom.encoder.locate import catalogue_entry, locate
from sentloom.encoder.model_files import Weights, find, inside, read_json
from sentloom.encoder.packing import pack
from sentloom.encoder.pooling import LAST, MASK_TOKEN, POOLER, Pooling
from sentloom.encoder.pretrained import MODEL, Staged, check_ids, load_tokenizer, load_weights, loading, staged
from sentloom.encoder.settings import MODULES, OURS, EncoderSettings, read_settings
from sentloom.encoder.system import read_system
from sentloom.encoder.templates import manual_template
from sentloom.encoder.tokens import Prompts, Tokens, shared_suffix
from sentloom.errors import InputError, MissingPart, ModelError, option
from sentloom.files import sha256

LONGEST_UNSTATED = 512  # for models without a stated limit, such as T5
ENDINGS = (".json", ".safetensors", ".txt", ".model", ".spm")  # files that a model's output depends on


def load(name: str | Path, *, revision: str | None, **asked: Any) -> dict[str, Any]:
    """Load a model and return the constructor arguments of an Encoder, and its system; for `asked` see `Format`."""
    if (entry := catalogue_entry(name)) and entry.use in ("re-ranker", "translator"):
        problem = f"it is a {entry.use}, which gives no vectors"
        raise ModelError(str(name), problem, "an encoder", "`sentloom models` lists those of the catalogue")
    folder = locate(name, revision)
    return {**format_of(folder).load(folder, **asked), "system": read_system(folder)}


def load_folder(
    open_backbone: Callable[[Staged, EncoderSettings], Backbone],
    folder: Path,
    *,
    pooling: str | None,
    prompts: Prompts | None,
    max_length: int | None,
    weighted: bool = False,
) -> dict[str, Any]:
    """Load a folder with the modules of sentence-transformers around a backbone; `weighted` is described in `staged`.

    The backbone is opened with the pooling and the length that are asked for, or else the folder's own.
    """
    settings = read_settings(folder)
    chosen = Pooling.parse(pooling) if pooling else settings.pooling
    has_pooler = chosen.how == POOLER
    chosen = Pooling("first") if has_pooler else chosen
    with quiet(), staged(folder, weighted=weighted) as stage:
        if not pooling:
            _refuse_unknown_pooling(folder, stage.config)
        longest = max_length or settings.max_length
        backbone = open_backbone(stage, replace(settings, pooling=chosen, max_length=longest))
        tokens = _load_tokens(stage, backbone, settings, max_length)
        own_head = [pooler_head(stage, backbone)] if has_pooler and not settings.dense_folders else []
    _check_width(settings, backbone, folder)
    heads = own_head or [load_projection(inside(folder, place)) for place in settings.dense_folders]
    if not pooling:
        _check_pooling(backbone, chosen, folder)
    _check_runs(backbone, tokens, heads, folder)
    own = manual_template(tokens) if chosen.how == MASK_TOKEN and not settings.prompts else settings.prompts
    return {
        "backbone": backbone,
        "tokens": tokens,
        "pooling": chosen,
        "heads": heads,
        "unit_length": settings.unit_length,
        "prompts": own if prompts is None else prompts,
    }


def _refuse_unknown_pooling(folder: Path, config: PreTrainedConfig) -> None:
    """Refuse to average a causal model whose folder does not ask for it, as a mean is mostly of half-read sentences."""
    if _lacks_pooling(folder, config):
        problem = f"this is a {config.model_type} model, in which a token sees only those before it"
        expected = "a pooling, because the folder states none: the last token sees the whole text"
        raise ModelError(str(folder), problem, expected, f"choose it with {option('pooling', LAST)}")


def _lacks_pooling(folder: Path, config: PreTrainedConfig) -> bool:
    return is_causal(config) and not find(folder, MODULES)


def lacks_pooling(folder: Path) -> bool:
    """Whether a pooling has to be chosen before a model can be an encoder."""
    return _lacks_pooling(folder, checked_config(folder, Weights((), {}))[1])


def takes_default_pooling(folder: Path) -> bool:
    """Whether a method may choose the pooling: the folder states none, and the model reads in both directions."""
    return not find(folder, MODULES) and not is_causal(checked_config(folder, Weights((), {}))[1])


def pooler_head(stage: Staged, backbone: Backbone) -> Projection:
    """A copy of the pooler of a BERT or RoBERTa: linear, then tanh. SimCSE keeps its MLP there."""
    dense = getattr(getattr(backbone.model, "pooler", None), "dense", None)
    if dense is None or not any(name.endswith("pooler.dense.weight") for name in stage.weights.all_shapes):
        problem = "it has no pooler (a linear layer and tanh after the first token)"
        raise ModelError(str(stage.origin), problem, "a model with a pooler, such as SimCSE's", "choose pooling: first")
    head = Projection(dense.in_features, dense.out_features, activation="tanh")
    head.linear.load_state_dict({name: weight.clone() for name, weight in dense.state_dict().items()})
    return head


def _load_tokens(stage: Staged, backbone: Backbone, settings: EncoderSettings, max_length: int | None) -> Tokens:
    tokenizer = load_tokenizer(stage)
    if not hasattr(tokenizer, "backend_tokenizer"):
        problem = f"{type(tokenizer).__name__} is a slow tokenizer, written in Python"
        raise ModelError(str(stage.origin), problem, "a tokenizer of the tokenizers library", "choose another model")
    check_ids(tokenizer, backbone.model, stage.origin)
    if tokenizer.pad_token is None:  # many causal models have none, and what reads a saved encoder pads
        tokenizer.pad_token = tokenizer.eos_token
    length = _length(tokenizer, backbone, settings.max_length, max_length)
    suffix = shared_suffix(settings.prompts) or ""
    with loading(stage.origin, "the tokenizer"):
        tokens = Tokens(tokenizer, length, suffix=suffix, lower_case=settings.lower_case)
    if max_length is None and length <= (frame := len(tokens.specials.before) + len(tokens.specials.after)):
        problem = f"the maximum length is {length} tokens, and {frame} of them are special tokens"
        raise ModelError(str(stage.origin), problem, "room for a sentence", "raise max_seq_length")
    return tokens


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


@contextmanager
def quiet(*loggers: str) -> Iterator[None]:
    """Silence transformers' progress bars and reports; we raise our own error for missing weights.

    `loggers` are the names of loggers whose warnings are silenced too.
    """
    levels = {logger: logger.level for logger in map(getLogger, loggers)}
    level, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    for logger in levels:
        logger.setLevel(ERROR)
    try:
        yield
    finally:
        for logger, before in levels.items():
            logger.setLevel(before)
        logging.set_verbosity(level)
        if bars:
            logging.enable_progress_bar()


class SharedEncoders:
    """At most `most` encoders with at most `most_bytes` of weights together; the least recently used go first."""

    def __init__(self, most: int = 12, most_bytes: int = 1_500_000_000) -> None:
        self.most, self.most_bytes = most, most_bytes
        self.loaded: OrderedDict[Hashable, Encoder] = OrderedDict()  # the least recently used first
        self.bytes: dict[Hashable, int] = {}  # of each encoder's weights

    def __call__(
        self,
        name: str | Path,
        *,
        pooling: str | None = None,
        prompts: Prompts | None = None,
        max_length: int | None = None,
    ) -> Encoder:
        """The encoder that `Encoder.load` gives. Nobody may change it; its fingerprint is computed once."""
        prompted = None if prompts is None else tuple(sorted(prompts.items()))
        key = (str(name), _files(name), pooling, prompted, max_length, str(device_for()), precision_for())
        if key not in self.loaded:
            encoder = Encoder.load(name, pooling=pooling, prompts=prompts, max_length=max_length)
            encoder.known_fingerprint = encoder.fingerprint()
            self.loaded[key] = encoder
            self.bytes[key] = sum(weight.nbytes for weight in encoder.parameters())
        self.loaded.move_to_end(key)
        encoder = self.loaded[key]
        while len(self.loaded) > self.most or sum(self.bytes.values()) > self.most_bytes:
            oldest, _ = self.loaded.popitem(last=False)
            del self.bytes[oldest]
        return encoder


shared_encoder = SharedEncoders()


def _files(name: str | Path) -> Hashable:
    """All that changes if a folder is written again: its files, with their sizes, times and inodes."""
    stats = ((path, path.stat()) for path in sorted(locate(name).rglob("*")) if path.is_file())
    return tuple((str(path), facts.st_size, facts.st_mtime_ns, facts.st_ino) for path, facts in stats)


@dataclass(frozen=True)
class TextModel:
    """A model and its tokenizer."""

    model: PreTrainedModel
    tokenizer: PreTrainedTokenizerBase
    sha256: str  # of the folder's files
    folder: Path

    @property
    def longest(self) -> int:
        """The maximum number of tokens, assuming for all models that positions start at 2, as in RoBERTa."""
        positions = getattr(self.model.config, "max_position_embeddings", None) or 514
        return min(self.tokenizer.model_max_length, positions - 2)

    def cut(self, ids: list[int]) -> tuple[list[int], list[int]]:
        """Truncate token ids to the maximum length, keeping the final token; also return the ids cut out."""
        if len(ids) <= self.longest:
            return ids, []
        return [*ids[: self.longest - 1], ids[-1]], ids[self.longest - 1 : -1]


def load_model(name: str, kind: Any, expected: str, outputs: int | None = None) -> TextModel:
    """Load a model with one of transformers' Auto classes; `expected` describes it in error messages.

    A model that classifies must have `outputs` outputs.
    """
    folder = locate(name)
    if any(folder.glob("*.spm")) and find_spec("sentencepiece") is None:
        problem = "the model's tokenizer needs the package sentencepiece, which is not installed"
        raise MissingPart(name, problem, "", "pip install sentencepiece")
    with quiet(), staged(folder) as stage:
        if type(stage.config) not in kind._model_mapping:
            raise ModelError(
                str(folder), f"this is a {stage.config.model_type} model", expected, "choose another model"
            )
        if outputs is not None:
            _check_outputs(folder, outputs, expected)
            stage.config.num_labels = outputs
        model, tokenizer = load_weights(kind, stage), load_tokenizer(stage)
    check_ids(tokenizer, model, folder)
    if hasattr(tokenizer, "backend_tokenizer"):  # set now, because several workers may use it
        tokenizer.backend_tokenizer.no_truncation()
        tokenizer.backend_tokenizer.no_padding()
    device: Any = device_for()
    return TextModel(model.to(device).eval(), tokenizer, _folder_sha256(folder), folder)


def _check_outputs(folder: Path, outputs: int, expected: str) -> None:
    """Compare the number of classes; a configuration without a number means two. The weights are checked later."""
    content = read_json(inside(folder, CONFIG))
    labels = content.get("id2label")
    count = len(labels) if isinstance(labels, dict) and labels else content.get("num_labels", 2)
    if count != outputs:
        raise ModelError(str(folder), f"the model has {count} outputs", expected, "choose another model")


def _folder_sha256(folder: Path) -> str:
    files = sorted(path for path in folder.iterdir() if path.suffix in ENDINGS and path.is_file())
    return hashlib.sha256(" ".join(f"{path.name} {sha256(path)}" for path in files).encode()).hexdigest()


def load_for_inference(name: str, kind: Any, expected: str, outputs: int | None = None) -> TextModel:
    """Load a model that is not trained, in the chosen precision, which is then part of its hash."""
    loaded, precision = load_model(name, kind, expected, outputs), precision_for()
    if precision == "fp32":
        return loaded
    model: Any = loaded.model
    return replace(loaded, model=model.to(torch.bfloat16), sha256=f"{loaded.sha256} {precision}")
