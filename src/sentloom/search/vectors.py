"""Encode sentences, check their vectors and cache them. Any callable can encode: a model, or a baseline such as TF-IDF.

The cache is a folder with the shards of each model. A shard has the vectors of some texts, by a hash of each text.
"""

import hashlib
import os
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, suppress
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from sentloom.data.sentences import distinct
from sentloom.errors import ModelError
from sentloom.files import STALE, new_file
from sentloom.progress import Advance, note, progress

Vectors: TypeAlias = npt.NDArray[np.float32]
Encode: TypeAlias = Callable[[Sequence[str]], npt.NDArray[Any]]  # n sentences -> (n, d)
Keys: TypeAlias = NDArray[np.uint64]  # (n, 2)
Rows: TypeAlias = NDArray[np.int64]

BLOCK = 4096  # texts per shard
LIMIT = 2 * 1024**3  # bytes of the cache
ENDING = ".safetensors"


def encode_checked(encode: Encode, sentences: Sequence[str]) -> Vectors:
    """Return one finite vector per sentence; anything else is an error, since its scores would be meaningless."""
    vectors = np.asarray(encode(sentences), np.float32)
    if vectors.ndim != 2 or len(vectors) != len(sentences):
        raise ModelError(
            "encoder",
            f"its vectors have the shape {vectors.shape}",
            f"({len(sentences)}, d)",
            "return one vector per sentence",
        )
    broken = np.flatnonzero(~np.isfinite(vectors).all(axis=1))
    if len(broken):
        raise ModelError(
            "encoder",
            f"{len(broken)} of {len(vectors)} vectors have NaN or infinity, first for {sentences[broken[0]][:80]!r}",
            "finite vectors",
            "check the model's weights, and whether its precision is too low",
        )
    return vectors


def encode_distinct(encode: Encode, sentences: Iterable[str]) -> dict[str, npt.NDArray[np.float32]]:
    """Return the vector of each distinct sentence, all from one call of `encode`."""
    distinct = list(dict.fromkeys(sentences))
    return dict(zip(distinct, encode_checked(encode, distinct), strict=True))


def normalised(vectors: npt.NDArray[Any]) -> Vectors:
    """Scale rows to unit length; a row of zeros stays unchanged, so that its cosine with anything is 0."""
    rows = np.asarray(vectors, np.float32)
    length = np.linalg.norm(rows, axis=1, keepdims=True)
    unit: Vectors = np.divide(rows, length, out=np.zeros_like(rows), where=length > 0)
    return unit


class VectorCache:
    """A folder of cached vectors. `note` says why nothing can be cached, such as a full disk, and is else empty."""

    def __init__(self, folder: Path, limit: float = LIMIT, block: int = BLOCK) -> None:
        """Set the folder, the `limit` in bytes above which the least recently used shards go, and texts per shard."""
        self.folder, self.limit, self.block, self.note = folder, limit, block, ""

    def vectors(
        self,
        model: str,
        texts: Sequence[str],
        encode: Encode,
        *,
        show_progress: bool = False,
        work: tuple[str, str] = ("encoding", "sentences"),
    ) -> Vectors:
        """Return the vectors (n, d) of texts. `model` is a hash of everything else they depend on, such as the role.

        Texts that are not cached are encoded in blocks, each stored immediately, so that a killed run can resume.
        `work` is what progress calls this, and its unit.
        """
        rows, first_of_row = distinct(texts)
        unique = [texts[row] for row in rows]
        out: Vectors = np.empty((0, 0), np.float32)
        advancing = partial(progress, work[0], unit=work[1], show=show_progress)
        for places, part in self._parts(_Shards(self.folder, model), unique, encode, advancing):
            if not out.size:
                out = np.empty((len(unique), part.shape[1]), np.float32)
            if part.shape[1] != out.shape[1]:
                problem = f"cached vectors have both {out.shape[1]} and {part.shape[1]} dimensions"
                raise ModelError(f"{self.folder}, model {model}", problem, "one width per model", "delete the folder")
            out[places] = part
        return out if len(rows) == len(texts) else out[np.searchsorted(rows, first_of_row)]

    def _parts(
        self,
        shards: "_Shards",
        texts: Sequence[str],
        encode: Encode,
        progress_of: Callable[[int], AbstractContextManager[Advance]],
    ) -> Iterator[tuple[Rows, Vectors]]:
        """Yield positions of texts with their vectors: first the cached ones by shard, then the others by block."""
        keys = _keys(texts)
        missing = np.ones(len(texts), bool)
        for places, part in shards.find(keys):
            missing[places] = False
            yield places, part
        uncached = np.flatnonzero(missing)
        with progress_of(len(uncached)) as advance:
            for start in range(0, len(uncached), self.block):
                places = uncached[start : start + self.block]
                part = encode_checked(encode, [texts[place] for place in places])
                self._store(shards, keys[places], part)
                advance(len(places))
                yield places, part

    def _store(self, shards: "_Shards", keys: Keys, vectors: Vectors) -> None:
        """Write a shard; if the disk is full or read-only, only set the note."""
        if self.note:
            return
        try:
            shards.add(keys, vectors)
            self._trim(shards.used)
        except (OSError, SafetensorError) as error:
            self.note = f"vectors cannot be cached in {self.folder}: {error}"

    def _trim(self, used: set[Path]) -> None:
        """Remove the least recently used shards, except those used by this call, and partial files of killed runs."""
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
        """Stat a file; None if another process has just removed it."""
        try:
            facts = path.stat()
        except OSError:
            return None
        return cls(path, facts.st_size, facts.st_mtime)


