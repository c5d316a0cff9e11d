"""Natural language inference: a premise, a hypothesis, and whether the one follows from the other."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sentloom.data.dataset import Dataset
from sentloom.data.hygiene.inspection import Inspection
from sentloom.data.nli import ENTAILMENT, pairs_from_nli, triplets_from_nli
from sentloom.data.shapes import Shape
from sentloom.errors import InputError
from sentloom.evaluation.task import Task
from sentloom.evaluation.user_tasks import Corpus
from sentloom.fitting.shapes.handler import Handler, Lack, Pairs, Training

if TYPE_CHECKING:
    from sentloom.fitting.training_sets import TrainingSet

FEWEST_TRIPLETS = 200  # with fewer, the test rows (a tenth) would show nothing
SETTINGS: dict[str, Any] = {"method": "contrastive", "learning_rate": 2e-5, "batch": 32}


@dataclass(frozen=True)
class Nli(Handler):
    """A premise with what it entails, and with what contradicts it."""

    def usable(self, data: Dataset, inspection: Inspection) -> Dataset:
        """The entailments, if few premises have both an entailment and a contradiction."""
        return pairs_from_nli(data) if ENTAILMENT in inspection.labels and _has_few_triplets(data) else data

    def lack(self, inspection: Inspection) -> Lack | None:
        """Without an entailment nothing belongs together."""
        if ENTAILMENT in inspection.labels:
            return None
        return Lack(f"the labels are {', '.join(inspection.labels)}", f"some rows with the label {ENTAILMENT}")

    def language_examples(self, rows: Dataset) -> Dataset | None:
        """Triplets."""
        return triplets_from_nli(rows)

    def main(self, data: "TrainingSet") -> Training:
        """As triplets."""
        why = "each premise learns to find what it entails, with its contradiction as the hardest negative"
        return Training("nli", why, SETTINGS)

    def others(self, data: "TrainingSet") -> Sequence[Training]:
        """By classes."""
        why = "three classes over both vectors and their difference, as in SBERT"
        return [Training("nli classification", why, {"method": "nli-classification"})]

    def tasks(self, name: str, data: Dataset, corpus: Corpus | None) -> tuple[Task, ...]:
        """Whether what follows is closer than what contradicts."""
        return super().tasks(name, triplets_from_nli(data), corpus)

    def related(self, data: Dataset) -> Pairs:
        """The entailments."""
        return super().related(pairs_from_nli(data))


def _has_few_triplets(data: Dataset) -> bool:
    try:
        return len(triplets_from_nli(data)) < FEWEST_TRIPLETS
    except InputError:  # none at all, for example if every premise appears in one row only
        return True


NLI = Nli(Shape.NLI, place=6, has_queries=True, divided_by_first=True)
