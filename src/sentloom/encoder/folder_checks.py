"""Check the configurations and the tokenizer of a model folder before any library reads them.

A configuration can bring code, name other files or ask for any amount of memory. A tokenizer can make a text longer: a
few chained replacements of one character by ten would turn a short sentence into gigabytes. Its growth is computed from
its steps, without running them.
"""

import base64
import math
import re
from collections.abc import Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any

from huggingface_hub.errors import StrictDataclassFieldValidationError
from transformers import CONFIG_MAPPING, PreTrainedConfig
from transformers.activations import ACT2FN

from sentloom.encoder.model_files import NEXT_STEP, Weights, find, inside, read_json, wrong_value
from sentloom.errors import ModelError

CONFIG, TOKENIZER_CONFIG, GENERATION_CONFIG = "config.json", "tokenizer_config.json", "generation_config.json"
# Keys that bring code, other files or another form of weights.
REFUSED = {
    "auto_map": "the model brings its own code",
    "custom_pipelines": "the model brings its own code",
    "custom_generate": "the model brings its own code",
    "trust_remote_code": "the model brings its own code",
    "kernel_config": "the model names code on the hub",
    "use_kernels": "the model names code on the hub",
    "fusion_config": "the model changes the library's code",
    "distributed_config": "the model is split over machines",
    "quantization_config": "the weights are quantised",
    "compression_config": "the weights are quantised",
    "transformers_weights": "the weights are in another file",
    "gguf_file": "the weights are in another file",
    "base_model_name_or_path": "the weights are in another model",
    "backbone": "the weights are in another model",
    "use_pretrained_backbone": "the weights are in another model",
}
# We choose the attention implementation. A plain word is only a hint; anything else names code on the hub.
COMPUTED = re.compile(r"_?(attn|experts)_implementation(_internal)?")
# Keys that only tell transformers where to look or what to return.
LEFT_OUT = {"configuration_files", "name_or_path", "_name_or_path", "_commit_hash", "dtype", "torch_dtype"}
LEFT_OUT |= {"return_dict", "use_return_dict", "output_attentions", "torchscript", "per_layer_config"}
# Keys of classification heads, which are never loaded; transformers would create a name for each of num_labels.
LEFT_OUT |= {"num_labels", "_num_labels", "id2label", "label2id", "problem_type", "finetuning_task"}
LEFT_OUT |= {"task_specific_params"}
TOKENIZER_LEFT_OUT = {"init_inputs", "chat_template", "name_or_path", "processor_class", "is_local", "local_files_only"}
TOKENIZER_CLASS = re.compile(r"[A-Za-z0-9_]*(Tokenizer|TokenizerFast|Backend)")
SENTENCEPIECE = {"enable_sampling", "nbest_size", "alpha"}  # options that do not name a file
# Settings that translation models need; we choose the other decoding settings.
GENERATION = {
    "max_length": int,
    "num_beams": int,
    "bos_token_id": int,
    "eos_token_id": (int, list),
    "pad_token_id": int,
    "decoder_start_token_id": int,
    "forced_bos_token_id": int,
    "forced_eos_token_id": (int, list),
    "bad_words_ids": list,
    "suppress_tokens": list,
    "begin_suppress_tokens": list,
    "length_penalty": (int, float),
    "repetition_penalty": (int, float),
    "no_repeat_ngram_size": int,
    "early_stopping": bool,
    "renormalize_logits": bool,
}
# Descriptions of the types of transformers' fields.
KINDS = {"int": "a whole number", "float": "a number", "str": "a text", "bool": "true or false", "NoneType": "null"}
KINDS |= {"list": "a list", "tuple": "a list", "dict": "an object"}
LAYERS = ("num_hidden_layers", "num_layers", "num_decoder_layers", "encoder_layers", "decoder_layers")
SIZES = ("hidden_size", "vocab_size", "intermediate_size", "embedding_size", "d_model", "d_ff", "d_kv")
RANGES = {
    **dict.fromkeys(LAYERS, (1, 1000)),
    **dict.fromkeys(SIZES, (1, 10_000_000)),
    **dict.fromkeys(("num_attention_heads", "num_heads", "num_key_value_heads", "num_hidden_groups"), (1, 1000)),
    **dict.fromkeys(("encoder_attention_heads", "decoder_attention_heads", "inner_group_num"), (1, 1000)),
    "max_position_embeddings": (1, 10_000_000),
    "type_vocab_size": (0, 1000),
    "relative_attention_num_buckets": (4, 10_000),
    "relative_attention_max_distance": (1, 1_000_000),
    "local_attention": (1, 1_000_000),
    "global_attn_every_n_layers": (1, 1000),
    "chunk_size_feed_forward": (0, 1_000_000),
}
LARGEST_NUMBER = 10_000_000  # for any key, because an unknown key may be the size of something
NO_SIZES = {"rope_theta", "global_rope_theta", "local_rope_theta", "model_max_length"}  # not sizes, may be larger
POSITIONS = ("max_position_embeddings", "max_relative_positions", "position_buckets", "n_positions")
MOST_POSITIONS = 100_000  # rows of a position table; rotary positions have none
ACTIVATIONS = ("hidden_act", "activation", "activation_function", "hidden_activation", "dense_act_fn")
IDS = ("pad_token_id", "decoder_start_token_id")  # the ids that we use ourselves
MOST_GROWTH = 64  # factor; a single step of sentencepiece has 18, for an Arabic ligature
MOST_STEPS = 100
SHORT_TEXT = 100  # characters: the text length assumed for a step that prepends
PARTS = (("normalizer", "pre_tokenizer"), ("decoder",))  # the parts of a group are applied in turn
MAY_MATCH_NOTHING = re.compile(r"[*?|^$(]|\{0?,|\{0\}|\\[bBAzZGKyY]")


