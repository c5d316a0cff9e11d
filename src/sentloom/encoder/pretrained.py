"""Models and tokenizers of the transformers library, loaded from checked folders: whole, finite and fitting."""

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from transformers import AutoTokenizer, PreTrainedModel, PreTrainedTokenizerBase

from sentloom.encoder.folder_checks import TOKENIZER_CONFIG, reason_of
from sentloom.encoder.model_files import TOKENIZER_JSON, TOKENIZER_OTHERS, as_sizes
from sentloom.encoder.staging import Staged
from sentloom.encoder.tokenizer_growth import check_growth
from sentloom.errors import ModelError, SentloomError

MODEL = "a model of config.json and its weights"
POOLER = r"(^|\.)pooler\."
# Weights that a folder may have beyond the model that is asked for: heads of other tasks, and buffers of old versions.
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
TOKENIZER_FILES = (TOKENIZER_CONFIG, *TOKENIZER_JSON, *TOKENIZER_OTHERS)
DECODER = r"^decoder\."  # of a T5 whose encoder alone is wanted


@contextmanager
def loading(where: Path, what: str) -> Iterator[None]:
    """Whatever goes wrong inside, in any library and of any type, is a ModelError with the reason in one line."""
    try:
        yield
    except SentloomError:
        raise
    except BaseException as error:
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":  # that one is of tokenizers
            raise
        found = f"{what} that does not load ({reason_of(error)})"
        raise ModelError(str(where), found, f"{what} with sound files", "fetch or save the model again") from None


def load_weights(
    kind: Any, stage: Staged, *, may_miss: Sequence[str] = (), unused: Sequence[str] = ()
) -> PreTrainedModel:
    """A model by one of transformers' Auto classes, in float32. Patterns say which weights it may lack or not use."""
    with loading(stage.origin, MODEL), torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)  # what the folder may lack is drawn: the same each time
        model: PreTrainedModel
        model, report = kind.from_pretrained(
            stage.folder,
            config=stage.config,
            use_safetensors=True,
            trust_remote_code=False,
            local_files_only=True,
            dtype=torch.float32,
            ignore_mismatched_sizes=True,  # they are in the report, which is read below
            output_loading_info=True,
        )
    _check_report(stage, report, may_miss, [*KNOWN_HEADS, *unused])
    check_finite(model, _where(stage))
    model.config.name_or_path = str(stage.origin)
    return model


def load_tokenizer(stage: Staged) -> PreTrainedTokenizerBase:
    """The tokenizer, whatever its kind."""
    files = sorted(path.name for path in stage.folder.iterdir() if path.name in TOKENIZER_FILES)
    with loading(stage.origin, f"a tokenizer of {', '.join(files)}"):
        tokenizer: PreTrainedTokenizerBase = AutoTokenizer.from_pretrained(
            stage.folder, config=stage.config, trust_remote_code=False, local_files_only=True
        )
        tokenizer.name_or_path = str(stage.origin)
        backend = getattr(tokenizer, "backend_tokenizer", None)
        parts = {name: getattr(backend, name, None) for name in ("normalizer", "pre_tokenizer", "decoder")}
        steps = {name: json.loads(part.__getstate__()) for name, part in parts.items() if part}
    check_growth(stage.origin, steps)  # as loaded: a model of sentencepiece also brings a normalizer
    return tokenizer


def check_ids(tokenizer: PreTrainedTokenizerBase, model: Any, origin: Path) -> None:
    """Refuse a tokenizer with ids that have no row in the embeddings, or without words: it would read nothing."""
    with loading(origin, "a tokenizer"):
        ids = tokenizer.get_vocab()
        words, highest = ids.keys() - set(tokenizer.all_special_tokens), max(ids.values(), default=-1)
        rows, around = len(model.get_input_embeddings().weight), max(tokenizer("")["input_ids"], default=0)
    if not words:
        found = f"a tokenizer of {len(ids)} special tokens and no words"
        raise ModelError(str(origin), found, "a vocabulary", "save the tokenizer into the model's folder")
    if highest >= rows:
        found = f"a tokenizer with ids up to {highest}"
        wanted = f"ids below {rows}, the rows of the embeddings"
        raise ModelError(str(origin), found, wanted, "give the tokenizer that belongs to the model")
    if around >= rows:
        found = f"a post_processor that puts the id {around} around every text"
        wanted = f"ids below {rows}, the rows of the embeddings"
        raise ModelError(str(origin / "tokenizer.json"), found, wanted, "save the tokenizer again")


def check_finite(module: torch.nn.Module, where: Path) -> None:
    """Refuse NaN and infinite weights."""
    for name, tensor in module.state_dict().items():
        if tensor.is_floating_point() and not torch.isfinite(tensor).all():
            raise ModelError(
                str(where), f"NaN or infinite numbers in {name}", "finite weights", "use another checkpoint"
            )


def _check_report(stage: Staged, report: dict[str, Any], may_miss: Sequence[str], unused: Sequence[str]) -> None:
    where = str(_where(stage))
    if wrong := sorted(report["mismatched_keys"]):
        name, shape, expected = wrong[0]
        others = f" ({len(wrong) - 1} more do not fit)" if len(wrong) > 1 else ""
        found = f"no fitting weights for {name}: {as_sizes(shape)} numbers{others}"
        raise ModelError(where, found, f"{as_sizes(expected)}, as config.json says", "correct config.json")
    if missing := sorted(key for key in report["missing_keys"] if not _matches(key, may_miss)):
        found = f"no fitting weights for {', '.join(missing[:3])} ({len(missing)} missing)"
        raise ModelError(
            where, found, "all weights of the model", "choose another kind of model, or a whole checkpoint"
        )
    if extra := sorted(key for key in report["unexpected_keys"] if not _matches(key, unused)):
        found = f"weights that config.json gives no place to: {', '.join(extra[:3])} ({len(extra)} unused)"
        raise ModelError(where, found, "only weights of this model and of known heads", "correct config.json")


def _matches(key: str, patterns: Sequence[str]) -> bool:
    return any(re.search(pattern, key) for pattern in patterns)


def _where(stage: Staged) -> Path:
    return stage.weights.files[0] if len(stage.weights.files) == 1 else stage.origin
