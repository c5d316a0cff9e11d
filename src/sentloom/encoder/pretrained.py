"""Load the model and the tokenizer of a folder with transformers, from a temporary folder that has only checked files.

Loaders look for many files by name: adapters, chat templates, code, other configurations, pickles. There they find only
configurations that passed `folder_checks`, tokenizer files with known names, and links to safetensors files.
"""

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from transformers import AutoTokenizer, PreTrainedConfig, PreTrainedModel, PreTrainedTokenizerBase

from sentloom.encoder.folder_checks import (
    CONFIG,
    GENERATION_CONFIG,
    TOKENIZER_CONFIG,
    check_growth,
    checked_config,
    checked_generation_config,
    checked_tokenizer_config,
    reason_of,
)
from sentloom.encoder.model_files import (
    INDEX,
    LARGEST_VOCABULARY,
    TOKENIZER_JSON,
    TOKENIZER_OTHERS,
    WEIGHTS,
    Weights,
    as_sizes,
    find,
    read_json,
    read_weights,
)
from sentloom.errors import ModelError, SentloomError

MODEL = "the model (config.json and its weights)"
POOLER = r"(^|\.)pooler\."
# Weights that a folder may have besides those of the requested model: heads of other tasks, buffers of old versions.
KNOWN_HEADS = (
    POOLER,
    r"^cls\.(predictions|seq_relationship)\.",  # BERT: masked words, next sentence
    r"(^|\.)lm_head(\.|$)",
    r"^(qa_outputs|classifier|classification_head|score|logits_proj|sequence_summary|pre_classifier|pred_layer)\.",
    r"^vocab_(transform|layer_norm|projector)\.",  # DistilBERT
    r"^(generator|discriminator)_(predictions|lm_head)\.",  # ELECTRA
    r"^(predictions|sop_classifier)\.",  # ALBERT
    r"^lm_predictions\.|^mask_predictions\.",  # DeBERTa
    r"^head\.(dense|norm)\.|^decoder\.(weight|bias)$",  # ModernBERT
    r"(^|\.)(position_ids|token_type_ids|final_logits_bias|inv_freq)$",
    r"\.embed_positions\.(weight|weights|_float_tensor)$",  # Marian: computed, not learned
)
DECODER = r"^decoder\."  # of a T5 of which only the encoder is loaded
TOKENIZER_FILES = (TOKENIZER_CONFIG, *TOKENIZER_JSON, *TOKENIZER_OTHERS)


@dataclass(frozen=True)
class Staged:
    """The temporary folder, its configuration and weights, and the original folder."""

    folder: Path
    config: PreTrainedConfig
    origin: Path
    weights: Weights


@contextmanager
def staged(origin: Path, *, weighted: bool = True) -> Iterator[Staged]:
    """Check a model folder and yield a temporary folder with the files that passed.

    An exported model has no safetensors: it is not `weighted`.
    """
    weights = read_weights(origin) if weighted else Weights((), {})
    content, config = checked_config(origin, weights)
    jsons = {
        CONFIG: content,
        TOKENIZER_CONFIG: checked_tokenizer_config(origin),
        GENERATION_CONFIG: checked_generation_config(origin),
    }
    with TemporaryDirectory(prefix="sentloom-") as name:
        folder = Path(name)
        for file, values in jsons.items():
            if values:
                (folder / file).write_text(json.dumps(values), encoding="utf-8")
        _link_tokenizer(origin, folder)
        if weighted:
            _link_weights(weights, folder)
        yield Staged(folder, config, origin, weights)


def _link_tokenizer(origin: Path, folder: Path) -> None:
    for file in (*TOKENIZER_JSON, *TOKENIZER_OTHERS):
        path = find(origin, file)
        if not path:
            continue
        if file in TOKENIZER_JSON:
            check_growth(path, read_json(path, LARGEST_VOCABULARY))
        elif path.stat().st_size > LARGEST_VOCABULARY:
            problem, expected = f"the file has {path.stat().st_size:,} bytes", f"at most {LARGEST_VOCABULARY:,}"
            raise ModelError(str(path), problem, expected, "download or save the model again")
        (folder / file).symlink_to(path.resolve())


def _link_weights(weights: Weights, folder: Path) -> None:
    """Link the weights under names that loaders read as safetensors, whatever their original names."""
    if len(weights.files) == 1:
        (folder / WEIGHTS).symlink_to(weights.files[0].resolve())
        return
    count = len(weights.files)
    places: dict[str, str] = {}
    for number, file in enumerate(weights.files, 1):
        name = f"model-{number:05d}-of-{count:05d}.safetensors"
        (folder / name).symlink_to(file.resolve())
        places |= dict.fromkeys(weights.shapes[file], name)
    (folder / INDEX).write_text(json.dumps({"metadata": {}, "weight_map": places}), encoding="utf-8")