def checked_config(folder: Path, weights: Weights) -> tuple[dict[str, Any], PreTrainedConfig]:
    """Check config.json; return its content without the keys that loaders must not see, and the parsed config."""
    path = inside(folder, CONFIG)
    content = read_json(path)
    _refuse_code(path, content)
    checked = {key: value for key, value in content.items() if key not in LEFT_OUT and not COMPUTED.fullmatch(key)}
    _check_tokenizer_class(path, checked)
    _refuse_large_numbers(path, checked)
    config = _parse(path, checked)
    _check_numbers(path, config)
    _check_rates(path, config)
    if weights.files:
        _check_against_weights(path, config, weights)
    return checked, config


def checked_tokenizer_config(folder: Path) -> dict[str, Any]:
    """Check tokenizer_config.json and return it without file names, which we choose; empty if there is none."""
    path = find(folder, TOKENIZER_CONFIG)
    if not path:
        return {}
    content = read_json(path)
    _refuse_code(path, content)
    _check_tokenizer_class(path, content)
    length = content.get("model_max_length", 1)
    if length is not None and not (_is_number(length) and length >= 1):
        raise wrong_value(path, "model_max_length", length, "a number of tokens, 1 or more")
    options = content.get("sp_model_kwargs") or {}
    if not isinstance(options, dict) or set(options) - SENTENCEPIECE:
        raise wrong_value(path, "sp_model_kwargs", options, f"only {', '.join(sorted(SENTENCEPIECE))}")
    return {
        key: value
        for key, value in content.items()
        if key not in TOKENIZER_LEFT_OUT
        and (key == "sp_model_kwargs" or not key.endswith(("_file", "_files", "_kwargs")))
    }


def checked_generation_config(folder: Path) -> dict[str, Any]:
    """Check generation_config.json and return its decoding settings; empty if there is none."""
    path = find(folder, GENERATION_CONFIG)
    if not path:
        return {}
    content = read_json(path)
    _refuse_code(path, content)
    settings = {key: content[key] for key in GENERATION if content.get(key) is not None}
    for key, value in settings.items():
        kinds: Any = GENERATION[key]
        fits = isinstance(value, kinds) and (kinds is bool or not isinstance(value, bool))
        if not fits or (isinstance(value, list) and not _are_ids(value)):
            raise wrong_value(path, key, value, "a value of the type that transformers writes")
    return settings


def _refuse_code(path: Path, content: Mapping[str, Any]) -> None:
    """Refuse keys that bring code, at any depth, because nested configurations reach the same loaders."""
    for key, value in _walk(content):
        if key in REFUSED and value not in (None, False, [], {}):
            raise ModelError(
                str(path), f"{REFUSED[key]} ({key})", "a model of the transformers library", "choose another model"
            )
        if COMPUTED.fullmatch(key) and value is not None and not re.fullmatch(r"[a-z0-9_]+", str(value)):
            problem = f"{key} {str(value)[:100]!r} names code elsewhere"
            raise ModelError(str(path), problem, "a model of the transformers library", "remove the key")


