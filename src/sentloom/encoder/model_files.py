"""The files of a model folder: none outside it, JSON within limits, weights only as safetensors, by their content."""

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
LARGEST_JSON = 1 << 24  # bytes of a configuration
LARGEST_VOCABULARY = 1 << 29  # bytes of tokenizer.json, vocab.json and an index of weights
DEEPEST_JSON = 40  # lists and objects inside each other
MOST_SHARDS = 1000
NEXT_STEP = "correct it, or fetch or save the model again"
FLOATS = ("F64", "F32", "F16", "BF16")
# What may be whole numbers in a file of weights: buffers.
COUNTERS = ("position_ids", "token_type_ids", "num_batches_tracked", ".attn.bias", ".attn.masked_bias")
Shapes = Mapping[str, tuple[int, ...]]


def inside(folder: Path, name: str) -> Path:
    """The path of a file of a folder, by a name that may come from another file; a ModelError if it leads elsewhere."""
    try:
        stays = is_inside(folder, name)
    except (OSError, RuntimeError, ValueError) as error:  # a loop of links, a name too long, a zero byte
        raise ModelError(str(folder), f"the file name {name[:100]!r} ({error})", "a file in it", "correct it") from None
    if not stays:
        found = f"{name[:100]!r}, which leads out of the folder"
        raise ModelError(str(folder), found, "files inside the model's folder", "copy the file into the folder")
    return folder / name


def find(folder: Path, name: str) -> Path | None:
    """The path of a regular file of a folder; None only if nothing has that name."""
    path = inside(folder, name)
    if not os.path.lexists(path):
        return None
    check_regular(path)
    return path


def check_regular(path: Path) -> None:
    """Refuse what is no readable file: nothing, a folder, a link to nothing, or a pipe, which may never end."""
    if path.is_file() and os.access(path, os.R_OK):
        return
    if path.is_file():
        found = "a file that may not be read"
    elif path.is_dir():
        found = "a folder"
    elif path.exists():
        found = "a pipe, a socket or a device"
    else:
        found = "a link to nothing" if path.is_symlink() else "no such file"
    raise ModelError(str(path), found, "a file", "fetch or save the model again")


def read_json(path: Path, largest: int = LARGEST_JSON) -> dict[str, Any]:
    """A JSON object from a model folder."""
    content = read_json_value(path, largest)
    if not isinstance(content, dict):
        found = f"a JSON {type(content).__name__}"
        raise ModelError(str(path), found, "a JSON object", "fetch or save the model again")
    return content


def read_json_value(path: Path, largest: int = LARGEST_JSON) -> object:
    """JSON of bounded size and depth."""
    check_regular(path)
    try:
        if path.stat().st_size > largest:
            raise ValueError(f"{path.stat().st_size:,} bytes, where at most {largest:,} are read")
        content: object = json.loads(path.read_text(encoding="utf-8"))
        if _depth(content) > DEEPEST_JSON:
            raise ValueError(f"nested deeper than {DEEPEST_JSON} levels")
    except (OSError, ValueError, RecursionError) as error:
        found = f"unreadable JSON ({str(error)[:200]})"
        raise ModelError(str(path), found, "a JSON object", "fetch or save the model again") from None
    return content


def _depth(content: object) -> int:
    """How many lists and objects are inside each other, counted as far as the limit."""
    depth, level = 0, [content]
    while level and depth <= DEEPEST_JSON:
        containers = [one for one in level if isinstance(one, list | dict)]
        level = [item for one in containers for item in (one.values() if isinstance(one, dict) else one)]
        depth += bool(containers)
    return depth


@dataclass(frozen=True)
class Weights:
    """The files of a model's weights, and the shapes that their headers declare."""

    files: tuple[Path, ...]
    shapes: Mapping[Path, Shapes]

    @property
    def all_shapes(self) -> dict[str, tuple[int, ...]]:
        """The shape of each tensor of all files."""
        return {name: shape for file in self.files for name, shape in self.shapes[file].items()}


def read_weights(folder: Path) -> Weights:
    """Find and check the weights: model.safetensors, or the files that the index names. No other file is opened."""
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
        raise ModelError(str(index), "no weight_map of names to files", "an index of weights", "save the model again")
    shards = sorted(set(names.values()))
    if not 1 <= len(shards) <= MOST_SHARDS:
        raise ModelError(str(index), f"{len(shards)} files", f"1 to {MOST_SHARDS}", "save the model again")
    return shards


def read_shapes(path: Path) -> dict[str, tuple[int, ...]]:
    """The shapes of a safetensors file, whose header must describe every byte of it; the name proves nothing."""
    check_regular(path)
    try:
        with safe_open(path, framework="numpy") as file:
            slices = {name: file.get_slice(name) for name in file.keys()}  # noqa: SIM118 (no mapping)
            kinds = {name: one.get_dtype() for name, one in slices.items()}
            shapes = {name: tuple(one.get_shape()) for name, one in slices.items()}
    except Exception as error:  # of several kinds; all mean that this is no such file
        found = f"a file that does not load as safetensors ({' '.join(str(error).split())[:200]})"
        wanted = "safetensors weights (a pickle can run code when it is read, and never is)"
        raise ModelError(str(path), found, wanted, "fetch or save the model again") from None
    for name, kind in kinds.items():
        if kind not in FLOATS and not name.endswith(COUNTERS):
            wanted = f"numbers of the kinds {', '.join(FLOATS)}, not quantised"
            raise ModelError(str(path), f"{name} of the kind {kind}", wanted, "save the model in float32")
    return shapes


def wrong_value(path: Path, key: str, value: object, wanted: str) -> ModelError:
    """What is said of a key whose value is of the wrong kind or out of range."""
    return ModelError(str(path), f"{key} {repr(value)[:100]}", wanted, NEXT_STEP)


def as_sizes(shape: Sequence[int]) -> str:
    """A shape for people: 3 x 32."""
    return " x ".join(map(str, shape)) or "1"


def _no_weights(folder: Path) -> ModelError:
    pickles = sorted(path.name for pattern in PICKLES for path in folder.glob(pattern))
    return ModelError(
        str(folder),
        f"only pickled weights ({', '.join(pickles[:5])})" if pickles else "no safetensors weights",
        f"{WEIGHTS} (a pickle can run code when it is read)",
        "if you trust their origin, load model and tokenizer with transformers and save both into a new folder"
        if pickles
        else "check the path; a hub model may have only pickled weights, which are never fetched",
    )
