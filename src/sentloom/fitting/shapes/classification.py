"""Texts with a label each."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from sentloom.data.dataset import Dataset
from sentloom.data.hygiene.inspection import Inspection
from sentloom.data.shapes import Shape
from sentloom.evaluation.task import Task
from sentloom.evaluation.user_tasks import Corpus, known_labels_task
from sentloom.fitting.shapes.handler import PROBE, Handler, Lack, Matching, Pairs, Training
from sentloom.fitting.shapes.searching import SEED

if TYPE_CHECKING:
    from sentloom.fitting.split import Split
    from sentloom.fitting.tasks import HeldOut
    from sentloom.fitting.training_sets import TrainingSet

# Training rows among which texts look for neighbours: the second number whatever the budget.
MOST_LABELLED, FEWEST_LABELLED = 20_000, 1_000
SETTINGS: dict[str, Any] = {"method": "supervised", "learning_rate": 1e-4}


@dataclass(frozen=True)
class LabelledTexts(Handler):
    """A text and its label."""

    def lack(self, inspection: Inspection) -> Lack | None:
        """A single label, or one of its own for every row, says nothing about which texts belong together."""
        labels = inspection.labels
        if len(labels) < 2:
            return Lack(f"there is only one label, {', '.join(labels)}", "two labels or more")
        if max(labels.values()) < 2:
            return Lack(f"each of the {len(labels):,} labels occurs in one row only", "at least two rows per label")
        return None

    def main(self, data: "TrainingSet") -> Training:
        """By labels."""
        why = "texts with the same label become neighbours, away from those with other labels"
        return Training("labels", why, SETTINGS)

    def corpus(self, split: "Split", more: Sequence[str], most: int) -> Corpus | None:
        """Training rows, whose labels are known."""
        return Corpus((labelled_rows(split, most),))

    def probe(self, name: str, data: Dataset, corpus: Corpus) -> Task | None:
        """Trained on the training rows."""
        return known_labels_task(name, data, PROBE, corpus)

    def related(self, data: Dataset) -> Pairs:
        """A label says nothing about pairs."""
        return []

    def matching(self, part: "HeldOut", split: "Split | None", most: int) -> Matching | None:
        """A text matches training rows with its label."""
        if split is None:
            return None
        train = labelled_rows(split, most)
        own, others = (np.array(data["label"], object) for data in (part.data, train))
        texts = part.data["text"], train["text"]
        return Matching(*texts, ("symmetric", "symmetric"), lambda text, at: bool(own[text] == others[at]))


def labelled_rows(split: "Split", most: int) -> Dataset:
    """The training rows among which labelled texts look for neighbours.

    If there is no time for all of them, every held-out label that training rows have is kept: one row each, then a
    sample of the others.
    """
    most = min(MOST_LABELLED, max(FEWEST_LABELLED, most))
    labels = split.train.column("label").to_pylist()
    asked = {label for part in (split.validation, split.test) for label in part.column("label").to_pylist()}
    drawn = np.random.default_rng(SEED).permutation(len(labels)).tolist()
    first = {labels[at]: at for at in reversed(drawn) if labels[at] in asked}  # of each label, the first drawn
    kept = [*dict.fromkeys([*sorted(first.values()), *drawn])][:most]
    keep = np.zeros(len(labels), bool)
    keep[kept] = True
    return split.train.select(keep)


CLASSIFICATION = LabelledTexts(
    Shape.CLASSIFICATION,
    place=2,
    value_column="label",
    least_rows=8,
    least_texts=8,  # four of each of two labels
)
