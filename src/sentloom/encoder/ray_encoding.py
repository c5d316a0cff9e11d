"""Encode many texts to a file with the workers of a Ray cluster: the file is the same as that of a single process.

A shard has the vectors of one window of distinct texts, and is written once, under its number, in a folder beside the
target that all machines must see. The windows are those of a single process, so every vector is the same to the last
bit. When all shards are there, they become the file; until then, the same call resumes.
"""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from sentloom.data.distinct import distinct, texts_at
from sentloom.encoder.device import DEFAULT, Choice, chosen, running_on
from sentloom.encoder.encoder import Encoder, Vectors, copy_repeated
from sentloom.encoder.prompts import Role
from sentloom.encoder.vector_files import build_file, check_target, job_of
from sentloom.files import is_sealed, new_file, read_record, remove, seal, write_record
from sentloom.locks import alone_on
from sentloom.progress import progress
from sentloom.ray_actors import Actor, check_workers, cores, lay_out, run_blocks

TEXTS, JOB = "texts.parquet", "job.json"
Load = Callable[[], Encoder]


def encode_with_ray(
    encoder: Encoder,
    load: Load,
    texts: pa.ChunkedArray,
    target: Path,
    *,
    source: str,
    role: Role = "symmetric",
    workers: int | None = None,
) -> int:
    """Write what `encode_to_file` writes, with some workers (by default one per core); return how many were done.

    `load` opens the same encoder in each worker: it must find the model on every machine.
    """
    check_target(target)
    count = workers or cores()
    check_workers(count)
    with alone_on(target):
        folder = target.with_name(f".{target.name}.shards")
        rows, first_of_row = distinct(texts)
        windows = [rows[start : start + encoder.window] for start in range(0, len(rows), encoder.window)]
        _begin(folder, job_of(encoder, len(texts), source, role))
        lay_out(folder / TEXTS, lambda: (texts_at(texts, window) for window in windows))
        left = [number for number in range(len(windows)) if not is_sealed(shard(folder, number))]
        sentences = sum(len(windows[number]) for number in left)
        arguments = (str(folder.resolve()), load, encoder.fingerprint(), role, chosen())
        gpu = encoder.device.type == "cuda"
        with progress("encoding", sentences, "sentences", True) as advance:
            run_blocks(Worker, arguments, left, workers=count, gpu=gpu, advance=advance)
        fill = partial(_assemble, folder, windows, first_of_row)
        build_file(encoder, texts, target, source=source, role=role, fill=fill)
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
    """Copy all shards into `out`; the first `done` texts are there."""
    for number, rows in enumerate(windows):
        if done > 0:
            done -= len(rows)
            continue
        out[rows] = np.load(shard(folder, number))
        yield rows
    copy_repeated(out, first_of_row, max(map(len, windows), default=1))
