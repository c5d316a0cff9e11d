"""Step 2, split: training, validation and test rows, by a hash of their text, so that added rows never move others.

Every row draws a number: the hash of one of its texts. The lowest tenth is for testing, the next for validation, the
rest for training. No sentence is on two sides, whatever its case, spacing and punctuation: rows that share one are
dropped from the side that matters less, training first.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sentloom.data.dataset import Dataset
from sentloom.errors import InputError
from sentloom.evaluation.task import Task
from sentloom.fitting.inputs import Input
from sentloom.fitting.request import Log, Request
from sentloom.fitting.sentence_keys import Keys, Sentences, sentences, union
from sentloom.hygiene.leaks import without_leaks
from sentloom.pipeline.evaluation_sets import sentences_of

SHARE = 0.1  # of the rows, for validation and for test
FLOOR, CAP = 25, 1_000  # rows of each, as far as whole groups of rows allow it
MOST_DROPPED = 0.25  # of the rows; if shared sentences drop more, less is held out
LEAST_ROWS = 10  # on each side
DROPPED, TRAIN, VALIDATION, TEST = range(4)

Sides = npt.NDArray[np.int8]


@dataclass(frozen=True)
class Split:
    """The three sides of a data set, and how many rows are on none."""

    train: Dataset
    validation: Dataset
    test: Dataset
    dropped: int


def split_inputs(request: Request, inputs: Sequence[Input], against: Sequence[Task], log: Log) -> list[Split]:
    """Split every input, after leaving out rows with sentences of the sets that decide (`--against`)."""
    scored = [sentences_of(task) for task in against]
    rows = []
    for one in inputs:
        rows.append(without_leaks(one.data, scored))
        if leaked := len(one.data) - len(rows[-1]):
            log(f"{one.name}: {leaked:,} rows with sentences of {', '.join(request.against)} are left out")
    return split_all(rows)


def split_all(datas: Sequence[Dataset]) -> list[Split]:
    """Split several data sets: what one of them holds out, none of them trains on."""
    found = sides([sentences(data) for data in datas])
    return [_split(data, side) for data, side in zip(datas, found, strict=True)]


def sides(datas: Sequence[Sentences]) -> list[Sides]:
    """For each data set the side of each row."""
    found = [_own_sides(data) for data in datas]
    test = union([data.of(side == TEST) for data, side in zip(datas, found, strict=True)])
    for data, side in zip(datas, found, strict=True):
        side[(side == VALIDATION) & data.touching(test)] = DROPPED
    validation = [data.of(side == VALIDATION) for data, side in zip(datas, found, strict=True)]
    held_out = union([test, *validation])
    for data, side in zip(datas, found, strict=True):
        side[(side == TRAIN) & data.touching(held_out)] = DROPPED
    return found


def _own_sides(data: Sentences) -> Sides:
    """By the draw alone. While shared sentences would drop too many rows, hold out half as much, down to the floor."""
    part = 1.0
    while True:
        side = _by_draw(data.draws, part)
        at_floor = part * min(SHARE * len(side), CAP) <= FLOOR
        if at_floor or _would_drop(data, side) <= MOST_DROPPED * len(side):
            return side
        part /= 2


def _by_draw(draws: Keys, part: float) -> Sides:
    ordered = np.sort(draws)
    side = np.full(len(draws), TRAIN, np.int8)
    side[draws < _boundary(ordered, part, 2)] = VALIDATION
    side[draws < _boundary(ordered, part, 1)] = TEST
    return side


def _boundary(ordered: Keys, part: float, count: int) -> np.uint64:
    """The number below which rows belong to the first `count` held-out sides.

    Adding rows can only lower it: at the floor and the cap because more rows draw lower numbers, and between them
    because the share is fixed.
    """
    rows, floor, cap = len(ordered), count * FLOOR, int(part * count * CAP)
    share = int(part * count * SHARE * 2**64)
    most = int(ordered[cap]) if cap < rows else 2**64 - 1
    least = int(ordered[min(floor, rows) - 1]) + 1 if rows else 0
    return np.uint64(min(max(least, min(share, most)), 2**64 - 1))


def _would_drop(data: Sentences, side: Sides) -> int:
    return int(((side == TRAIN) & data.touching(data.of(side != TRAIN))).sum())


def _split(data: Dataset, side: Sides) -> Split:
    counts = np.bincount(side, minlength=4)
    if counts[TRAIN:].min() < LEAST_ROWS:
        problem = (
            f"{counts[TRAIN]:,} training rows and {counts[VALIDATION] + counts[TEST]:,} held-out rows are left after "
            f"dropping {counts[DROPPED]:,} that share sentences"
        )
        expected = f"at least {LEAST_ROWS} rows each for training, validation and test"
        raise InputError(data.files[0], problem, expected, "give more rows, or rows with fewer sentences in common")
    train, validation, test = (data.select(side == one) for one in (TRAIN, VALIDATION, TEST))
    return Split(train, validation, test, int(counts[DROPPED]))
