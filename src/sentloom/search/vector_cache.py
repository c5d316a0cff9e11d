"""Vectors on disk, by model and text, shared by all suites and runs: what was encoded once is read from then on.

A folder a model, in it shards: safetensors files with `keys` (n, 2) uint64, 128-bit hashes of texts, and `vectors`
(n, d) float32. A shard is whole or not there. Where two shards have the same text, the older one speaks.
"""

import hashlib
import os
import time
import zlib
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from sentloom.data.distinct import distinct
from sentloom.errors import ModelError
from sentloom.files import new_file
from sentloom.progress import note, progress
from sentloom.search.vectors import Encode, Vectors, encode_checked

BLOCK = 4096  # texts of a shard
LIMIT = 2 * 1024**3
STALE = 3600.0  # seconds after which a half-written file belongs to a run that was killed
ENDING = ".safetensors"

Keys: TypeAlias = NDArray[np.uint64]  # (n, 2)
Rows: TypeAlias = NDArray[np.int64]


def default_folder() -> Path:
    """$SENTLOOM_CACHE, else $XDG_CACHE_HOME/sentloom, else ~/.cache/sentloom; in it, `vectors`."""
    if ours := os.environ.get("SENTLOOM_CACHE"):
        return Path(ours).expanduser() / "vectors"
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "sentloom" / "vectors"


class VectorCache:
    """A folder of vectors. `note` says why nothing is kept, where the disk does not take it; else it is empty."""

    def __init__(self, folder: Path, limit: float = LIMIT) -> None:
        """`limit` is in bytes: above it, the shards that were used least recently go."""
        self.folder, self.limit, self.note = folder, limit, ""

    def vectors(self, model: str, texts: Sequence[str], encode: Encode, *, show_progress: bool = False) -> Vectors:
        """The vectors (n, d) of texts. `model` is a hash of all else that they depend on, the role among it.

        What is not kept yet is encoded in blocks, each kept at once, so that a run that died goes on behind the last.
        """
        rows, first_of_row = distinct(texts)
        wanted = [texts[row] for row in rows]
        out: Vectors = np.empty((0, 0), np.float32)
        for places, part in self._parts(_Shelf(self.folder, model), wanted, encode, show_progress):
            if not out.size:
                out = np.empty((len(wanted), part.shape[1]), np.float32)
            if part.shape[1] != out.shape[1]:
                found, fix = f"vectors of {out.shape[1]} and of {part.shape[1]} numbers", "delete the folder"
                raise ModelError(f"{self.folder}, model {model}", found, "one width a model", fix)
            out[places] = part
        return out if len(rows) == len(texts) else out[np.searchsorted(rows, first_of_row)]

    def _parts(
        self, shelf: "_Shelf", texts: Sequence[str], encode: Encode, show_progress: bool
    ) -> Iterator[tuple[Rows, Vectors]]:
        """What is kept, shard by shard, then the others, block by block: which texts, and their vectors."""
        keys = _keys(texts)
        missing = np.ones(len(texts), bool)
        for places, part in shelf.find(keys):
            missing[places] = False
            yield places, part
        rest = np.flatnonzero(missing)
        with progress("encoding", len(rest), "sentences", show_progress) as advance:
            for start in range(0, len(rest), BLOCK):
                places = rest[start : start + BLOCK]
                part = encode_checked(encode, [texts[place] for place in places])
                self._keep(shelf, keys[places], part)
                advance(len(places))
                yield places, part

    def _keep(self, shelf: "_Shelf", keys: Keys, vectors: Vectors) -> None:
        """Write a shard; a disk that is full or not ours to write to costs a note and nothing else."""
        if self.note:
            return
        try:
            shelf.add(keys, vectors)
            self._trim(shelf.used)
        except (OSError, SafetensorError) as error:
            self.note = f"vectors are not kept in {self.folder}: {error}"

    def _trim(self, used: set[Path]) -> None:
        """Remove what was used least recently, never what this call uses, and what killed runs left half-written."""
        files = [file for path in self.folder.glob(f"*/*{ENDING}") if (file := _File.of(path))]
        total = sum(file.size for file in files)
        for file in sorted(files, key=lambda file: file.used_at):
            half = file.path.name.startswith(".")
            stale = half and file.used_at < time.time() - STALE
            if stale or (total > self.limit and not half and file.path not in used):
                file.path.unlink(missing_ok=True)
                total -= file.size


