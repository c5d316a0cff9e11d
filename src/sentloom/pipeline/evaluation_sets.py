"""What models are scored on while they are made, by name: a set of a suite, or a file."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from sentloom.data.dataset import FILE, LINE, Dataset
from sentloom.data.shapes import Shape
from sentloom.encoder import Encoder
from sentloom.evaluation.bench import distinct, score_tasks
from sentloom.evaluation.suites.catalog import find_task
from sentloom.evaluation.suites.set_source import SetSource
from sentloom.evaluation.task import Task


@dataclass(frozen=True)
class EvaluationSet:
    """A set with a score, times 100, higher is better; `metric` says which, `data` has its sentences."""

    name: str
    metric: str
    data: Dataset
    score: Callable[[Encoder], float]


def find_evaluation_set(name: str, folder: str | None, *, fast: bool = False) -> EvaluationSet:
    """Find a set by name (`sts-b/dev`, `MR`) in a data folder or on the hub, or a file. `fast` is for classifiers."""
    probe = {"preset": "fast" if fast else "paper"}
    task = find_task(name, SetSource(Path(folder) if folder else None, checked=False, probe=probe))
    metric = f"{task.main} of {dict(task.settings)}" if task.settings else task.main
    return EvaluationSet(
        name, metric, sentences_of(task), lambda encoder: score_tasks(encoder, [task])[0][task.main].value
    )


def sentences_of(task: Task) -> Dataset:
    """The sentences of a task as a data set, so that leaks can be looked for."""
    texts = distinct(task.texts)
    origin = {FILE: pa.array([0] * len(texts), pa.int32()), LINE: pa.array(range(1, len(texts) + 1), pa.int64())}
    table = pa.table({"text": pa.array(texts, pa.large_string()), **origin})
    return Dataset(Shape.TEXTS, table, (f"{task.name} ({task.source})",), "sentence", task.sha256)
