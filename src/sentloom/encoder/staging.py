"""Stage a model folder for loaders: a temporary folder that contains only checked files.

Loaders look for many files by name: adapters, chat templates, code, other configurations, pickles. Here they find only
configurations that passed `folder_checks`, tokenizer files with known names, and links to safetensors files.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from transformers import PreTrainedConfig

from sentloom.encoder.folder_checks import (
    CONFIG,
    GENERATION_CONFIG,
    TOKENIZER_CONFIG,
    checked_config,
    checked_generation_config,
    checked_tokenizer_config,
)
from sentloom.encoder.model_files import (
    INDEX,
    LARGEST_VOCABULARY,
    TOKENIZER_JSON,
    TOKENIZER_OTHERS,
    WEIGHTS,
    Weights,
    find,
    read_json,
    read_weights,
)
from sentloom.encoder.tokenizer_growth import check_growth
from sentloom.errors import ModelError


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
