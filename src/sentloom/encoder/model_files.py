"""Read the files of a model folder safely: nothing outside it, bounded JSON, weights only as safetensors."""

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetensors import safe_open

from sentloom.errors import ModelError
from sentloom.files import is_inside

WEIGHTS, INDEX, ADAPTER = "model.safetensors", "model.safetensors.index.json", "adapter_config.json"
TOKENIZER_JSON = ("tokenizer.json", "vocab.json", "special_tokens_map.json", "added_tokens.json", "target_vocab.json")
TOKENIZER_OTHERS = (
    *("vocab.txt", "merges.txt", "spiece.model", "sentencepiece.bpe.model", "sentencepiece.model", "spm.model"),
    *("tokenizer.model", "source.spm", "target.spm", "bpe.codes", "dict.txt"),
)
PICKLES = ("*.bin", "*.pt", "*.pth", "*.ckpt")
LARGEST_JSON = 1 << 24  # bytes, of a configuration
LARGEST_VOCABULARY = 1 << 29  # bytes, of tokenizer.json, vocab.json or an index of weights
DEEPEST_JSON = 40  # levels of nested lists and objects
MOST_SHARDS = 1000
NEXT_STEP = "correct it, or download or save the model again"
FLOATS = ("F64", "F32", "F16", "BF16")
# Buffers, which may be integers in a file of weights.
COUNTERS = ("position_ids", "token_type_ids", "num_batches_tracked", ".attn.bias", ".attn.masked_bias")
Shapes = Mapping[str, tuple[int, ...]]


def inside(folder: Path, name: str) -> Path:
    """Return the path of a named file in a folder; raise a ModelError if the name leads outside the folder."""
    try:
        stays = is_inside(folder, name)
    except (OSError, RuntimeError, ValueError) as error:  # a loop of links, a name too long, a null byte
        problem = f"the file name {name[:100]!r} is invalid ({error})"
        raise ModelError(str(folder), problem, "a file in the folder", "correct the name") from None
    if not stays:
        problem = f"{name[:100]!r} leads out of the folder"
        raise ModelError(str(folder), problem, "files inside the model's folder", "copy the file into the folder")
    return folder / name


def find(folder: Path, name: str) -> Path | None:
    """Return the path of a regular file in a folder, or None if nothing has that name."""
    path = inside(folder, name)
    if not os.path.lexists(path):
        return None
    check_regular(path)
    return path


def has_weights(folder: Path) -> bool:
    """Whether a folder has weights as safetensors, in one file or several."""
    return bool(find(folder, WEIGHTS) or find(folder, INDEX))


def check_regular(path: Path) -> None:
    """Refuse anything but a readable file: a missing file, a folder, a broken link, or a pipe, which may never end."""
    if path.is_file() and os.access(path, os.R_OK):
        return
    if path.is_file():
        problem = "permission to read the file is denied"
    elif path.is_dir():
        problem = "it is a folder"
    elif path.exists():
        problem = "it is a pipe, a socket or a device"
    else:
        problem = "it is a broken link" if path.is_symlink() else "no such file"
    raise ModelError(str(path), problem, "a readable file", "download or save the model again")


def read_json(path: Path, largest: int = LARGEST_JSON) -> dict[str, Any]:
    """Read a JSON object from a model folder."""
    content = read_json_value(path, largest)
    if not isinstance(content, dict):
        problem = f"the JSON value is a {type(content).__name__}"
        raise ModelError(str(path), problem, "a JSON object", "download or save the model again")
    return content


def read_json_value(path: Path, largest: int = LARGEST_JSON) -> object:
    """Read JSON of bounded size and depth."""
    check_regular(path)
    try:
        if path.stat().st_size > largest:
            raise ValueError(f"{path.stat().st_size:,} bytes, but at most {largest:,} are read")
        content: object = json.loads(path.read_text(encoding="utf-8"))
        if _depth(content) > DEEPEST_JSON:
            raise ValueError(f"nested deeper than {DEEPEST_JSON} levels")
    except (OSError, ValueError, RecursionError) as error:
        problem = f"the JSON is unreadable ({str(error)[:200]})"
        raise ModelError(str(path), problem, "a JSON object", "download or save the model again") from None
    return content


