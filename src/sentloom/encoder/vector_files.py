"""Encode many texts directly to a file, with constant memory; an interrupted run resumes.

Ray's workers write a shard per window of texts, and one process then puts the shards into the same file.
"""

import hashlib
import os
import zlib
from collections.abc import Callable, Iterator
from functools import partial
from itertools import takewhile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from sentloom.data.sentences import distinct, texts_at
from sentloom.encoder.device import DEFAULT, Choice, chosen, running_on
from sentloom.encoder.encoder import Encoder, Vectors, copy_repeated
from sentloom.encoder.tokens import Role
from sentloom.errors import DamagedFile, DiskError, InputError, SentloomError, disk_errors
from sentloom.files import is_sealed, new_file, put, read_record, remove, seal, write_record
from sentloom.locks import alone_on
from sentloom.progress import progress
from sentloom.ray_actors import Actor, check_workers, cores, lay_out, run_blocks

ROWS = 16_384  # per parquet row group
TEXT, VECTOR = "text", "vector"  # columns of a parquet file
TEXTS, JOB = "texts.parquet", "job.json"
Fill = Callable[[Vectors, int], Iterator[NDArray[np.int64]]]
Load = Callable[[], Encoder]


def encode_to_file(
    encoder: Encoder,
    texts: pa.ChunkedArray,
    target: Path,
    *,
    source: str,
    role: Role = "symmetric",
    beside: pa.Table | None = None,
) -> int:
    """Write .npy (float32, one row per text) or .parquet (text and vector); return how many were already done.

    A .parquet file also has the columns of `beside`.

    Until the file is complete, two files ending in .part are stored beside the target: the vectors, and a journal with
    a checksum of each window. The same call with the same encoder and `source` (a hash of the texts) resumes from
    them. A target that another process is writing is refused.
    """
    check_target(target)
    with alone_on(target):
        return build_file(encoder, texts, target, source=source, role=role, beside=beside)


def check_target(target: Path) -> None:
    """Refuse a name that no vectors can be written to."""
    if target.suffix not in (".npy", ".parquet"):
        problem = f"files ending in {target.suffix!r} cannot be written"
        raise InputError(str(target), problem, ".npy or .parquet", "choose another file name")
    if target.is_dir():
        raise InputError(str(target), "it is a folder", "a file to write", "choose another name")


def job_of(encoder: Encoder, rows: int, source: str, role: Role) -> str:
    """A hash of all that the vectors depend on."""
    shape = (rows, encoder.dimension)
    return hashlib.sha256(f"{encoder.fingerprint()} {source} {role} {shape} {encoder.window}".encode()).hexdigest()


def build_file(
    encoder: Encoder,
    texts: pa.ChunkedArray,
    target: Path,
    *,
    source: str,
    role: Role = "symmetric",
    fill: Fill | None = None,
    beside: pa.Table | None = None,
) -> int:
    """Do the work of `encode_to_file` for a caller that holds the target's lock.

    `fill` writes windows of vectors into an array, after the texts that are done, and yields their rows; by default
    they are encoded here.
    """
    part, journal = (target.with_name(f".{target.name}.{kind}.part") for kind in ("vectors", "done"))
    job = job_of(encoder, len(texts), source, role)
    fill = fill or (lambda out, done: encoder.fill(out, texts, role=role, done=done, show_progress=True))
    with disk_errors(target):
        sums, done, out = _resume(journal, part, job, texts, (len(texts), encoder.dimension), encoder.window)
        try:
            for rows in fill(out, done):
                out.flush()
                sums.append(_checksum(out, rows))
                write_record(journal, {"job": job, "windows": sums})
            _refuse_unwritten(out, target)
        except SentloomError as error:  # refused, not interrupted
            if not isinstance(error, DiskError):
                part.unlink()
                journal.unlink(missing_ok=True)
            raise
        out.flush()
        if target.suffix == ".npy":
            put(part, target)
        else:
            with new_file(target) as file:
                write_parquet(file, texts, out, beside=beside)
            part.unlink()
        journal.unlink(missing_ok=True)
    return done


