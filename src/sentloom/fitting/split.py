"""Held-out rows: chosen by a hash of their text, so that growing data never move a training row among them.

Every row draws a number by the hash of one of its texts; the lowest tenth proves, the next one chooses, the others
train. No sentence stands on two sides, in whatever form of case, spacing and punctuation: rows that share one are
dropped from the side that matters less, training first.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sentloom.data.columns import among, flat, walk
from sentloom.data.dataset import Dataset
from sentloom.data.shapes import Shape, text_columns
from sentloom.errors import InputError
from sentloom.hygiene.leaks import forms

SHARE = 0.1  # of the rows, for each of the two held-out sides
FLOOR, CAP = 25, 1_000  # rows of each, where the groups of rows permit
MOST_DROPPED = 0.25  # of the rows; where sharing drops more, less is held out
FEWER = 0.8  # rows are grouped by their second text if it has fewer distinct ones than so many times the first
LEAST_ROWS = 10  # on each side
DROPPED, TRAIN, CHOOSE, PROVE = range(4)

Keys = npt.NDArray[np.uint64]
Sides = npt.NDArray[np.int8]


@dataclass(frozen=True)
class Split:
    """The three sides of a data set, and how many rows are on none."""

    train: Dataset
    choose: Dataset
    prove: Dataset
    dropped: int


@dataclass(frozen=True)
class Sentences:
    """The sentences of a data set by hash, and the number that each row draws."""

    keys: Keys  # (sentences,), the same for sentences that differ in case, spacing and punctuation alone
    owners: npt.NDArray[np.int64]  # (sentences,): the row of each
    draws: Keys  # (rows,)

    def of(self, rows: npt.NDArray[np.bool_]) -> Keys:
        """The distinct sentences of some rows, sorted."""
        return np.unique(self.keys[rows[self.owners]])

    def touching(self, keys: Keys) -> npt.NDArray[np.bool_]:
        """(rows,): whether one of a row's sentences is among some, which are sorted."""
        found = np.zeros(len(self.draws), bool)
        found[self.owners[among(self.keys, keys)]] = True
        return found


def split(data: Dataset, others_held_out: Sequence[Dataset] = ()) -> Split:
    """The sides of one data set; no sentence of the others is trained on or chosen by."""
    return split_all([data], others_held_out)[0]


def split_all(datas: Sequence[Dataset], others_held_out: Sequence[Dataset] = ()) -> list[Split]:
    """The sides of several data sets: what one of them holds out, none of them trains on."""
    found = sides([sentences(data) for data in datas], distinct_keys(others_held_out))
    return [_split(data, side) for data, side in zip(datas, found, strict=True)]


def distinct_keys(datas: Sequence[Dataset]) -> Keys:
    """The distinct sentences of data sets, as sorted hashes."""
    return _union([sentences(data).keys for data in datas])


def sentences(data: Dataset) -> Sentences:
    """Every sentence of all text columns hashed, in one pass."""
    names = text_columns(data.shape)
    keys: dict[str, list[Keys]] = {name: [np.empty(0, np.uint64)] for name in names}
    owners: dict[str, list[npt.NDArray[np.int64]]] = {name: [np.empty(0, np.int64)] for name in names}
    for start, batch in walk(data, names):
        for name in names:
            texts, owner = flat(batch.column(name))
            keys[name].append(forms(texts)[-1])
            owners[name].append(start + owner)
    columns = {name: np.concatenate(parts) for name, parts in keys.items()}
    rows = np.concatenate([part for name in names for part in owners[name]])
    return Sentences(np.concatenate([*columns.values()]), rows, columns[grouping(data.shape, columns)])


def grouping(shape: Shape, keys: dict[str, Keys]) -> str:
    """The column whose text decides over a row: the first, or the second where its texts are the fewer.

    A few hundred answers to thousands of questions would else stand on every side, and all training rows be dropped.
    """
    first, *others = [name for name in keys if name != "negatives"]
    if others and shape is not Shape.NLI and _distinct(keys[others[0]]) < FEWER * _distinct(keys[first]):
        return others[0]
    return first


def sides(datas: Sequence[Sentences], foreign: Keys) -> list[Sides]:
    """For each data set the side of each row; `foreign` are sorted sentences that others hold out."""
    found = [_own_sides(data) for data in datas]
    proving = _union([foreign, *(data.of(side == PROVE) for data, side in zip(datas, found, strict=True))])
    for data, side in zip(datas, found, strict=True):
        side[(side == CHOOSE) & data.touching(proving)] = DROPPED
    choosing = [data.of(side == CHOOSE) for data, side in zip(datas, found, strict=True)]
    held_out = _union([proving, *choosing])
    for data, side in zip(datas, found, strict=True):
        side[(side == TRAIN) & data.touching(held_out)] = DROPPED
    return found


def _own_sides(data: Sentences) -> Sides:
    """By the draw alone. Less is held out as long as sharing would drop too many rows, down to the floor."""
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
    side[draws < _boundary(ordered, part, 2)] = CHOOSE
    side[draws < _boundary(ordered, part, 1)] = PROVE
    return side


def _boundary(ordered: Keys, part: float, count: int) -> np.uint64:
    """The number below which rows belong to the first `count` held-out sides.

    It only ever falls when rows are added: at the floor and the cap since more rows draw less, between them since the
    share is a fixed number.
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
        held_out = f"{counts[CHOOSE] + counts[PROVE]:,} held out"
        found = (
            f"{counts[TRAIN]:,} rows to train on and {held_out}, {counts[DROPPED]:,} that share sentences with those"
        )
        wanted = f"at least {LEAST_ROWS} rows for each of training, choosing and proving"
        raise InputError(data.files[0], found, wanted, "give more rows, or rows with fewer sentences in common")
    train, choose, prove = (data.select(side == one) for one in (TRAIN, CHOOSE, PROVE))
    return Split(train, choose, prove, int(counts[DROPPED]))


def _distinct(keys: Keys) -> int:
    return len(np.unique(keys))


def _union(parts: Sequence[Keys]) -> Keys:
    return np.unique(np.concatenate([np.empty(0, np.uint64), *parts]))
