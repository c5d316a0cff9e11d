"""Everything before the first route: inputs, split, training sets and tasks, in this order."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain

from sentloom.data.dataset import Dataset
from sentloom.encoder import Encoder
from sentloom.encoder.lengths import Cut
from sentloom.evaluation.task import Task
from sentloom.fitting.cross_validation import Fold, make_folds, refuse_no_tasks
from sentloom.fitting.evaluation_sets import read_against, read_general, shared_sentences
from sentloom.fitting.given_routes import GivenRoutes
from sentloom.fitting.inputs import FitInput, is_graded, read_inputs, sources_of
from sentloom.fitting.languages import language_parts, without_languages
from sentloom.fitting.request import Log, Request
from sentloom.fitting.result import RowCounts, chosen_on
from sentloom.fitting.searched import SEARCHING, Candidates, candidate_texts, read_corpus
from sentloom.fitting.split import Split, fewest_clusters, split_inputs
from sentloom.fitting.tasks import HeldOut, held_out_tasks
from sentloom.fitting.training_sets import (
    TrainingSet,
    cut_line,
    training_file,
    training_form,
    training_rows,
    write_held_out,
    write_search_corpus,
    write_training_sets,
)

NOTHING_RELEVANT = "rows with a relevance of 0, which nothing is learned from"


@dataclass(frozen=True)
class Prepared:
    """The data of a fit."""

    inputs: tuple[FitInput, ...]
    splits: tuple[Split, ...]  # of each input
    training_rows: tuple[Dataset, ...]  # of each input, in the form that methods take
    training_sets: tuple[TrainingSet, ...]  # one per shape
    validation: tuple[HeldOut, ...]
    test: tuple[HeldOut, ...]
    against: tuple[Task, ...]  # evaluation sets that decide instead of the test rows
    general: Task  # what general ability is watched on
    recipe: GivenRoutes | None = None  # what runs, if the user gave a recipe instead of data
    more: tuple[str, ...] = ()  # texts to search besides those of the inputs (`--corpus`)
    cluster_notes: tuple[str, ...] = ()
    folds: tuple[Fold, ...] = ()  # to choose on if there are too few rows for validation rows
    cuts: tuple[Cut, ...] = ()  # of each input: how many texts are cut in training
    row_counts: tuple[RowCounts, ...] = ()  # of each input: what became of its rows
    searched: Candidates = field(default_factory=Candidates)  # how many candidates the tasks search at most

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

    @property
    def choosing(self) -> list[Task]:
        """The tasks that choose among the runs: those of the validation rows, or of all folds."""
        return self.deciding(self.validation) or [task for fold in self.folds for task in fold.tasks]

    @property
    def proving(self) -> list[Task]:
        """The tasks that the verdict rests on: the sets that the user named, otherwise the test rows."""
        return list(self.against) or self.deciding(self.test)

    @property
    def candidates(self) -> list[str]:
        """All texts that held-out queries may search."""
        searched = [split for split in self.splits if split.train.shape in SEARCHING or is_graded(split.train)]
        return list(dict.fromkeys(chain(*(candidate_texts(split, self.more) for split in searched))))

    @property
    def texts(self) -> list[str]:
        """What is encoded for every model: all candidates, or the held-out texts where nothing is searched."""
        held_out = (text for part in (*self.validation, *self.test) for _, _, text in part.data.sentences())
        return self.candidates or list(dict.fromkeys(held_out))

    def searching(self, candidates: Candidates) -> "Prepared":
        """The same data, with tasks that search at most so many candidates."""
        most = candidates.validation
        folds = tuple(fold.searching(self.inputs, self.more, most) for fold in self.folds)
        refuse_no_tasks(folds, ", ".join(given.name for given in self.inputs))
        validation = () if folds else held_out_tasks(self.inputs, self.splits, "validation", self.more, most)
        test = held_out_tasks(self.inputs, self.splits, "test", self.more, candidates.test)
        return replace(self, validation=validation, test=test, folds=folds, searched=candidates)


def prepare_inputs(request: Request, bases: Sequence[Encoder], log: Log, recipe: GivenRoutes | None = None) -> Prepared:
    """Read, split, write the training rows, and build the tasks."""
    inputs = read_inputs(recipe.sources if recipe else sources_of(request), request, log)
    more = read_corpus(request)
    against, general = read_against(request, more, log), read_general(request)
    for line in shared_sentences(inputs, [*against, general]):
        log(line)
    log("Looking for rows that belong together, and dividing the rows ...")
    splits, cluster_notes = split_inputs(request, inputs, against, log)
    rows = [training_rows(given, split, as_read=bool(recipe)) for given, split in zip(inputs, splits, strict=True)]
    row_counts = tuple(map(count_rows, inputs, splits, rows))
    for given, counts in zip(inputs, row_counts, strict=True):
        log(f"{given.name}: {counts}")
    spoken = zip(inputs, rows, strict=True) if not recipe and len(splits[0].validation) else ()  # folds have no parts
    by_language = {number: language_parts(*one) for number, one in enumerate(spoken, 1)}
    splits = [replace(split, train=without_languages(split.train)) for split in splits]
    rows = list(map(without_languages, rows))
    training_sets, cuts = write_training_sets(inputs, rows, bases, request.folder / "data", by_language)
    if not recipe:  # whose stages have lengths of their own
        for given, cut in zip(inputs, cuts, strict=True):
            log(f"{given.name}: {cut_line(cut)}")
    for number, split in enumerate(splits, 1):
        write_held_out(number, split, request.folder / "data")
    recipe = recipe and recipe.reading([training_file(request.folder / "data", *one) for one in enumerate(rows, 1)])
    write_search_corpus(inputs, more, request.folder / "corpus.parquet")
    folds = () if len(splits[0].validation) else make_folds(splits, _form(recipe), request.folder / "data")
    if folds:
        few = f"Fewer than {fewest_clusters(request)} clusters are too few for validation rows"
        cluster_notes = (*cluster_notes, f"{few}, so runs are chosen by cross-validation, on {chosen_on(len(folds))}")
        log(cluster_notes[-1])
    parts = tuple(inputs), tuple(splits), tuple(rows), training_sets
    prepared = Prepared(*parts, (), (), against, general, recipe, more, cluster_notes, folds, cuts, row_counts)
    return prepared.searching(Candidates())


def count_rows(given: FitInput, split: Split, rows: Dataset) -> RowCounts:
    """What became of the rows of an input, of which `rows` train."""
    idle = len(split.train) - len(rows)
    left_out = {**given.lost, **split.left_out, **({NOTHING_RELEVANT: idle} if idle else {})}
    return RowCounts(given.read, len(rows), len(split.validation), len(split.test), left_out)


def _form(recipe: GivenRoutes | None) -> Callable[[Dataset], Dataset]:
    """What training rows become: the stages of a recipe read them as they are."""
    return (lambda rows: rows) if recipe else training_form
