"""Numbered blocks of work with Ray Data: actors hold a model, receive block numbers, and write each block themselves.

If a worker dies, only its current block is lost; Ray starts another worker and repeats the block. On a cluster, all
machines must see the folder that the workers read from and write to.
"""

import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from sentloom.errors import InputError, MissingPart, SentloomError
from sentloom.files import is_sealed, new_file, seal

MOST_TASKS = 1000  # that Ray holds at a time; each writes its blocks one after the other
NUMBER, DONE = "number", "done"  # what an actor receives and returns: a block, and how many items it has
Numbers = dict[str, NDArray[np.int64]]


def run_blocks(
    actor: type, arguments: tuple[Any, ...], numbers: Sequence[int], *, workers: int, gpu: bool, advance: Any
) -> None:
    """Let all workers write the blocks of these numbers; `advance` is called with the items of each."""
    if not numbers:
        return
    ray = start_ray()
    items = [{NUMBER: number} for number in numbers]
    made = ray.data.from_items(items, override_num_blocks=min(len(items), MOST_TASKS)).map_batches(
        actor,
        fn_constructor_args=arguments,
        batch_size=1,
        num_gpus=1 if gpu else None,  # without one, Ray hides the GPUs from a worker
        compute=ray.data.ActorPoolStrategy(size=workers),
    )
    try:
        for row in made.iter_rows():
            advance(int(row[DONE]))
    except ray.exceptions.RayError as error:
        reason = str(getattr(error, "cause", None) or error).strip().splitlines()[-1]
        fix = "fix it, and run the same command to resume"
        raise SentloomError("a Ray worker", reason, "blocks without a fault", fix) from error


class Actor:
    """Writes one block per call; a subclass loads its model in its constructor, and has `write`."""

    def write(self, number: int) -> int:
        """Write a block, unless it exists: after a fault Ray may repeat a number. Return how many items it has."""
        raise NotImplementedError

    def __call__(self, batch: Numbers) -> Numbers:
        """Write the block of a number."""
        try:
            return {DONE: np.array([self.write(int(batch[NUMBER][0]))])}
        except SentloomError as error:  # as plain text, which can be sent between processes
            raise RuntimeError(f"{error.where}: {error.problem}") from None


def lay_out(path: Path, blocks: Callable[[], Iterable[Sequence[str] | pa.Array]]) -> None:
    """Write texts so that a worker can read those of one block alone: one row group per block."""
    if is_sealed(path):
        return
    schema = pa.schema([("text", pa.large_string())])
    with new_file(path) as part, pq.ParquetWriter(part, schema) as writer:
        for texts in blocks():
            writer.write_table(pa.table([pa.array(texts, pa.large_string())], schema=schema))
    seal(path)


def start_ray() -> Any:
    """Ray, started without output and without usage statistics."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        import ray
        import ray.data
    except ImportError as error:
        raise MissingPart("engine ray", "Ray is not installed", "", 'pip install "sentloom[ray]"') from error
    if not ray.is_initialized():
        _start(ray)
    ray.data.DataContext.get_current().enable_progress_bars = False
    return ray


def _start(ray: Any) -> None:
    try:
        ray.init(include_dashboard=False, log_to_driver=False, logging_level="error")
    except Exception as error:  # Ray raises plain ones, such as when a busy machine exceeds its 30 seconds
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        fix = "check the cluster or the load of this machine, or choose the engine local"
        raise SentloomError("engine ray", reason, "Ray to start", fix) from error


def cores() -> int:
    """How many cores Ray has, on all machines."""
    return int(start_ray().cluster_resources().get("CPU", 0))


def check_workers(workers: int) -> None:
    """Refuse more workers than cores: Ray would wait for ever."""
    if workers > (most := cores()):
        problem = f"there are {workers} workers for {most} cores of Ray"
        raise InputError("workers", problem, "at most one worker per core", f"use {most}")