def _resume(
    journal: Path, part: Path, job: str, texts: pa.ChunkedArray, shape: tuple[int, int], window: int
) -> "tuple[list[int], int, np.memmap[Any, np.dtype[np.float32]]]":
    """Return the checksums of the windows that an interrupted run completed, its number of texts, and the vectors.

    A damaged window and all windows after it are computed again; without a usable run, start from the beginning.
    """
    try:
        record = read_record(journal, "")
        if record["job"] == job:
            open_vectors(part, shape)  # refuses a truncated file, which numpy would fill with zeros
            out = np.lib.format.open_memmap(part, mode="r+")
            windows = zip(_windows(distinct(texts)[0], window), record["windows"], strict=False)
            sound = list(takewhile(lambda pair: _checksum(out, pair[0]) == pair[1], windows))
            return [crc for _, crc in sound], sum(len(rows) for rows, _ in sound), out
    except (OSError, ValueError, TypeError, KeyError, InputError, DamagedFile):
        pass
    journal.unlink(missing_ok=True)  # first, or another job's journal would be valid for these vectors
    out = np.lib.format.open_memmap(part, mode="w+", dtype=np.float32, shape=shape)
    _reserve(part)
    for start in range(0, len(out), ROWS):
        out[start : start + ROWS] = np.nan  # marks rows that are never written
    return [], 0, out


def _windows(rows: NDArray[np.int64], window: int) -> list[NDArray[np.int64]]:
    """Divide the rows of distinct texts into the windows that `Encoder.fill` writes."""
    return [rows[start : start + window] for start in range(0, len(rows), window)]


def _checksum(vectors: Vectors, rows: NDArray[np.int64]) -> int:
    return zlib.crc32(np.ascontiguousarray(vectors[rows]).data)


def _refuse_unwritten(vectors: Vectors, target: Path) -> None:
    """Refuse vectors with a row that was not written or is not finite, before the file gets its name."""
    for start in range(0, len(vectors), ROWS):
        bad = np.flatnonzero(~np.isfinite(vectors[start : start + ROWS]).all(axis=1))
        if len(bad):
            problem = f"row {start + bad[0]} has no finite vector"
            raise InputError(str(target), problem, "a finite vector in each row", "check the model, and encode again")


def _reserve(part: Path) -> None:
    """Reserve the disk space now: writing to a memory map on a full disk kills the process without a message."""
    if not hasattr(os, "posix_fallocate"):
        return
    try:
        with part.open("r+b") as file:
            os.posix_fallocate(file.fileno(), 0, part.stat().st_size)
    except OSError:
        part.unlink()
        raise


def write_parquet(
    path: Path, texts: pa.ChunkedArray, vectors: Vectors, rows: int = ROWS, beside: pa.Table | None = None
) -> None:
    """Write texts and vectors, `rows` of them in a row group, with other columns of the same rows between them."""
    width = vectors.shape[1]
    others = [] if beside is None else [field for field in beside.schema if field.name not in (TEXT, VECTOR)]
    schema = pa.schema([(TEXT, texts.type), *others, (VECTOR, pa.list_(pa.float32(), width))])
    with pq.ParquetWriter(path, schema) as writer:
        for start in range(0, len(vectors), rows):
            part = np.ascontiguousarray(vectors[start : start + rows])
            column = pa.FixedSizeListArray.from_arrays(pa.array(part.ravel()), width)
            more = [beside.column(field.name).slice(start, rows) for field in others] if beside is not None else []
            writer.write_table(pa.table([texts.slice(start, rows), *more, column], schema))


