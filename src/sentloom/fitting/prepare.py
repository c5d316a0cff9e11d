"""Everything before the first route: inputs, split, training sets and tasks, in this order."""

from collections.abc import Sequence
from dataclasses import dataclass

from sentloom.data.dataset import Dataset
from sentloom.encoder import Encoder
from sentloom.evaluation.task import Task
from sentloom.fitting.inputs import Input, read_against, read_general, read_inputs, shared_sentences, sources_of
from sentloom.fitting.recipe import FitRecipe
from sentloom.fitting.request import Log, Request
from sentloom.fitting.split import Split, split_inputs
from sentloom.fitting.tasks import HeldOut, held_out_tasks
from sentloom.fitting.training_sets import (
    LENGTH,
    TrainingSet,
    training_file,
    training_rows,
    write_search_corpus,
    write_training_sets,
)


@dataclass(frozen=True)
class Prepared:
    """The data of a fit."""

    inputs: tuple[Input, ...]
    splits: tuple[Split, ...]  # of each input
    training_rows: tuple[Dataset, ...]  # of each input, in the form that methods take
    training_sets: tuple[TrainingSet, ...]  # one per shape
    validation: tuple[HeldOut, ...]
    test: tuple[HeldOut, ...]
    against: tuple[Task, ...]  # evaluation sets that decide instead of the test rows
    general: Task  # what general ability is watched on
    recipe: FitRecipe | None = None  # what runs, if the user gave a recipe instead of data

    @property
    def labelled(self) -> bool:
        """Whether any held-out rows have labels: then they decide, and raw text does not."""
        return any(part.labelled for part in self.test)

    @property
    def label_free(self) -> bool:
        """Whether no labels decide, neither those of held-out rows nor those of sets that the user named."""
        return not (self.labelled or self.against)

    def deciding(self, parts: Sequence[HeldOut]) -> list[Task]:
        """The tasks that decide among those of `parts`."""
        return [task for part in parts if part.labelled or not self.labelled for task in part.tasks]


def prepare_inputs(request: Request, base: Encoder, log: Log, recipe: FitRecipe | None = None) -> Prepared:
    """Read, split, write the training rows, and build the tasks."""
    inputs = read_inputs(recipe.sources if recipe else sources_of(request), request, log)
    against, general = read_against(request, log), read_general(request)
    for line in shared_sentences(inputs, [*against, general]):
        log(line)
    splits = split_inputs(request, inputs, against, log)
    rows = [training_rows(given, split, as_read=bool(recipe)) for given, split in zip(inputs, splits, strict=True)]
    length = min(LENGTH, base.tokens.max_length)
    training_sets = write_training_sets(inputs, rows, length, request.folder / "data")
    recipe = recipe and recipe.reading([training_file(request.folder / "data", *one) for one in enumerate(rows, 1)])
    write_search_corpus(inputs, request.folder / "corpus.parquet")
    validation = held_out_tasks(inputs, [split.validation for split in splits])
    test = held_out_tasks(inputs, [split.test for split in splits])
    return Prepared(
        tuple(inputs), tuple(splits), tuple(rows), training_sets, validation, test, against, general, recipe
    )
