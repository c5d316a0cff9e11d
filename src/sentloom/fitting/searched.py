"""What held-out queries search: all distinct candidates of their input, or as many as verification has time for.

A pool of held-out answers alone is too easy: the same model looks much better there than in the corpus it is used on.
If the corpus is too large for the budget, queries search all validation and test candidates and a seeded sample of the
others, the same for every model.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np

from sentloom.corpus.opening import open_data
from sentloom.data.columns import text_column
from sentloom.data.dataset import Dataset
from sentloom.data.shapes import COLUMNS, Shape, text_columns
from sentloom.evaluation.suites.user_tasks import Corpus
from sentloom.fitting.request import Budget, Request
from sentloom.fitting.split import Split

SEED = 0  # of the sample
VERIFY_SHARE = 0.15  # of a time budget, for the base and the winner on the test rows
SELECT_SHARE = 0.2  # of a time budget, for all runs on the validation rows
EXPECTED_RUNS = 10  # that are scored on the validation rows, with merged ones
MOST_CANDIDATES = 50_000  # with a budget in steps, which depends on no clock
MOST_LABELLED = 20_000  # training rows among which labelled texts look for neighbours,
FEWEST_LABELLED = 1_000  # and at least so many, whatever the budget
SEARCHING = (Shape.PAIRS, Shape.TRIPLETS, Shape.PARALLEL)  # shapes whose rows are queries and what they should find


@dataclass(frozen=True)
class Candidates:
    """How many candidates the validation and the test rows search at most, besides the held-out ones."""

    validation: int = MOST_CANDIDATES
    test: int = MOST_CANDIDATES


def affordable_candidates(each: float, budget: Budget) -> Candidates:
    """As many as the budget has time for if a text takes `each` seconds."""
    if budget.seconds is None:
        return Candidates()
    return Candidates(
        int(SELECT_SHARE * budget.seconds / (EXPECTED_RUNS * each)), int(VERIFY_SHARE * budget.seconds / (2 * each))
    )


def evenly_cut(counts: Sequence[int], most: int) -> int:
    """The largest number to which counts are cut so that their sum is at most `most`; 0 if there is none."""
    for left, count in zip(range(len(counts), 0, -1), sorted(counts), strict=True):
        if left * count > most:
            return max(0, most // left)
        most -= count
    return max(counts)


def read_corpus(request: Request) -> tuple[str, ...]:
    """The texts of the files that the user names to search among (`--corpus`), each once."""
    texts: dict[str, None] = {}
    for name in request.corpus:
        data = open_data(name)
        column = text_columns(data.shape)[1] if data.shape in SEARCHING else text_column(data, None)
        texts.update(dict.fromkeys(data.column(column).to_pylist()))
    return tuple(texts)


def candidate_texts(split: Split, more: Sequence[str]) -> list[str]:
    """All distinct candidates of an input, the held-out ones first."""
    parts = (split.validation, split.test, split.dropped, split.train)
    return list(dict.fromkeys([*chain(*map(_candidates, parts)), *more]))


def corpus_of(split: Split, more: Sequence[str], most: int) -> Corpus:
    """What the held-out rows of an input search besides their own candidates."""
    held_out = (split.validation, split.test, split.dropped)  # dropped rows share sentences with held-out ones
    if split.train.shape is Shape.PARALLEL:
        return Corpus((*held_out, _sampled_rows(split.train, most)))
    known = set(chain(*map(_candidates, held_out)))
    others = [text for text in dict.fromkeys([*_candidates(split.train), *more]) if text not in known]
    return Corpus(held_out, tuple(others[at] for at in _sample(len(others), most - len(known))))


def labelled_rows(split: Split, most: int) -> Corpus | None:
    """The training rows among which labelled texts look for neighbours; None for other shapes.

    If there is no time for all of them, every held-out label that training rows have is kept: one row each, then a
    sample of the others.
    """
    if split.train.shape is not Shape.CLASSIFICATION:
        return None
    most = min(MOST_LABELLED, max(FEWEST_LABELLED, most))
    labels = split.train.column("label").to_pylist()
    asked = {label for part in (split.validation, split.test) for label in part.column("label").to_pylist()}
    drawn = np.random.default_rng(SEED).permutation(len(labels)).tolist()
    first = {labels[at]: at for at in reversed(drawn) if labels[at] in asked}  # of each label, the first drawn
    kept = [*dict.fromkeys([*sorted(first.values()), *drawn])][:most]
    keep = np.zeros(len(labels), bool)
    keep[kept] = True
    return Corpus((split.train.select(keep),))


def _candidates(data: Dataset) -> list[str]:
    """The texts that queries may find: the second column, and hard negatives."""
    found: list[str] = data.column(COLUMNS[data.shape][1]).to_pylist()
    return [*found, *chain(*data.column("negatives").to_pylist())] if data.shape is Shape.TRIPLETS else found


def _sampled_rows(data: Dataset, most: int) -> Dataset:
    keep = np.zeros(len(data), bool)
    keep[_sample(len(data), most)] = True
    return data.select(keep)


def _sample(size: int, most: int) -> list[int]:
    """At most so many numbers below `size`, in order."""
    if size <= most:
        return list(range(size))
    return sorted(np.random.default_rng(SEED).permutation(size)[: max(0, most)].tolist())