def open_vectors(path: Path, shape: tuple[int, int]) -> Vectors:
    """Open a .npy file as a memory map, if it is complete and has the expected shape."""
    try:
        vectors = np.lib.format.open_memmap(path, mode="r")
    except Exception as error:  # a damaged header causes many types of errors
        raise InputError(
            str(path), f"the vectors are unreadable ({error})", "a .npy file", "write it with sentloom encode"
        ) from None
    whole = path.stat().st_size == vectors.offset + vectors.nbytes
    if not whole or vectors.shape != shape or vectors.dtype != np.float32:
        problem = f"the vectors are {vectors.dtype} of shape {vectors.shape}{'' if whole else ' and the size is wrong'}"
        fix = "give the file and the model they were made with"
        raise InputError(str(path), problem, f"float32 of shape {shape}", fix)
    return vectors


def encode_with_ray(
    encoder: Encoder,
    load: Load,
    texts: pa.ChunkedArray,
    target: Path,
    *,
    source: str,
    role: Role = "symmetric",
    workers: int | None = None,
    beside: pa.Table | None = None,
) -> int:
    """Write what `encode_to_file` writes, with Ray's workers (by default one per core); return how many were done.

    `load` opens the same encoder in each worker: it must find the model on every machine.
    """
    check_target(target)
    count = workers or cores()
    check_workers(count)
    with alone_on(target):
        folder = target.with_name(f".{target.name}.shards")
        rows, first_of_row = distinct(texts)
        windows = _windows(rows, encoder.window)
        _begin(folder, job_of(encoder, len(texts), source, role))
        lay_out(folder / TEXTS, lambda: (texts_at(texts, window) for window in windows))
        left = [number for number in range(len(windows)) if not is_sealed(shard(folder, number))]
        sentences = sum(len(windows[number]) for number in left)
        arguments = (str(folder.resolve()), load, encoder.fingerprint(), role, chosen())
        gpu = encoder.device.type == "cuda"
        with progress("encoding", sentences, "sentences", True) as advance:
            run_blocks(Worker, arguments, left, workers=count, gpu=gpu, advance=advance)
        fill = partial(_assemble, folder, windows, first_of_row)
        build_file(encoder, texts, target, source=source, role=role, fill=fill, beside=beside)
        remove(folder)
    return len(rows) - sentences


class Worker(Actor):
    """Holds an encoder, and writes shards."""

    def __init__(self, folder: str, load: Load, fingerprint: str, role: Role, choice: Choice = DEFAULT) -> None:
        self.folder, self.role = Path(folder), role
        self.texts = pq.ParquetFile(self.folder / TEXTS)
        with running_on(choice.device, choice.precision):
            self.encoder = load()
        if self.encoder.fingerprint() != fingerprint:
            raise RuntimeError("this worker's model is not the one that the work was started with")

    def write(self, number: int) -> int:
        """Write the vectors of one window, unless they exist."""
        texts, path = self.texts.read_row_group(number)["text"].to_pylist(), shard(self.folder, number)
        if not is_sealed(path):
            vectors = self.encoder.encode(texts, role=self.role)
            with new_file(path) as part:
                np.save(part, vectors)
            seal(path)
        return len(texts)


def shard(folder: Path, number: int) -> Path:
    """The file of a window's vectors."""
    return folder / f"{number:06}.npy"


def _begin(folder: Path, job: str) -> None:
    """Keep the shards of an earlier run of the same job; remove those of another."""
    record = folder / JOB
    if record.is_file() and read_record(record, f"delete {folder}")["job"] == job:
        return
    remove(folder)
    folder.mkdir(parents=True)
    write_record(record, {"job": job})


def _assemble(
    folder: Path, windows: list[NDArray[np.int64]], first_of_row: NDArray[np.int64], out: Vectors, done: int
) -> Iterator[NDArray[np.int64]]:
    """Copy the shards into `out`, which has the first `done` texts already."""
    for number, rows in enumerate(windows):
        if done > 0:
            done -= len(rows)
            continue
        out[rows] = np.load(shard(folder, number))
        yield rows
    copy_repeated(out, first_of_row, max(map(len, windows), default=1))
