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
from sentloom.data.shapes import COLUMNS, Shape, arrow_type
from sentloom.methods import Learner
from sentloom.methods.settings import Settings
from sentloom.training.gradients import add_gradients
from sentloom.training.optimizers import build_optimizer

TIMED_STEPS = 3  # at most
ENOUGH = 1.0  # seconds after which no further step is timed
LONG = 5.0  # seconds; a step that would take longer, judging by a part of its batch, is not timed with the whole batch
PARTS = 4  # a part is this fraction of the batch
FEWEST_ROWS = 8  # in a part; smaller ones say too little
WARM_STEPS = 2  # timed with a part: the first one also allocates memory


def training_time(
    method: Learner, data: Dataset, settings: Settings, seed: int, accelerator: Accelerator
) -> tuple[int, float]:
    """The number of steps, and the seconds that they would take; timing changes the method's weights a little."""
    method.to(accelerator.device).train()
    steps = settings.total_steps(settings.batches(data, seed).per_epoch)
    part = settings.model_copy(update={"batch": settings.batch // PARTS})
    if part.batch >= FEWEST_ROWS:
        *_, last = _step_times(method, data, part, seed, accelerator, WARM_STEPS)
        if (whole := last * settings.batch / part.batch) > LONG:
            return steps, steps * whole
    return steps, steps * median(_step_times(method, data, settings, seed, accelerator, TIMED_STEPS))


def _step_times(
    method: Learner, data: Dataset, settings: Settings, seed: int, accelerator: Accelerator, most: int
) -> list[float]:
    """The seconds of the first steps: `most` of them, or fewer once they have taken ENOUGH."""
    optimizer, batches = build_optimizer(method, settings), settings.batches(data, seed)
    took = list[float]()
    while len(took) < most and sum(took) <= ENOUGH:
        start = time.perf_counter()
        for part in range(settings.accumulate):
            batch = batches.batch(len(took) * settings.accumulate + part)
            add_gradients(method, batch, accelerator, settings.chunk)
        optimizer.step()
        took.append(time.perf_counter() - start)
    return took


def time_per_item(work: Callable[[Sequence[Any]], Iterable[object]], items: Sequence[Any]) -> float:
    """Seconds per item, measured on these."""
    start = time.perf_counter()
    list(work(items))
    return (time.perf_counter() - start) / max(1, len(items))


def placeholder(data: Dataset, shape: Shape, rows: int | None = None) -> Dataset:
    """Rows of the shape and size that a stage will produce: every sentence of the data beside itself."""
    texts = data if data.shape is Shape.TEXTS else texts_of(data)
    table = texts.table.slice(0, rows)
    columns = {name: table.column("text") for name in COLUMNS[shape]}
    if "negatives" in columns:
        chunks = columns["anchor"].chunks
        lists = [pa.ListArray.from_arrays(pa.array(range(len(chunk) + 1), pa.int32()), chunk) for chunk in chunks]
        columns["negatives"] = pa.chunked_array(lists, arrow_type("negatives"))
    made = pa.table({**columns, FILE: table.column(FILE), LINE: table.column(LINE)})
    return replace(texts.derive(made, f"placeholder {shape}", shape), used={}, skipped={})
