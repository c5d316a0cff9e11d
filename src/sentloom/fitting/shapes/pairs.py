"""Pairs of a text and what it should find, such as questions and answers, or titles and the texts under them."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sentloom.data.columns import only_column
from sentloom.data.dataset import Dataset
from sentloom.data.sentences import texts_of
from sentloom.data.shapes import TITLE, Shape, squash
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
        return [rows, *([texts_of(only_column(rows, "positive"))] if is_titled(rows) else [])]

    def main(self, data: "TrainingSet") -> Training:
        """Each with the others of the batch as negatives."""
        return Training("pairs", "each text learns to find its partner among those of the batch", SETTINGS)

    def matching(self, part: "HeldOut", split: "Split | None", most: int) -> Matching | None:
        """A query matches its answers."""
        return match_partners(part, split)


def is_titled(data: Dataset) -> bool:
    """Whether pairs are titles and the texts under them, by the names of their columns."""
    return data.shape is Shape.PAIRS and squash(data.used.get("anchor", "")) == TITLE


PAIRS = AnsweredQueries(Shape.PAIRS, place=3, has_queries=True, lacks_negatives=True)