def load_weights(
    kind: Any, stage: Staged, *, may_miss: Sequence[str] = (), unused: Sequence[str] = ()
) -> PreTrainedModel:
    """Load a model in float32 with one of transformers' Auto classes. Patterns name weights it may lack or not use."""
    with loading(stage.origin, MODEL), torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(0)  # weights that the folder may lack are initialised reproducibly
        model: PreTrainedModel
        model, report = kind.from_pretrained(
            stage.folder,
            config=stage.config,
            use_safetensors=True,
            trust_remote_code=False,
            local_files_only=True,
            dtype=torch.float32,
            ignore_mismatched_sizes=True,  # they are in the report, which is checked below
            output_loading_info=True,
        )
    _check_report(stage, report, may_miss, [*KNOWN_HEADS, *unused])
    _unmap(model)
    check_finite(model, _where(stage))
    model.config.name_or_path = str(stage.origin)
    return model


def _check_report(stage: Staged, report: dict[str, Any], may_miss: Sequence[str], unused: Sequence[str]) -> None:
    where = str(_where(stage))
    if wrong := sorted(report["mismatched_keys"]):
        name, shape, expected = wrong[0]
        others = f" ({len(wrong) - 1} more weights have wrong shapes)" if len(wrong) > 1 else ""
        problem = f"{name} has the shape {as_sizes(shape)}{others}"
        raise ModelError(where, problem, f"{as_sizes(expected)}, as in config.json", "correct config.json")
    if missing := sorted(key for key in report["missing_keys"] if not _matches(key, may_miss)):
        problem = f"there are no weights for {', '.join(missing[:3])} ({len(missing)} missing)"
        raise ModelError(
            where, problem, "all weights of the model", "choose another type of model, or a complete checkpoint"
        )
    if extra := sorted(key for key in report["unexpected_keys"] if not _matches(key, unused)):
        problem = f"the model in config.json has no weights named {', '.join(extra[:3])} ({len(extra)} unused)"
        raise ModelError(where, problem, "only weights of this model and of known heads", "correct config.json")


def _unmap(model: torch.nn.Module) -> None:
    """Copy weights that are mapped from a file: a change of it would change them, truncating it kill the process."""
    for tensor in (*model.parameters(), *model.buffers()):
        tensor.data = tensor.data.clone()


def _matches(key: str, patterns: Sequence[str]) -> bool:
    return any(re.search(pattern, key) for pattern in patterns)


def _where(stage: Staged) -> Path:
    return stage.weights.files[0] if len(stage.weights.files) == 1 else stage.origin


def load_tokenizer(stage: Staged) -> PreTrainedTokenizerBase:
    """Load the tokenizer, whatever its type."""
    files = sorted(path.name for path in stage.folder.iterdir() if path.name in TOKENIZER_FILES)
    with loading(stage.origin, f"the tokenizer in {', '.join(files)}"):
        tokenizer: PreTrainedTokenizerBase = AutoTokenizer.from_pretrained(
            stage.folder, config=stage.config, trust_remote_code=False, local_files_only=True
        )
        tokenizer.name_or_path = str(stage.origin)
        backend = getattr(tokenizer, "backend_tokenizer", None)
        parts = {name: getattr(backend, name, None) for name in ("normalizer", "pre_tokenizer", "decoder")}
        steps = {name: json.loads(part.__getstate__()) for name, part in parts.items() if part}
    check_growth(stage.origin, steps)  # as loaded: a sentencepiece model also has a normalizer
    return tokenizer


def check_ids(tokenizer: PreTrainedTokenizerBase, model: Any, origin: Path) -> None:
    """Refuse a tokenizer without words, or with ids that have no row in the embeddings."""
    with loading(origin, "the tokenizer"):
        ids = tokenizer.get_vocab()
        words, highest = ids.keys() - set(tokenizer.all_special_tokens), max(ids.values(), default=-1)
        rows, around = len(model.get_input_embeddings().weight), max(tokenizer("")["input_ids"], default=0)
    if not words:
        problem = f"the tokenizer has {len(ids)} special tokens and no words"
        raise ModelError(str(origin), problem, "a vocabulary", "save the tokenizer into the model's folder")
    if highest >= rows:
        problem = f"the tokenizer has ids up to {highest}"
        expected = f"ids below {rows}, the number of embeddings"
        raise ModelError(str(origin), problem, expected, "use the tokenizer that belongs to the model")
    if around >= rows:
        problem = f"the post_processor adds the id {around} to every text"
        expected = f"ids below {rows}, the number of embeddings"
        raise ModelError(str(origin / "tokenizer.json"), problem, expected, "save the tokenizer again")


def check_finite(module: torch.nn.Module, where: Path) -> None:
    """Refuse NaN and infinite weights."""
    for name, tensor in module.state_dict().items():
        if tensor.is_floating_point() and not torch.isfinite(tensor).all():
            raise ModelError(
                str(where), f"{name} has NaN or infinite values", "finite weights", "use another checkpoint"
            )


@contextmanager
def loading(where: Path, what: str) -> Iterator[None]:
    """Turn any error of any library into a ModelError with the reason in one line."""
    try:
        yield
    except SentloomError:
        raise
    except BaseException as error:
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":  # raised by tokenizers
            raise
        problem = f"{what} does not load ({reason_of(error)})"
        raise ModelError(str(where), problem, "", "download or save the model again") from None
