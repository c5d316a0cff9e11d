"""Vectors of many texts straight to a file: memory does not grow with their number, and a run that died goes on."""

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from sentloom.encoder.encoder import Encoder, Vectors
from sentloom.encoder.prompts import Role
from sentloom.errors import InputError, SentloomError
from sentloom.files import new_file, put

ROWS = 16_384  # of a parquet row group


def encode_to_file(
    encoder: Encoder, texts: pa.ChunkedArray, target: Path, *, source: str, role: Role = "symmetric"
) -> int:
    """Write .npy (float32, a row a text) or .parquet (text and vector); return how many an earlier run had done.

    Until it is whole, the work lies beside the target in two files that end in .part: vectors, and how many of them are
    done. The same call with the same encoder and `source` (a hash of the texts) goes on from there.
    """
    if target.suffix not in (".npy", ".parquet"):
        raise InputError(str(target), f"the ending {target.suffix!r}", ".npy or .parquet", "choose another ending")
    if target.is_dir():
        raise InputError(str(target), "a folder", "a file to write", "choose another name")
    target.parent.mkdir(parents=True, exist_ok=True)
    part, journal = (target.with_name(f".{target.name}.{kind}.part") for kind in ("vectors", "done"))
    shape = (len(texts), encoder.dimension)
    job = hashlib.sha256(f"{encoder.fingerprint()} {source} {role} {shape}".encode()).hexdigest()
    done, out = _resume(journal, part, job, shape)
    try:
        for count in encoder.fill(out, texts, role=role, done=done, show_progress=True):
            out.flush()
            with new_file(journal) as file:
                file.write_text(json.dumps({"job": job, "done": count}), encoding="utf-8")
    except SentloomError:  # refused, not interrupted
        part.unlink()
        raise
    out.flush()
    if target.suffix == ".npy":
        put(part, target)
    else:
        with new_file(target) as file:
            _write_parquet(file, texts, out)
        part.unlink()
    journal.unlink()
    return done


def _resume(
    journal: Path, part: Path, job: str, shape: tuple[int, int]
) -> "tuple[int, np.memmap[Any, np.dtype[np.float32]]]":
    """How many texts an interrupted run of the same job had done, and its vectors; of anything else, a fresh start."""
    try:
        found = json.loads(journal.read_text(encoding="utf-8"))
        if found["job"] == job:
            open_vectors(part, shape)  # it refuses a file that was cut short; numpy would fill it up with zeros
            return int(found["done"]), np.lib.format.open_memmap(part, mode="r+")
    except (OSError, ValueError, TypeError, KeyError, InputError):
        pass
    journal.unlink(missing_ok=True)  # first, or another job's journal would vouch for these vectors
    out = np.lib.format.open_memmap(part, mode="w+", dtype=np.float32, shape=shape)
    _reserve(part)
    return 0, out


def _reserve(part: Path) -> None:
    """Take the space on disk now: a write into a map for which there is none kills the process without a word."""
    if not hasattr(os, "posix_fallocate"):
        return
    size = part.stat().st_size
    try:
        with part.open("r+b") as file:
            os.posix_fallocate(file.fileno(), 0, size)
    except OSError as error:
        part.unlink()
        found, wanted = f"no room ({error.strerror})", f"{size:,} bytes for the vectors"
        raise InputError(f"folder {part.parent}", found, wanted, "free some space, or write elsewhere") from None


def _write_parquet(path: Path, texts: pa.ChunkedArray, vectors: Vectors) -> None:
    width = vectors.shape[1]
    schema = pa.schema({"text": texts.type, "vector": pa.list_(pa.float32(), width)})
    with pq.ParquetWriter(path, schema) as writer:
        for start in range(0, len(vectors), ROWS):
            part = np.ascontiguousarray(vectors[start : start + ROWS])
            column = pa.FixedSizeListArray.from_arrays(pa.array(part.ravel()), width)
            writer.write_table(pa.table([texts.slice(start, ROWS), column], schema))


def open_vectors(path: Path, shape: tuple[int, int]) -> Vectors:
    """The vectors of a .npy file, memory-mapped, if it is whole and they are of the wanted number and width."""
    try:
        vectors = np.lib.format.open_memmap(path, mode="r")
    except Exception as error:  # a damaged header makes errors of many kinds; all mean the same
        raise InputError(
            str(path), f"no readable vectors ({error})", "a .npy file", "write it: sentloom encode"
        ) from None
    whole = path.stat().st_size == vectors.offset + vectors.nbytes
    if not whole or vectors.shape != shape or vectors.dtype != np.float32:
        found = f"{vectors.dtype} vectors of shape {vectors.shape}{'' if whole else ' and more'}"
        raise InputError(str(path), found, f"float32, {shape}", "give the file and the model they were made with")
    return vectors
