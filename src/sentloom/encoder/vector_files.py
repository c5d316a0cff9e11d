"""Vectors of many texts straight to a file, in memory that does not grow with their number."""

import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from sentloom.encoder.encoder import Encoder, Vectors
from sentloom.encoder.prompts import Role
from sentloom.errors import InputError
from sentloom.files import new_file

ROWS = 16_384  # of a parquet row group


def encode_to_file(encoder: Encoder, texts: pa.ChunkedArray, target: Path, role: Role = "symmetric") -> None:
    """Write .npy (float32, a row a text) or .parquet (columns text and vector). Nothing is left half-written."""
    shape = (len(texts), encoder.dimension)
    if target.suffix == ".npy":
        with new_file(target) as part:
            out = np.lib.format.open_memmap(part, mode="w+", dtype=np.float32, shape=shape)
            encoder.encode(texts, role=role, out=out, show_progress=True)
            out.flush()
    elif target.suffix == ".parquet":
        with new_file(target) as part, tempfile.TemporaryFile(dir=target.parent) as file:
            scratch = np.memmap(file, dtype=np.float32, mode="w+", shape=shape)
            _write_parquet(part, texts, encoder.encode(texts, role=role, out=scratch, show_progress=True))
    else:
        raise InputError(str(target), f"the ending {target.suffix!r}", ".npy or .parquet", "choose another ending")


def _write_parquet(path: Path, texts: pa.ChunkedArray, vectors: Vectors) -> None:
    width = vectors.shape[1]
    schema = pa.schema({"text": texts.type, "vector": pa.list_(pa.float32(), width)})
    with pq.ParquetWriter(path, schema) as writer:
        for start in range(0, len(vectors), ROWS):
            part = np.ascontiguousarray(vectors[start : start + ROWS])
            column = pa.FixedSizeListArray.from_arrays(pa.array(part.ravel()), width)
            writer.write_table(pa.table([texts.slice(start, ROWS), column], schema))


def open_vectors(path: Path, shape: tuple[int, int]) -> Vectors:
    """The vectors of a .npy file, memory-mapped, if they are of the wanted number and width."""
    try:
        vectors: Vectors = np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError) as error:
        raise InputError(
            str(path), f"no readable vectors ({error})", "a .npy file", "write it: sentloom encode"
        ) from None
    if vectors.shape != shape:
        raise InputError(
            str(path),
            f"vectors of shape {vectors.shape}",
            f"{shape}",
            "give the file and the model they were made with",
        )
    return vectors