def _refuse_large_numbers(path: Path, content: Mapping[str, Any]) -> None:
    """Refuse numbers that are too large, at any depth, also in lists."""
    for key, value in _walk(content):
        for number in value if isinstance(value, list) else [value]:
            if _is_number(number) and number > LARGEST_NUMBER and key not in NO_SIZES:
                raise wrong_value(path, key, number, f"at most {LARGEST_NUMBER:,}")


def _walk(content: object) -> Iterator[tuple[str, Any]]:
    for key, value in content.items() if isinstance(content, Mapping) else ():
        yield key, value
        yield from _walk(value)
    for item in content if isinstance(content, list) else ():
        yield from _walk(item)


def _check_tokenizer_class(path: Path, content: Mapping[str, Any]) -> None:
    name = content.get("tokenizer_class")
    if name is not None and not (isinstance(name, str) and TOKENIZER_CLASS.fullmatch(name)):
        raise wrong_value(path, "tokenizer_class", name, "the name of a tokenizer of the transformers library")


def _parse(path: Path, content: dict[str, Any]) -> PreTrainedConfig:
    """Parse a config with transformers' class for the model family, which checks the types of its fields."""
    family = content.get("model_type")
    if not isinstance(family, str) or family not in CONFIG_MAPPING:
        raise wrong_value(path, "model_type", family, "a model family of the transformers library")
    kind: Any = CONFIG_MAPPING[family]
    if kind.sub_configs:
        raise wrong_value(path, "model_type", family, "a single text model, not one composed of several")
    try:
        config: PreTrainedConfig = kind.from_dict(dict(content))
    except StrictDataclassFieldValidationError as error:
        raise _wrong_kind(path, content, kind, str(error)) from None
    except Exception as error:  # of many types
        problem = f"the configuration does not load ({reason_of(error)})"
        raise ModelError(str(path), problem, f"the configuration of a {family} model", NEXT_STEP) from None
    return config


def _wrong_kind(path: Path, content: Mapping[str, Any], kind: Any, reason: str) -> ModelError:
    """Reword transformers' error about a field."""
    key = reason.split("'")[1]  # Validation error for field 'hidden_size': ... expected int, got str (value: '32')
    types = re.findall(r"(?:<class '|expected )(\w+)", reason)
    kinds = dict.fromkeys(KINDS[name] for name in types if name in KINDS)
    return wrong_value(
        path, key, content.get(key), " or ".join(kinds) or f"a valid value for a {kind.model_type} model"
    )


def _check_numbers(path: Path, config: Any) -> None:
    """Check the numbers that determine the model's size, and the ids that we use."""
    for key, (least, most) in RANGES.items():
        value = getattr(config, key, None)
        if value is not None and not (type(value) is int and least <= value <= most):
            raise wrong_value(path, key, value, f"a whole number from {least} to {most:,}")
    heads, width = getattr(config, "num_attention_heads", None), getattr(config, "hidden_size", None)
    own_width = getattr(config, "d_kv", None) or getattr(config, "head_dim", None)
    if heads and width and not own_width and width % heads:
        raise wrong_value(path, "num_attention_heads", heads, f"a number that divides hidden_size, {width}")
    rows = getattr(config, "vocab_size", None) or math.inf
    for key in IDS:
        value = getattr(config, key, None)
        if value is not None and not (type(value) is int and 0 <= value < rows):
            raise wrong_value(path, key, value, f"an id below vocab_size, {rows}")


def _check_rates(path: Path, config: Any) -> None:
    """Check dropout rates, the epsilons of norms, and the names of activations."""
    for key, value in vars(config).items():
        if value is None or isinstance(value, bool):
            continue
        if "dropout" in key and not (_is_number(value) and 0 <= value < 1):
            raise wrong_value(path, key, value, "a number from 0 to below 1")
        if key.endswith(("_eps", "_epsilon")) and not (_is_number(value) and 0 < value < 1):
            raise wrong_value(path, key, value, "a small number above 0")
        if key in ACTIVATIONS and not (isinstance(value, str) and value in ACT2FN):
            raise wrong_value(path, key, value, "the name of an activation of the transformers library")