def _depth(content: object) -> int:
    """Count the levels of nested lists and objects, up to the limit."""
    depth, level = 0, [content]
    while level and depth <= DEEPEST_JSON:
        containers = [container for container in level if isinstance(container, list | dict)]
        inner = (list(items.values()) if isinstance(items, dict) else items for items in containers)
        level = [item for items in inner for item in items]
        depth += bool(containers)
    return depth


@dataclass(frozen=True)
class Weights:
    """The files of a model's weights and the shapes declared in their headers."""

    files: tuple[Path, ...]
    shapes: Mapping[Path, Shapes]

    @property
    def all_shapes(self) -> dict[str, tuple[int, ...]]:
        """The shapes of the tensors in all files."""
        return {name: shape for file in self.files for name, shape in self.shapes[file].items()}


def read_weights(folder: Path) -> Weights:
    """Find and check the weights: model.safetensors or the files named in the index. No other file is opened."""
    if whole := find(folder, WEIGHTS):
        files = [whole]
    elif index := find(folder, INDEX):
        files = [inside(folder, name) for name in _shards(index)]
    else:
        raise _no_weights(folder)
    return Weights(tuple(files), {file: read_shapes(file) for file in files})


def _shards(index: Path) -> list[str]:
    names = read_json(index, LARGEST_VOCABULARY).get("weight_map")
    if not isinstance(names, dict) or not all(isinstance(name, str) for name in names.values()):
        problem = "there is no weight_map of names to files"
        raise ModelError(str(index), problem, "an index of weights", "save the model again")
    shards = sorted(set(names.values()))
    if not 1 <= len(shards) <= MOST_SHARDS:
        problem = f"the index names {len(shards)} files"
        raise ModelError(str(index), problem, f"1 to {MOST_SHARDS}", "save the model again")
    return shards


def read_shapes(path: Path) -> dict[str, tuple[int, ...]]:
    """Read the shapes of a safetensors file, checked by content, not by name: its header must describe every byte."""
    check_regular(path)
    try:
        with safe_open(path, framework="numpy") as file:
            slices = {name: file.get_slice(name) for name in file.keys()}  # noqa: SIM118 (no mapping)
            kinds = {name: tensor.get_dtype() for name, tensor in slices.items()}
            shapes = {name: tuple(tensor.get_shape()) for name, tensor in slices.items()}
    except Exception as error:  # of several types; all mean that this is not a safetensors file
        problem = f"the file does not load as safetensors ({' '.join(str(error).split())[:200]})"
        expected = "safetensors weights (pickles can run code and are never read)"
        raise ModelError(str(path), problem, expected, "download or save the model again") from None
    for name, kind in kinds.items():
        if kind not in FLOATS and not name.endswith(COUNTERS):
            expected = f"one of {', '.join(FLOATS)}, not quantised"
            raise ModelError(str(path), f"{name} has the dtype {kind}", expected, "save the model in float32")
    return shapes


def wrong_value(path: Path, key: str, value: object, expected: str) -> ModelError:
    """Build the error for a key whose value has the wrong type or is out of range."""
    return ModelError(str(path), f"{key} is {repr(value)[:100]}", expected, NEXT_STEP)


def as_sizes(shape: Sequence[int]) -> str:
    """Format a shape: 3 x 32."""
    return " x ".join(map(str, shape)) or "1"


def _no_weights(folder: Path) -> ModelError:
    pickles = sorted(path.name for pattern in PICKLES for path in folder.glob(pattern))
    return ModelError(
        str(folder),
        f"the weights are pickled ({', '.join(pickles[:5])})" if pickles else "there are no safetensors weights",
        f"{WEIGHTS} (loading a pickle can run code)",
        "if you trust their origin, load model and tokenizer with transformers and save both into a new folder"
        if pickles
        else "check the path; a hub model may have only pickled weights, which are never downloaded",
    )
