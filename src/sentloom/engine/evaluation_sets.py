"""What models are scored on while they are made, by name: a set of a suite, or a file."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa

from sentloom.data.dataset import FILE, LINE, Dataset
from sentloom.data.shapes import Shape
from sentloom.encoder import Encoder
from sentloom.errors import InputError
from sentloom.evaluation.bench import distinct, score_tasks
from sentloom.evaluation.set_source import SetSource
from sentloom.evaluation.suites import find_measure, find_task, split_score
from sentloom.evaluation.task import Scores, Task


@dataclass(frozen=True)
class EvaluationSet:
    """A set and the score that it is reported by, in points; higher is better, except for alignment and uniformity.

    `data` has its sentences, which must not be trained on.
    """

    name: str
    task: Task
    data: Dataset
    seeded: Callable[[int], "EvaluationSet"] | None = None  # the set with another seed of its classifier

    @property
    def metric(self) -> str:
        """Which score it is, and how it is computed."""
        settings = self.task.settings.recorded()
        return f"{self.task.main} of {settings}" if settings else self.task.main

    @property
    def has_seed(self) -> bool:
        """Whether scores depend on a seed of the plan: of a model that is fine-tuned, or of a perceptron."""
        return self.task.seed is not None or self.seeded is not None

    def under(self, seed: int) -> "EvaluationSet":
        """The set under a seed of the plan."""
        if self.seeded:
            return self.seeded(seed)
        return self if self.task.seed is None else replace(self, task=self.task.under(seed))

    def score(self, encoder: Encoder) -> float:
        """The score of an encoder, computed now."""
        return self.main(score_tasks(encoder, [self.task])[0])

    def main(self, scores: Scores) -> float:
        """The score that the set is reported by."""
        if self.task.main not in scores:
            known = ", ".join(scores)
            raise InputError(self.name, f"the set has no score {self.task.main}", f"one of {known}", "correct the name")
        return scores[self.task.main].value


def find_evaluation_set(
    name: str, folder: str | None, *, fast: bool = False, hidden: int = 0, seed: int | None = None
) -> EvaluationSet:
    """Find a set by name (`sts-b/dev`, `MR`, `STS-B@pearson`) in a data folder or on the hub, or a file.

    `fast` and `hidden` are for classifiers; `seed` is of one with hidden units. A set that is not the published one,
    such as a part of it, has a note.
    """
    set_name, score = split_score(name)
    probe: dict[str, str | int] = {"preset": "fast" if fast else "paper", **({"hidden": hidden} if hidden else {})}
    if seed is not None:
        probe["seed"] = seed
    origin = SetSource(Path(folder) if folder else None, checked=False, probe=probe)
    task = find_measure(set_name, score, origin) if score else None
    if task is None:
        task = find_task(set_name, origin)
        task = replace(task, main=score) if score else task

    def again(seed: int) -> EvaluationSet:
        return find_evaluation_set(name, folder, fast=fast, hidden=hidden, seed=seed)

    has_perceptron = bool(task.settings.others.get("hidden"))
    return EvaluationSet(name, task, sentences_of(task), again if has_perceptron else None)


def sentences_of(task: Task) -> Dataset:
    """The sentences of a task as a data set, so that leaks can be looked for."""
    texts = distinct(task.texts)
    origin = {FILE: pa.array([0] * len(texts), pa.int32()), LINE: pa.array(range(1, len(texts) + 1), pa.int64())}
    table = pa.table({"text": pa.array(texts, pa.large_string()), **origin})
    return Dataset(Shape.TEXTS, table, (f"{task.name} ({task.source})",), "sentence", task.sha256)