class _Shards:
    """The shards of one model, and those used by this call."""

    def __init__(self, folder: Path, model: str) -> None:
        self.folder = folder / hashlib.sha256(model.encode()).hexdigest()[:32]
        self.used: set[Path] = set()

    def add(self, keys: Keys, vectors: Vectors) -> None:
        """Store some vectors in a file whose name sorts by time."""
        path = self.folder / f"{time.time_ns():020d}-{os.getpid()}{ENDING}"
        tensors: dict[str, NDArray[Any]] = {"keys": keys, "vectors": np.ascontiguousarray(vectors)}
        with new_file(path) as part:
            save_file(tensors, part, {name: _checksum(tensor) for name, tensor in tensors.items()})
        self.used.add(path)

    def find(self, keys: Keys) -> Iterator[tuple[Rows, Vectors]]:
        """Yield for each shard with some of the keys the positions of these keys and their vectors."""
        shards = sorted(self.folder.glob(f"[0-9]*{ENDING}"))  # names of partial files start with a dot
        opened = [(shard, cached) for shard in shards if (cached := _read(shard, "keys")) is not None]
        if not opened:
            return
        rows = _join(np.concatenate([cached for _, cached in opened]), keys)
        edges = np.cumsum([0, *(len(cached) for _, cached in opened)])
        for (shard, _), low, high in zip(opened, edges[:-1], edges[1:], strict=True):
            places = np.flatnonzero((rows >= low) & (rows < high))
            if len(places) and (vectors := _read(shard, "vectors")) is not None:
                self.used.add(shard)
                with suppress(OSError):
                    os.utime(shard)
                yield places, vectors[rows[places] - low]


def _read(shard: Path, name: str) -> NDArray[Any] | None:
    """Read one of a shard's tensors; None if the shard is gone or damaged; a damaged shard is removed."""
    try:
        with safe_open(shard, framework="numpy") as file:
            sizes = [file.get_slice(tensor_name).get_shape() for tensor_name in ("keys", "vectors")]
            types = [file.get_slice(tensor_name).get_dtype() for tensor_name in ("keys", "vectors")]
            tensor: NDArray[Any] = file.get_tensor(name)
            valid = types == ["U64", "F32"] and sizes[0] == [sizes[1][0] or 1, 2] and len(sizes[1]) == 2
            if valid and _checksum(tensor) == file.metadata()[name]:
                return tensor
    except OSError:
        return None
    except (SafetensorError, ValueError, TypeError, KeyError, IndexError):
        pass
    note(f"{shard} is damaged; its vectors are computed again")
    with suppress(OSError):
        shard.unlink()
    return None


def _checksum(tensor: NDArray[Any]) -> str:
    return f"{zlib.crc32(np.ascontiguousarray(tensor).data):08x}"


def _keys(texts: Sequence[str]) -> Keys:
    digests = b"".join([hashlib.blake2b(text.encode(), digest_size=16).digest() for text in texts])
    return np.frombuffer(digests, np.uint64).reshape(-1, 2)


def _join(cached: Keys, keys: Keys) -> Rows:
    """Return for each key the first row of `cached` that equals it, or -1.

    Keys are looked up by their first half and compared in full: if two cached keys share only the first half, the
    second one is not found.
    """
    order = np.argsort(cached[:, 0], kind="stable")
    at = np.minimum(np.searchsorted(cached[order, 0], keys[:, 0]), len(cached) - 1)
    rows = order[at]
    return np.where((cached[rows] == keys).all(axis=1), rows, -1)
