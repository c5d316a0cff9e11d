"""The vectors of a frozen encoder on disk: one file of float32, or files of float16 where that would be too large.

What is chosen goes by the size, and is logged. If not even float16 fits the disk, nothing is stored: the encoder then
runs at every step.
"""

import hashlib
import shutil
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sentloom.encoder import Encoder
from sentloom.encoder.encoder import Vectors
from sentloom.encoder.tokens import Role
from sentloom.encoder.vector_files import build_file, open_vectors
from sentloom.errors import InputError
from sentloom.files import is_sealed, new_file, seal
from sentloom.locks import in_turn
from sentloom.methods.method import Log

LARGEST = 8_000_000_000  # bytes of float32 in one file
SHARD = 1_000_000  # rows of a file of float16
SPARE = 1.1  # times the bytes that must be free


class HalfVectors:
    """Vectors in several files of float16, read as float32."""

    def __init__(self, parts: list[NDArray[np.float16]], rows: int) -> None:
        self._parts, self._rows = parts, rows  # rows of every part but the last

    def __getitem__(self, rows: NDArray[np.int64]) -> Vectors:
        """Some rows, (n, d)."""
        rows = np.asarray(rows)
        out = np.empty((len(rows), self._parts[0].shape[1]), np.float32)
        for part in np.unique(rows // self._rows):
            here = rows // self._rows == part
            out[here] = self._parts[part][rows[here] % self._rows]
        return out


Stored: TypeAlias = Vectors | HalfVectors


def stored_vectors(
    encoder: Encoder, texts: pa.ChunkedArray, content: str, folder: Path, log: Log, role: Role = "symmetric"
) -> Stored | None:
    """Vectors of texts in files that all runs share; `content` identifies the texts. An interrupted run is resumed.

    If another process is computing the same vectors, wait for them. Damaged vectors are computed again. None if they do
    not fit the disk.
    """
    source = content if role == "symmetric" else f"{content} {role}"
    key = hashlib.sha256(f"{encoder.fingerprint()} {source}".encode()).hexdigest()[:20]
    rows, width = len(texts), encoder.dimension
    if 4 * rows * width <= LARGEST:
        return _whole(encoder, texts, folder / f"{key}.npy", content, log, role)
    about = f"{rows:,} vectors of {width:,} dimensions: {{}} in float16, where float32 takes {_size(4 * rows * width)}"
    half = folder / f"{key}-half"
    if not half.is_dir() and 2 * rows * width * SPARE > (free := _free(folder)):
        about = about.format(_size(2 * rows * width))
        log(f"{about}; only {_size(free)} of disk are free, so the encoder runs at every step instead")
        return None
    log(about.format(_size(2 * rows * width)))
    return _half(encoder, texts, half, content, log, role)


def stored_bytes(rows: int, width: int) -> int:
    """What these vectors take on the disk."""
    return 4 * rows * width if 4 * rows * width <= LARGEST else 2 * rows * width


def _whole(encoder: Encoder, texts: pa.ChunkedArray, path: Path, content: str, log: Log, role: Role) -> Vectors:
    with in_turn(path, log):
        if not is_sealed(path):
            if path.exists():
                log(f"{path} is damaged: its vectors are computed again")
            build_file(encoder, texts, path, source=content, role=role)
            seal(path)
        return open_vectors(path, (len(texts), encoder.dimension))


def _half(encoder: Encoder, texts: pa.ChunkedArray, folder: Path, content: str, log: Log, role: Role) -> HalfVectors:
    """A file for every SHARD rows: encoded in float32, of which one is on the disk at a time, then rounded."""
    folder.mkdir(parents=True, exist_ok=True)
    parts = []
    for number, start in enumerate(range(0, len(texts), SHARD)):
        own, path = texts.slice(start, SHARD), folder / f"{number:06}.npy"
        with in_turn(path, log):
            if not is_sealed(path):
                exact = path.with_suffix(".float32.npy")
                build_file(encoder, own, exact, source=f"{content} {number}", role=role)
                rounded = np.load(exact, mmap_mode="r").astype(np.float16)
                if not np.isfinite(rounded).all():
                    raise InputError(
                        str(path), "a vector has values beyond 65,504, the most of float16", "", "train on fewer rows"
                    )
                with new_file(path) as part, part.open("wb") as file:
                    np.save(file, rounded)
                exact.unlink()
                seal(path)
        loaded: Any = np.load(path, mmap_mode="r")
        parts.append(loaded)
    return HalfVectors(parts, SHARD)


def _free(folder: Path) -> int:
    folder.mkdir(parents=True, exist_ok=True)
    return shutil.disk_usage(folder).free


def _size(count: float) -> str:
    return f"{count / 1e9:,.1f} GB"
