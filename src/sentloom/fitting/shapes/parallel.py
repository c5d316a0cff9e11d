"""Translations: a sentence and the same in another language."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from sentloom.data.dataset import Dataset
from sentloom.data.shapes import Shape
from sentloom.evaluation.user_tasks import Corpus
from sentloom.fitting.shapes.handler import Training
from sentloom.fitting.shapes.searching import Searching, held_out_rows, sample

if TYPE_CHECKING:
    from sentloom.fitting.split import Split
    from sentloom.fitting.training_sets import TrainingSet


@dataclass(frozen=True)
class Translations(Searching):
    """A sentence and its translation, each of which finds the other."""

    def main(self, data: "TrainingSet") -> Training:
        """Towards the base."""
        why = "a translation learns the vector that the frozen base gives its original"
        return Training("cross-lingual", why, {"method": "cross-lingual", "learning_rate": 2e-4})

    def others(self, data: "TrainingSet") -> Sequence[Training]:
        """By squared error."""
        why = "the vector of a translation approaches that of its original, by squared error"
        return [Training("mse-distillation", why, {"method": "mse-distillation"})]

    def corpus(self, split: "Split", more: Sequence[str], most: int) -> Corpus | None:
        """Whole rows, as both directions are asked; other texts are translations of nothing."""
        return Corpus((*held_out_rows(split), _sampled_rows(split.train, most)))

    def document_count(self, split: "Split", more: Sequence[str]) -> int | None:
        """Both sides are searched, so the words of the task say how many there are."""
        return None


def _sampled_rows(data: Dataset, most: int) -> Dataset:
    keep = np.zeros(len(data), bool)
    keep[sample(len(data), most)] = True
    return data.select(keep)


PARALLEL = Translations(Shape.PARALLEL, place=1)
