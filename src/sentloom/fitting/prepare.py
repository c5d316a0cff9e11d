"""The data of a fit: its inputs are read, their rows divided and written, and the tasks of held-out rows built.

With few clusters, routes are chosen on folds of the training rows instead of on validation rows. Then every run trains
once on all training rows, which gives the model that may win, and once more without each fold, with the same settings.
Its score is that of these models, each on the fold that it has not seen. A cluster is never divided.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path

import numpy as np
import numpy.typing as npt

from sentloom.data.dataset import Dataset
from sentloom.data.writers import write
from sentloom.encoder import Encoder
from sentloom.encoder.lengths import Cut
from sentloom.engine.plan import Plan
from sentloom.errors import InputError
from sentloom.evaluation.bench import Memory, main_scores
from sentloom.evaluation.jackknife import MEANS
from sentloom.evaluation.task import Score, Task
from sentloom.fitting.clusters import Integers, apart_from, connecting_keys, with_clusters
from sentloom.fitting.evaluation_sets import read_against, read_general, shared_sentences
from sentloom.fitting.inputs import FitInput, read_inputs, searched_besides, sources_of
from sentloom.fitting.request import Budget, Log, Request
from sentloom.fitting.result import RowCounts, chosen_on
from sentloom.fitting.routes import GivenRoutes
from sentloom.fitting.shapes import handler
from sentloom.fitting.shapes.searching import all_candidates
from sentloom.fitting.split import Split, fewest_clusters, split_inputs
from sentloom.fitting.tasks import (
    Candidates,
    HeldOut,
    held_out_part,
    held_out_tasks,
    read_corpus,
)
from sentloom.fitting.training_sets import (
    TrainingSet,
    cut_line,
    language_parts,
    training_file,
    training_form,
    training_rows,
    without_languages,
    write_held_out,
    write_search_corpus,
    write_training_sets,
)

FOLDS = 4
NOTHING_RELEVANT = "rows with a relevance of 0, which nothing is learned from"


@dataclass(frozen=True)
class Fold:
    """The rows of each input without one fold (train) and this fold (validation), and the files of the former."""

    splits: tuple[Split, ...]
    files: Mapping[str, str]  # by the file of all training rows
    parts: tuple[HeldOut, ...] = ()  # what the fold asks

    @property
    def tasks(self) -> list[Task]:
        """The tasks of all parts."""
        return [task for part in self.parts for task in part.tasks]

    def searching(self, inputs: Sequence[FitInput], more: Sequence[str], most: int) -> "Fold":
        """The same fold, with tasks that search at most `most` candidates. Raw text does not choose among routes."""
        parts = list[HeldOut]()
        best = max(handler(fit_input.data).trust for fit_input in inputs)
        for fit_input, split in zip(inputs, self.splits, strict=True):
            if handler(fit_input.data).labelled and handler(fit_input.data).trust == best and len(split.validation):
                with suppress(InputError):  # so few rows may have a single label; the other folds have more
                    parts.append(held_out_part(fit_input.name, split, "validation", more, most))
        return replace(self, parts=tuple(parts))

    def without(self, plan: Plan, number: int) -> Plan:
        """The plan that trains without this fold."""
        stages = tuple(stage.located(lambda name: self.files.get(name, name)) for stage in plan.stages)
        return replace(plan, name=f"{plan.name}, fold {number}", stages=stages)


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
    agrees: bool = False  # whether agreement with teachers chooses and decides, because no labels do (`teachers`)
    watched: tuple[Task, ...] = ()  # what then only informs: the label-free panel, and all ranks of the teachers

    @property
    def labelled(self) -> bool:
        """Whether any held-out rows, or those of folds, have labels: then they decide, and raw text does not."""
        return any(part.labelled for part in self.test or chain(*(fold.parts for fold in self.folds)))

    @property
    def has_test(self) -> bool:
        """Whether rows are held out for the verdict; with few rows per label none are."""
        return any(len(split.test) for split in self.splits)

    @property
    def mined(self) -> bool:
        """Whether the structure of documents decides: titles, headings and links, and nothing that people wrote."""
        return not self.against and any(handler(part.data).by_structure for part in self.test)

    @property
    def blind(self) -> bool:
        """Whether nothing says which of two models is better: neither labels nor teachers."""
        return self.label_free and not self.agrees

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
    def test_texts(self) -> list[str]:
        """The different texts of the test rows."""
        return list(dict.fromkeys(text for part in self.test for _, _, text in part.data.sentences()))

    @property
    def candidates(self) -> list[str]:
        """All texts that held-out queries may search."""
        own = [(handler(split.train), split) for split in self.splits]
        searched = (all_candidates(shape, split, self.more) for shape, split in own if shape.searches)
        return list(dict.fromkeys(chain(*searched)))

    @property
    def texts(self) -> list[str]:
        """What is encoded for every model: all candidates, or the held-out texts where nothing is searched."""
        held_out = [(split.validation, split.test) if self.has_test else (split.train,) for split in self.splits]
        sides = chain(*held_out)
        return self.candidates or list(dict.fromkeys(text for side in sides for _, _, text in side.sentences()))

    def searching(self, candidates: Candidates) -> "Prepared":
        """The same data, with tasks that search at most this number of candidates."""
        most = candidates.validation
        folds = tuple(fold.searching(self.inputs, self.more, most) for fold in self.folds)
        refuse_no_tasks(folds, ", ".join(fit_input.name for fit_input in self.inputs))
        validation = () if folds else held_out_tasks(self.inputs, self.splits, "validation", self.more, most)
        test = held_out_tasks(self.inputs, self.splits, "test", self.more, candidates.test) if self.has_test else ()
        again = replace(self, validation=validation, test=test, folds=folds, searched=candidates)
        return replace(again, agrees=False, watched=())


def prepare_inputs(
    request: Request,
    bases: Sequence[Encoder],
    log: Log,
    recipe: GivenRoutes | None = None,
    inputs: Sequence[FitInput] | None = None,
    affordable: Callable[[Sequence[str]], Candidates] = lambda texts: Candidates(),
) -> Prepared:
    """Divide the rows of the inputs, which are read unless they have been, write those that train, and build the tasks.

    `affordable` says how many of some texts there is time to search.
    """
    inputs = inputs or read_inputs(recipe.sources if recipe else sources_of(request), request, log)
    corpus = read_corpus(request)
    more = tuple(dict.fromkeys((*corpus, *searched_besides(inputs))))
    against, general = read_against(request, corpus, log), read_general(request)
    for line in shared_sentences(inputs, [*against, general]):
        log(line)
    log("Looking for rows that belong together, and dividing the rows ...")
    splits, cluster_notes = split_inputs(request, inputs, against, log)
    rows = [training_rows(*both, as_read=bool(recipe)) for both in zip(inputs, splits, strict=True)]
    row_counts = tuple(map(count_rows, inputs, splits, rows))
    for fit_input, counts in zip(inputs, row_counts, strict=True):
        log(f"{fit_input.name}: {counts}")
    spoken = zip(inputs, rows, strict=True) if not recipe and len(splits[0].validation) else ()  # folds have no parts
    by_language = {number: language_parts(*rows_of_input) for number, rows_of_input in enumerate(spoken, 1)}
    splits = [replace(split, train=without_languages(split.train)) for split in splits]
    rows = list(map(without_languages, rows))
    training_sets, cuts = write_training_sets(inputs, rows, bases, request.folder / "data", by_language)
    if not recipe:  # whose stages have lengths of their own
        for fit_input, cut in zip(inputs, cuts, strict=True):
            log(f"{fit_input.name}: {cut_line(cut)}")
    for number, split in enumerate(splits, 1):
        write_held_out(number, split, request.folder / "data")
    paths = [training_file(request.folder / "data", number, data) for number, data in enumerate(rows, 1)]
    recipe = recipe and recipe.reading(paths)
    write_search_corpus(inputs, corpus, request.folder / "corpus.parquet")
    folds = () if len(splits[0].validation) else make_folds(splits, _form(recipe), request.folder / "data")
    if folds and len(splits[0].test):
        few = f"Fewer than {fewest_clusters(request)} clusters are too few for validation rows"
        cluster_notes = (*cluster_notes, f"{few}, so runs are chosen by cross-validation, on {chosen_on(len(folds))}")
        log(cluster_notes[-1])
    parts = tuple(inputs), tuple(splits), tuple(rows), training_sets
    prepared = Prepared(*parts, (), (), against, general, recipe, more, cluster_notes, folds, cuts, row_counts)
    return prepared.searching(affordable(prepared.texts))


def count_rows(fit_input: FitInput, split: Split, rows: Dataset) -> RowCounts:
    """What became of the rows of an input, of which `rows` train."""
    idle = len(split.train) - len(rows)
    left_out = {**fit_input.lost, **split.left_out, **({NOTHING_RELEVANT: idle} if idle else {})}
    return RowCounts(fit_input.read, len(rows), len(split.validation), len(split.test), left_out)


def _form(recipe: GivenRoutes | None) -> Callable[[Dataset], Dataset]:
    """What training rows become: the stages of a recipe read them as they are."""
    return (lambda rows: rows) if recipe else training_form


def make_folds(splits: Sequence[Split], form: Callable[[Dataset], Dataset], folder: Path) -> tuple[Fold, ...]:
    """Divide the training rows of all inputs into folds, and write what each fold leaves for training."""
    numbers = fold_numbers(splits)
    return tuple(_fold(number, splits, numbers, form, folder) for number in range(FOLDS))


def fold_numbers(splits: Sequence[Split]) -> list[Integers]:
    """The fold of each training row of each input: clusters are dealt out in the order of their draws, label by label.

    So the clusters of a label are in as many folds as there are.
    """
    draws, first, place = np.unique(
        np.concatenate([split.draws for split in splits]), return_index=True, return_inverse=True
    )
    labels = np.concatenate([_labels(split.train) for split in splits])[first]
    turns = np.empty(len(draws), np.int64)
    turns[np.lexsort((draws, labels))] = np.arange(len(draws)) % FOLDS
    return np.split(turns[place], np.cumsum([len(split.train) for split in splits])[:-1])


def _labels(rows: Dataset) -> npt.NDArray[np.str_]:
    """The label of each row, or nothing if it has none."""
    return np.array(rows["label"] if handler(rows).has_labels else [""] * len(rows), np.str_)


def _fold(
    number: int,
    splits: Sequence[Split],
    numbers: Sequence[Integers],
    form: Callable[[Dataset], Dataset],
    folder: Path,
) -> Fold:
    asked = [
        with_clusters(split.train.select(own == number), split.clusters[own == number])
        for split, own in zip(splits, numbers, strict=True)
    ]
    fold_splits, files, keys = list[Split](), dict[str, str](), connecting_keys(asked)
    for at, (split, own, held_out) in enumerate(zip(splits, numbers, asked, strict=True), 1):
        rest = apart_from(split.train.select(own != number), keys)
        fold_splits.append(Split(rest, held_out, split.test, split.dropped))
        trained = form(rest)
        for rows in handler(trained).training_parts(trained):
            path = training_file(folder / f"fold-{number + 1}", at, rows)
            write(rows, path)
            files[str(training_file(folder, at, rows).resolve())] = str(path.resolve())
    return Fold(tuple(fold_splits), files)


def refuse_no_tasks(folds: Sequence[Fold], name: str) -> None:
    """There must be something to choose by: a fold whose rows all have one label asks nothing."""
    if folds and not any(fold.parts for fold in folds):
        problem = "the training rows have too few different labels or scores to choose among routes"
        raise InputError(name, problem, "several of each", "give more rows, above all of the rarer kinds")


def per_training(budget: Budget, folds: Sequence[Fold]) -> Budget:
    """What is left of a budget if everything is trained once for each fold and once for all."""
    parts = len(folds) + 1
    return Budget(budget.seconds and budget.seconds / parts, budget.steps and max(1, budget.steps // parts))


def fold_scores(encoders: Sequence[Encoder], folds: Sequence[Fold], memory: Memory) -> list[Score]:
    """The main scores of each input over all folds; `encoders` has the model of each fold, or the base every time."""
    scores: dict[str, list[Score]] = {}
    for encoder, fold in zip(encoders, folds, strict=True):
        for task, fold_score in zip(fold.tasks, main_scores(encoder, fold.tasks, memory), strict=True):
            scores.setdefault(task.name, []).append(fold_score)
    return [pooled(task_scores) for task_scores in scores.values()]


def pooled(scores: Sequence[Score]) -> Score:
    """The score of several folds: a mean over all items, or the mean of a correlation within folds, by their items."""
    items, first = np.concatenate([score.items for score in scores]), scores[0]
    clusters = np.concatenate([score.clusters for score in scores if score.clusters is not None])
    if first.metric in MEANS:
        return Score(first.metric, items, clusters=clusters)
    groups = np.repeat(np.arange(len(scores)), [len(score.items) for score in scores])
    return Score(first.metric, items, groups, weighted=True, clusters=clusters)
