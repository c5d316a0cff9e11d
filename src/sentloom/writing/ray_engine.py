"""Write blocks of a ledger with Ray Data: see `ray_actors`."""

from collections.abc import Callable, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from sentloom.data.dataset import Dataset
from sentloom.encoder.device import DEFAULT, Choice, chosen, device_for, running_on
from sentloom.progress import progress
from sentloom.ray_actors import Actor, check_workers, lay_out, run_blocks
from sentloom.writing.judges import open_query_judges
from sentloom.writing.language_model import LanguageModel
from sentloom.writing.ledger import Ledger
from sentloom.writing.synthesize import Execution, make_block, open_ledgers_writer

SOURCES = "sources.parquet"  # the raw texts, one row group per block


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
    check_workers(execution.workers)
    lay_out_sources(raw, ledger)
    arguments = (str(ledger.folder.resolve()), load, execution, rows, chosen())
    total = sum(len(ledger.span(number, rows)) for number in numbers)
    gpu = device_for().type == "cuda"
    with progress("writing and judging", total, "sources", show_progress) as advance:
        run_blocks(Worker, arguments, numbers, workers=execution.workers, gpu=gpu, advance=advance)


class Worker(Actor):
    """Holds a model and its judges."""

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

    def write(self, number: int) -> int:
        """Write one block of the ledger, unless it exists."""
        span = self.ledger.span(number, self.rows)
        if not self.ledger.has(number, self.rows):
            texts = self.texts.read_row_group(number)["text"].slice(0, len(span)).to_pylist()
            self.ledger.write(number, make_block(self.ledger.plan, span, texts, self.writer, self.judges))
        return len(span)

    def _all_texts(self) -> list[str]:
        texts: list[str] = self.texts.read()["text"].to_pylist()
        return texts


def lay_out_sources(raw: Dataset, ledger: Ledger) -> None:
    """Write the raw texts, a row group per block."""
    block = ledger.plan.block

    def texts(start: int) -> pa.Array:
        return raw.column("text").slice(start, block).combine_chunks()

    lay_out(ledger.folder / SOURCES, lambda: map(texts, range(0, len(raw), block)))
