"""Triplets: a text, what it should find, and one hard negative or several."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from sentloom.data.dataset import Dataset
from sentloom.data.shapes import Shape
from sentloom.evaluation.task import Lookup, Scores, Task
from sentloom.evaluation.user_tasks import Corpus, TaskKind, data_task
from sentloom.fitting.shapes.handler import Matching, Training
from sentloom.fitting.shapes.pairs import SETTINGS
from sentloom.fitting.shapes.searching import Searching, match_partners

if TYPE_CHECKING:
    from sentloom.fitting.split import Split
    from sentloom.fitting.tasks import HeldOut
    from sentloom.fitting.training_sets import TrainingSet

MOST_NEGATIVES = 4  # of a row in one step; if a row has more, four are drawn at each step
TRIPLET_ACCURACY = "triplet accuracy"  # a score that triplets have besides those of search


@dataclass(frozen=True)
class Triplets(Searching):
    """A query, its answer, and texts that are no answers."""

    def main(self, data: "TrainingSet") -> Training:
        """With their own negatives besides those of the batch."""
        why = "each text learns to find its positive, with its own negative as the hardest"
        return Training("triplets", why, {"negatives": min(data.negatives, MOST_NEGATIVES), **SETTINGS})

    def others(self, data: "TrainingSet") -> Sequence[Training]:
        """The same rows, of which the negatives are not read."""
        why = "the same without its own negatives: with those of the batch alone, which are easier"
        texts = 2 + min(data.negatives, MOST_NEGATIVES)
        pairs = replace(data, tokens=data.tokens * 2 / texts)
        return [Training("triplets as pairs", why, {"negatives": 0, **SETTINGS}, pairs)]

    def tasks(self, name: str, data: Dataset, corpus: Corpus | None) -> tuple[Task, ...]:
        """A search that also says how often the positive is closer than the row's own negatives."""
        (task,) = super().tasks(name, data, corpus)
        return (_with_triplets(task, data) if any(data["negatives"]) else task,)

    def matching(self, part: "HeldOut", split: "Split | None", most: int) -> Matching | None:
        """A query matches its answers."""
        return match_partners(part, split)


def _with_triplets(task: Task, data: Dataset) -> Task:
    own = data_task(None, task.name, task.name, data, None)

    def score(lookup: Lookup) -> Scores:
        return {**task.score(lookup), TRIPLET_ACCURACY: own.score(lookup)[own.main]}

    return replace(task, score=score, settings=replace(task.settings, negatives=own.sha256))


TRIPLETS = Triplets(Shape.TRIPLETS, place=5, has_queries=True, task_kind=TaskKind.RETRIEVAL)
