"""Write blocks with Ray Data: actors hold the model, receive block numbers, and write each block themselves.

If a worker dies, only its current block is lost; Ray starts another worker and repeats the block. On a cluster, all
machines must see the ledger's folder: the workers read from it and write to it.
"""

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from sentloom.data.dataset import Dataset
from sentloom.encoder.device import DEFAULT, Choice, chosen, device_for, running_on
from sentloom.errors import InputError, MissingPart, SentloomError
from sentloom.files import is_sealed, new_file, seal
from sentloom.progress import progress
from sentloom.writing.judges import open_query_judges
from sentloom.writing.language_model import LanguageModel
from sentloom.writing.ledger import Ledger
from sentloom.writing.synthesize import Execution, make_block, open_ledgers_writer

SOURCES = "sources.parquet"  # the raw texts, one row group per block
MOST_TASKS = 1000  # that Ray holds at a time; each writes its blocks one after the other
Numbers = dict[str, NDArray[np.int64]]


def make_blocks(
    ledger: Ledger,
    raw: Dataset,
    load: Callable[[], LanguageModel],
    execution: Execution,
    numbers: Sequence[int],
    rows: int,
    show_progress: bool,
) -> None:
    """Write the blocks of these numbers, for the first `rows` sources, with all workers."""
    ray = _ray()
    _check_workers(ray, execution.workers)
    _lay_out(raw, ledger)
    items = [{"number": number} for number in numbers]
    made = ray.data.from_items(items, override_num_blocks=min(len(items), MOST_TASKS)).map_batches(
        _Worker,
        fn_constructor_args=(str(ledger.folder.resolve()), load, execution, rows, chosen()),
        batch_size=1,
        num_gpus=1 if device_for().type == "cuda" else None,  # without one, Ray hides the GPUs from a worker
        compute=ray.data.ActorPoolStrategy(size=execution.workers),
    )
    total = sum(len(ledger.span(number, rows)) for number in numbers)
    try:
        with progress("writing and judging", total, "sources", show_progress) as advance:
            for row in made.iter_rows():
                advance(int(row["sources"]))
    except ray.exceptions.RayError as error:
        reason = str(getattr(error, "cause", None) or error).strip().splitlines()[-1]
        fix = "fix it, and run the same command to resume"
        raise SentloomError("a Ray worker", reason, "blocks without a fault", fix) from error


class _Worker:
    """An actor: it holds a model and writes blocks."""

    def __init__(
        self, folder: str, load: Callable[[], LanguageModel], runs: Execution, rows: int, choice: Choice = DEFAULT
    ) -> None:
        self.ledger, self.rows = Ledger.open(Path(folder)), rows
        self.texts = pq.ParquetFile(self.ledger.folder / SOURCES)
        with running_on(choice.device, choice.precision):
            model = load().eval()
            if model.sha256 != self.ledger.plan.writer:
                raise RuntimeError("this worker's model is not the one that the ledger was started with")
            self.writer = open_ledgers_writer(self.ledger, model)
            self.judges = open_query_judges(self.ledger.plan, self._all_texts, runs.encoder, runs.teacher)

    def __call__(self, batch: Numbers) -> Numbers:
        """Write one block, unless it exists: after a fault Ray may repeat a number."""
        number = int(batch["number"][0])
        span = self.ledger.span(number, self.rows)
        if not self.ledger.has(number, self.rows):
            texts = self.texts.read_row_group(number)["text"].slice(0, len(span)).to_pylist()
            try:
                self.ledger.write(number, make_block(self.ledger.plan, span, texts, self.writer, self.judges))
            except SentloomError as error:  # as plain text, which can be sent between processes
                raise RuntimeError(f"{error.where}: {error.problem}") from None
        return {"sources": np.array([len(span)])}

    def _all_texts(self) -> list[str]:
        texts: list[str] = self.texts.read()["text"].to_pylist()
        return texts


def _ray() -> Any:
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


def _check_workers(ray: Any, workers: int) -> None:
    cores = int(ray.cluster_resources().get("CPU", 0))
    if workers > cores:
        problem = f"there are {workers} workers for {cores} cores of Ray"
        raise InputError("execution", problem, "at most one worker per core", f"set workers={cores}")


def _lay_out(raw: Dataset, ledger: Ledger) -> None:
    """Write the raw texts so that a worker can read those of one block alone."""
    path = ledger.folder / SOURCES
    if is_sealed(path):
        return
    schema = pa.schema([("text", pa.large_string())])
    with new_file(path) as part, pq.ParquetWriter(part, schema) as writer:
        for start in range(0, len(raw), ledger.plan.block):
            texts = raw.column("text").slice(start, ledger.plan.block)
            writer.write_table(pa.table([texts.combine_chunks()], schema=schema))
    seal(path)
