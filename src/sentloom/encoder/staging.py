"""A model folder as loaders may see it: a temporary folder with what was checked, and nothing else.

Loaders look for many files by name: adapters, chat templates, code, other configurations, pickles. Here they find only
configurations that `folder_checks` went through, tokenizer files by their known names, and links to safetensors files.
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
    """The temporary folder, its configuration, and the folder that they come from."""

    folder: Path
    config: PreTrainedConfig
    origin: Path
    weights: Weights


@contextmanager
def staged(origin: Path) -> Iterator[Staged]:
    """Check a model folder, and give loaders a folder with what passed."""
    weights = read_weights(origin)
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
            found, wanted = f"{path.stat().st_size:,} bytes", f"at most {LARGEST_VOCABULARY:,}"
            raise ModelError(str(path), found, wanted, "fetch or save the model again")
        (folder / file).symlink_to(path.resolve())


def _link_weights(weights: Weights, folder: Path) -> None:
    """Under names that loaders take for safetensors, whatever they were called."""
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
