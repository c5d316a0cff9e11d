"""Pairs of sentences with a score of people, such as how similar they are."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow.compute as pc

from sentloom.data.dataset import Dataset
from sentloom.data.hygiene.inspection import Inspection
from sentloom.data.shapes import Shape
from sentloom.fitting.shapes.handler import Handler, Lack, Pairs, Training

if TYPE_CHECKING:
    from sentloom.fitting.training_sets import TrainingSet

HIGH = 0.8  # of the way from the lowest to the highest score: such pairs mean much the same
# Three points better than 2e-5, in batches of 16 another one and a half (docs/results-fit.md).
SETTINGS: dict[str, Any] = {"learning_rate": 5e-5, "batch": 16}


@dataclass(frozen=True)
class ScoredPairs(Handler):
    """Two sentences and a score."""

    def lack(self, inspection: Inspection) -> Lack | None:
        """A single score says nothing about which texts belong together."""
        scores = inspection.scores
        if scores is None or scores.least != scores.most:
            return None
        return Lack(f"there is only one score, {scores.least:g}", "scores that differ")

    def main(self, data: "TrainingSet") -> Training:
        """By ranks."""
        why = "cosines learn the order of the scores (CoSENT)"
        return Training("scores", why, {"method": "cosent", **SETTINGS})

    def others(self, data: "TrainingSet") -> Sequence[Training]:
        """By ranks of angles too."""
        why = "the same, and angles in the complex plane learn it too (AnglE)"
        return [Training("scores with angles", why, {"method": "angle", **SETTINGS})]

    def related(self, data: Dataset) -> Pairs:
        """The pairs with high scores."""
        return super().related(high_pairs(data))

    @property
    def shown_columns(self) -> tuple[str, str]:
        """First sentences with each other: second ones are no answers to them."""
        return "sentence1", "sentence1"


def high_pairs(data: Dataset) -> Dataset:
    """The pairs that people scored high, without their scores."""
    scores = data.column("score")
    least, greatest = pc.min(scores).as_py(), pc.max(scores).as_py()
    return as_pairs(data, np.asarray(scores.to_numpy() >= least + HIGH * (greatest - least)), "high scores as pairs")


def as_pairs(data: Dataset, chosen: npt.NDArray[np.bool_], how: str) -> Dataset:
    """Some of the pairs, without their scores."""
    pairs, names = data.select(chosen), {"sentence1": "anchor", "sentence2": "positive"}
    table = pairs.table.drop_columns(["score"])
    return pairs.derive(table.rename_columns([names.get(name, name) for name in table.column_names]), how, Shape.PAIRS)


SCORED_PAIRS = ScoredPairs(Shape.SCORED_PAIRS, place=4, value_column="score")
