"""Cross-validation: with few clusters, routes are chosen on folds of the training rows instead of on validation rows.

Every run trains once on all training rows, which gives the model that may win, and once more without each fold, with
the same settings. Its score is that of these models, each on the fold that it has not seen. A cluster is never divided.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from sentloom.data.dataset import Dataset
from sentloom.data.shapes import Shape
from sentloom.data.writers import write
from sentloom.encoder import Encoder
from sentloom.errors import InputError
from sentloom.evaluation.bench import Memory, main_scores
from sentloom.evaluation.jackknife import MEANS
from sentloom.evaluation.task import Score, Task
from sentloom.fitting.clusters import with_clusters
from sentloom.fitting.inputs import FitInput
from sentloom.fitting.request import Budget
from sentloom.fitting.sentence_keys import Integers, apart_from, connecting_keys
from sentloom.fitting.split import Split
from sentloom.fitting.tasks import HeldOut, held_out_part
from sentloom.fitting.training_sets import training_file, training_parts
from sentloom.pipeline.plan import Plan

FOLDS = 4


@dataclass(frozen=True)
class Fold:
    """The rows of each input without one fold (train) and this fold (validation), and the files of the former."""

    splits: tuple[Split, ...]
    files: Mapping[str, str]  # by the file of all training rows
    parts: tuple[HeldOut, ...] = ()  # what the fold asks

    @property
    def tasks(self) -> list[Task]:
        """One for each part."""
        return [task for part in self.parts for task in part.tasks]

    def searching(self, inputs: Sequence[FitInput], more: Sequence[str], most: int) -> "Fold":
        """The same fold, with tasks that search at most so many candidates. Raw text does not choose among routes."""
        parts = list[HeldOut]()
        for given, split in zip(inputs, self.splits, strict=True):
            if given.data.shape is not Shape.TEXTS and len(split.validation):
                with suppress(InputError):  # so few rows may have a single label; the other folds have more
                    parts.append(held_out_part(given.name, split, "validation", more, most))
        return replace(self, parts=tuple(parts))

    def without(self, plan: Plan, number: int) -> Plan:
        """The plan that trains without this fold."""
        stages = tuple(one.located(lambda name: self.files.get(name, name)) for one in plan.stages)
        return replace(plan, name=f"{plan.name}, fold {number}", stages=stages)


def make_folds(splits: Sequence[Split], form: Callable[[Dataset], Dataset], folder: Path) -> tuple[Fold, ...]:
    """Divide the training rows of all inputs into folds, and write what each fold leaves for training."""
    numbers = fold_numbers(splits)
    return tuple(_fold(number, splits, numbers, form, folder) for number in range(FOLDS))


def fold_numbers(splits: Sequence[Split]) -> list[Integers]:
    """The fold of each training row of each input: clusters are dealt out in the order of their draws."""
    _, place = np.unique(np.concatenate([split.draws for split in splits]), return_inverse=True)
    return np.split(place % FOLDS, np.cumsum([len(split.train) for split in splits])[:-1])


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
    found, files, keys = list[Split](), dict[str, str](), connecting_keys(asked)
    for at, (split, own, held_out) in enumerate(zip(splits, numbers, asked, strict=True), 1):
        rest = apart_from(split.train.select(own != number), keys)
        found.append(Split(rest, held_out, split.test, split.dropped))
        for left in training_parts(form(rest)):
            path = training_file(folder / f"fold-{number + 1}", at, left)
            write(left, path)
            files[str(training_file(folder, at, left).resolve())] = str(path.resolve())
    return Fold(tuple(found), files)


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
    found: dict[str, list[Score]] = {}
    for encoder, fold in zip(encoders, folds, strict=True):
        for task, score in zip(fold.tasks, main_scores(encoder, fold.tasks, memory), strict=True):
            found.setdefault(task.name, []).append(score)
    return [pooled(some) for some in found.values()]


def pooled(scores: Sequence[Score]) -> Score:
    """The score of several folds: a mean over all items, or the mean of a correlation within folds, by their items."""
    items, first = np.concatenate([one.items for one in scores]), scores[0]
    clusters = np.concatenate([one.clusters for one in scores if one.clusters is not None])
    if first.metric in MEANS:
        return Score(first.metric, items, clusters=clusters)
    groups = np.repeat(np.arange(len(scores)), [len(one.items) for one in scores])
    return Score(first.metric, items, groups, weighted=True, clusters=clusters)