class _File(NamedTuple):
    path: Path
    size: int
    used_at: float

    @classmethod
    def of(cls, path: Path) -> "_File | None":
        """None for one that another process has just removed."""
        try:
            facts = path.stat()
        except OSError:
            return None
        return cls(path, facts.st_size, facts.st_mtime)


class _Shelf:
    """The shards of one model, and which of them this call has used."""

    def __init__(self, folder: Path, model: str) -> None:
        self.folder = folder / hashlib.sha256(model.encode()).hexdigest()[:32]
        self.used: set[Path] = set()

    def add(self, keys: Keys, vectors: Vectors) -> None:
        """Keep some vectors. The name sorts by time."""
        path = self.folder / f"{time.time_ns():020d}-{os.getpid()}{ENDING}"
        tensors: dict[str, NDArray[Any]] = {"keys": keys, "vectors": np.ascontiguousarray(vectors)}
        with new_file(path) as part:
            save_file(tensors, part, {name: _checksum(tensor) for name, tensor in tensors.items()})
        self.used.add(path)

    def find(self, keys: Keys) -> Iterator[tuple[Rows, Vectors]]:
        """For each shard that has some of the keys: which of them, and their vectors."""
        shards = sorted(self.folder.glob(f"[0-9]*{ENDING}"))  # a name that starts with a dot is not whole
        opened = [(shard, found) for shard in shards if (found := _read(shard, "keys")) is not None]
        if not opened:
            return
        rows = _join(np.concatenate([found for _, found in opened]), keys)
        edges = np.cumsum([0, *(len(found) for _, found in opened)])
        for (shard, _), low, high in zip(opened, edges[:-1], edges[1:], strict=True):
            places = np.flatnonzero((rows >= low) & (rows < high))
            if len(places) and (vectors := _read(shard, "vectors")) is not None:
                self.used.add(shard)
                with suppress(OSError):
                    os.utime(shard)
                yield places, vectors[rows[places] - low]


def _read(shard: Path, name: str) -> NDArray[Any] | None:
    """One of a shard's tensors; None for a shard that has vanished, or is damaged, which then goes."""
    try:
        with safe_open(shard, framework="numpy") as file:
            sizes = [file.get_slice(one).get_shape() for one in ("keys", "vectors")]
            types = [file.get_slice(one).get_dtype() for one in ("keys", "vectors")]
            tensor: NDArray[Any] = file.get_tensor(name)
            sound = types == ["U64", "F32"] and sizes[0] == [sizes[1][0] or 1, 2] and len(sizes[1]) == 2
            if sound and _checksum(tensor) == file.metadata()[name]:
                return tensor
    except OSError:
        return None
    except (SafetensorError, ValueError, TypeError, KeyError, IndexError):
        pass
    note(f"{shard} is not what was written: its vectors are computed again")
    with suppress(OSError):
        shard.unlink()
    return None


def _checksum(tensor: NDArray[Any]) -> str:
    return f"{zlib.crc32(np.ascontiguousarray(tensor).data):08x}"


def _keys(texts: Sequence[str]) -> Keys:
    digests = b"".join([hashlib.blake2b(text.encode(), digest_size=16).digest() for text in texts])
    return np.frombuffer(digests, np.uint64).reshape(-1, 2)


def _join(kept: Keys, wanted: Keys) -> Rows:
    """For each wanted key the first row of `kept` that equals it, or -1.

    Found by one half and checked by the other: of two keys that share the first half only, one counts as not kept.
    """
    order = np.argsort(kept[:, 0], kind="stable")
    at = np.minimum(np.searchsorted(kept[order, 0], wanted[:, 0]), len(kept) - 1)
    rows = order[at]
    return np.where((kept[rows] == wanted).all(axis=1), rows, -1)