def _check_against_weights(path: Path, config: Any, weights: Weights) -> None:
    """Refuse a config with more layers or larger sizes than the weights have, before a model is allocated."""
    shapes = weights.all_shapes
    numbered = [int(match[1]) for name in shapes if (match := re.search(r"(?:^|\.)(\d{1,6})\.", name))]
    in_weights, widest = max(numbered, default=-1) + 1, max(chain(*shapes.values()), default=0)
    shared = getattr(config, "num_hidden_groups", None)  # ALBERT repeats the same layers
    for key in ("num_hidden_groups",) if shared else LAYERS:
        if (getattr(config, key, None) or 0) > in_weights:
            raise wrong_value(
                path, key, getattr(config, key), f"at most {in_weights}, the number of layers in the weights"
            )
    for key in SIZES:
        if (getattr(config, key, None) or 0) > widest:
            raise wrong_value(path, key, getattr(config, key), f"at most {widest}, the largest size in the weights")
    most = max(widest, MOST_POSITIONS)
    for key in () if hasattr(type(config), "rope_parameters") else POSITIONS:
        value: Any = getattr(config, key, None)
        if _is_number(value) and value > most:
            raise wrong_value(path, key, value, f"at most {most:,}, because each position has a row")


def _are_ids(value: object) -> bool:
    """Whether a value is an id, a list of ids, or a list of such lists."""
    return all(map(_are_ids, value)) if isinstance(value, list) else type(value) is int and value >= 0


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and not math.isnan(value)


def check_growth(where: Path, tokenizer: Mapping[str, Any]) -> None:
    """Refuse a tokenizer (the content of tokenizer.json) whose steps can make a text much longer."""
    for names in PARTS:
        steps = [step for name in names for step in _steps(tokenizer.get(name))]
        growth, named = math.prod(map(_growth, steps)), " and ".join(names)
        if len(steps) > MOST_STEPS:
            problem, expected = f"{named} have {len(steps):,} steps", f"at most {MOST_STEPS}"
        elif growth > MOST_GROWTH:
            problem, expected = f"{named} can make a text {growth:.3g} times longer", f"at most {MOST_GROWTH} times"
        else:
            continue
        fix = "download or save the tokenizer again, or choose another model"
        raise ModelError(str(where), problem, expected, fix)


def _steps(part: object) -> Iterator[dict[str, Any]]:
    """Yield every step, also those inside sequences."""
    if isinstance(part, dict):
        yield part
        part = [value for key, value in part.items() if key != "pattern"]
    for item in part if isinstance(part, list) else ():
        yield from _steps(item)


def _growth(step: dict[str, Any]) -> float:
    """Return the growth factor of one step, identified by its fields because the type may be omitted."""
    content, prepended, charsmap = (step.get(key) for key in ("content", "prepend", "precompiled_charsmap"))
    if "pattern" in step and isinstance(content, str):
        return max(1.0, _replacement_growth(step["pattern"], len(content)))
    if isinstance(prepended, str):
        return 1 + len(prepended) / SHORT_TEXT
    if isinstance(charsmap, str):
        return max(1.0, _longest_of(charsmap))
    return 2.0 if step.get("type") in ("ByteLevel", "Metaspace") else 1.0


def _replacement_growth(pattern: object, length: int) -> float:
    """Return the growth of a replacement; a pattern that may match nothing inserts its content at every position."""
    string, regex = (pattern.get(key) if isinstance(pattern, dict) else None for key in ("String", "Regex"))
    if isinstance(string, str) and string:
        return length / len(string)
    if isinstance(regex, str) and regex and not MAY_MATCH_NOTHING.search(regex):
        return length
    return 1 + length


def _longest_of(charsmap: str) -> int:
    """Find the longest replacement in a sentencepiece map: the size of a trie, the trie, null-terminated texts."""
    try:
        data = base64.b64decode(charsmap)
    except ValueError:
        return len(charsmap)
    texts = data[4 + int.from_bytes(data[:4], "little") :]
    return max(len(text.decode("utf-8", "replace")) for text in texts.split(b"\0"))


def reason_of(error: BaseException) -> str:
    """Describe another library's error in one line."""
    return " ".join(f"{type(error).__name__}: {error}".split())[:300]
