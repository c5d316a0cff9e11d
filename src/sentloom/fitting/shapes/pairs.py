"""Pairs of a text and what it should find, such as questions and answers, or titles and the texts under them."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from sentloom.data.cells import as_count
from sentloom.data.columns import only_column
from sentloom.data.dataset import Dataset, take_rows
from sentloom.data.sentences import texts_of
from sentloom.data.shapes import COUNT, TITLE, Shape, squash
from sentloom.fitting.shapes.handler import Matching, Training
from sentloom.fitting.shapes.searching import Searching, match_partners

if TYPE_CHECKING:
    from sentloom.fitting.split import Split
    from sentloom.fitting.tasks import HeldOut
    from sentloom.fitting.training_sets import TrainingSet

# From the same rows, batches of 32 learn more than batches of 64, as there are more steps (docs/results-fit.md).
SETTINGS: dict[str, Any] = {"method": "contrastive", "learning_rate": 5e-5, "directions": "both", "batch": 32}


@dataclass(frozen=True)
class AnsweredQueries(Searching):
    """A query and its answer."""

    def training_parts(self, rows: Dataset) -> list[Dataset]:
        """Documents with titles are pairs, and raw text as well."""
        return [weighted(rows), *([texts_of(only_column(rows, "positive"))] if is_titled(rows) else [])]

    def main(self, data: "TrainingSet") -> Training:
        """Each with the others of the batch as negatives."""
        return Training("pairs", "each text learns to find its partner among those of the batch", SETTINGS)

    def matching(self, part: "HeldOut", split: "Split | None", most: int) -> Matching | None:
        """A query matches its answers."""
        return match_partners(part, split)


def weighted(rows: Dataset) -> Dataset:
    """Pairs of a search log as often as the logarithm of their clicks says: 1 or 2 once, 3 to 6 twice, and so on."""
    if COUNT not in rows.table.column_names:
        return rows
    clicks = np.array([as_count(cell) for cell in rows.column(COUNT).to_pylist()])
    times = np.log2(np.maximum(clicks, 1) + 1).astype(np.int64)
    return rows.derive(take_rows(rows.table, np.repeat(np.arange(len(rows)), times)), "repeated by clicks")


def is_titled(data: Dataset) -> bool:
    """Whether pairs are titles and the texts under them, by the names of their columns."""
    return data.shape is Shape.PAIRS and squash(data.used.get("anchor", "")) == TITLE


PAIRS = AnsweredQueries(Shape.PAIRS, place=3, has_queries=True, lacks_negatives=True)
