"""How long a stage would take, measured on a few steps or a few rows."""

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from statistics import median
from typing import Any

import pyarrow as pa
from accelerate import Accelerator

from sentloom.data.dataset import FILE, LINE, Dataset
from sentloom.data.sentences import texts_of
from sentloom.data.shapes import ARROW_TYPES, COLUMNS, Shape
from sentloom.methods import Learner
from sentloom.methods.settings import Settings
from sentloom.training.gradients import add_gradients
from sentloom.training.optimizers import build_optimizer

TIMED_STEPS = 3  # at most
ENOUGH = 3.0  # seconds after which no further step is timed


def training_time(
    method: Learner, data: Dataset, settings: Settings, seed: int, accelerator: Accelerator
) -> tuple[int, float]:
    """The number of steps, and the seconds that they would take; the method's weights move a little."""
    method.to(accelerator.device).train()
    optimizer = build_optimizer(method, settings)
    batches = settings.batches(data, seed)
    took = []
    for step in range(TIMED_STEPS):
        start = time.perf_counter()
        for part in range(settings.accumulate):
            batch = batches.batch(step * settings.accumulate + part)
            add_gradients(method, batch, accelerator, settings.chunk)
        optimizer.step()
        took.append(time.perf_counter() - start)
        if sum(took) > ENOUGH:
            break
    steps = settings.total_steps(batches.per_epoch)
    return steps, steps * median(took)


def timed_steps(seconds: float) -> int:
    """How many steps are timed if each takes this many seconds."""
    return min(TIMED_STEPS, int(ENOUGH / seconds) + 1)


def time_per_item(work: Callable[[Sequence[Any]], Iterable[object]], items: Sequence[Any]) -> float:
    """Seconds per item, measured on some of them."""
    start = time.perf_counter()
    list(work(items))
    return (time.perf_counter() - start) / max(1, len(items))


def placeholder(data: Dataset, shape: Shape, rows: int | None = None) -> Dataset:
    """Rows of the shape and size that a stage will produce: every sentence of the data beside itself."""
    texts = data if data.shape is Shape.TEXTS else texts_of(data)
    table = texts.table.slice(0, rows)
    columns = {name: table.column("text") for name in COLUMNS[shape]}
    if "negatives" in columns:
        lists = [
            pa.ListArray.from_arrays(pa.array(range(len(one) + 1), pa.int32()), one) for one in columns["anchor"].chunks
        ]
        columns["negatives"] = pa.chunked_array(lists, ARROW_TYPES["negatives"])
    made = pa.table({**columns, FILE: table.column(FILE), LINE: table.column(LINE)})
    return replace(texts.derive(made, f"placeholder {shape}", shape), used={}, skipped={})
