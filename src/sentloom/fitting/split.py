"""The split: training, validation and test rows, by a hash of their texts.

Rows that belong together form a cluster (`clusters`), and every cluster draws a number: the hash of one of its texts.
The lowest are for testing, a fifth of a small input and a tenth of a large one, the next tenth is for validation, and
the rest for training. So added rows move others only if they connect them. No sentence is on two sides, whatever its
case, spacing and punctuation: where the clusters had to be made smaller, rows that share one are dropped from the side
that matters less, training first. A hard negative drops no row: if it is a text of a held-out row, it is left out of
its training row alone. No cluster may be more than 5% of a held-out side, so some rows of a large one are left out
there. With few clusters there is no validation side, and routes are chosen by cross-validation (`prepare`). With few
rows per label nothing is held out at all: each of them teaches more than it could show.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from itertools import chain

import numpy as np
import numpy.typing as npt
import pyarrow.compute as pc

from sentloom.data.dataset import Dataset
from sentloom.data.hygiene.near_duplicates import mix
from sentloom.data.shapes import Shape
from sentloom.engine.evaluation_sets import sentences_of
from sentloom.errors import InputError
from sentloom.evaluation.task import Task
from sentloom.fitting.clusters import (
    MOST_SHARE,
    NEGATIVES,
    Clusters,
    InputRows,
    Integers,
    Keys,
    Sentences,
    apart_from,
    distinct_keys,
    find_clusters,
    rows_of,
    union,
    with_clusters,
    without_negatives,
)
from sentloom.fitting.inputs import Earlier, FitInput
from sentloom.fitting.request import Log, Request
from sentloom.fitting.shapes import handler_of

VALIDATION_SHARE = 0.1  # of the rows
TEST_SHARE, SMALL_TEST_SHARE = 0.1, 0.2  # of the rows; of few rows more are tested, or they would show large gains only
SMALL, LARGE = 1_000, 2_000  # rows: between the two, the share of test rows falls from the one to the other
FLOOR = 25  # clusters on each held-out side, if there are enough
TEST_PART, VALIDATION_PART = Fraction(5, 12), Fraction(1, 4)  # of the clusters of an input at most, to reach the floor
# Clusters of an input that has a validation side. With a long budget every run can be trained five times instead.
FEWEST_CLUSTERS, FEWEST_IF_LONG = 100, 500
LONG_SECONDS, LONG_STEPS = 600, 1_000
CAP = 1_000  # rows on each held-out side, at most
MOST_DROPPED = 0.25  # of the rows; if shared sentences drop more, less is held out
ENOUGH_LEFT = 0.65  # of the training rows that the smallest held-out sides would leave
LEAST_ROWS = 10  # on each side
FEW_ROWS = 60  # with labels, of which none are held out
FEW_SHOTS = 20  # rows of a label that occurs as often as half of the others: with as many or fewer, all of them train
DROPPED, TRAIN, VALIDATION, TEST, THINNED = range(5)  # the sides
SHARED = "rows that share a text with held-out rows"
LARGE_CLUSTERS = f"rows of clusters that would be more than {MOST_SHARE:.0%} of the test or validation rows"

Sides = npt.NDArray[np.int8]


@dataclass(frozen=True)
class Split:
    """The three sides of a data set, and the rows that are on none. Held-out rows have a column of clusters."""

    train: Dataset
    validation: Dataset  # empty if routes are chosen by cross-validation
    test: Dataset
    dropped: Dataset
    clusters: Integers = field(default_factory=lambda: np.empty(0, np.int64))  # of the training rows
    draws: Keys = field(default_factory=lambda: np.empty(0, np.uint64))  # of their clusters
    notes: tuple[str, ...] = ()
    left_out: Mapping[str, int] = field(default_factory=dict)  # reason -> rows on no side


def split_inputs(
    request: Request, inputs: Sequence[FitInput], against: Sequence[Task], log: Log
) -> tuple[list[Split], tuple[str, ...]]:
    """Split every input, after leaving out rows with sentences of the sets that decide (`--against`).

    Also return what is to be said about the clusters.
    """
    scored, why = distinct_keys([sentences_of(task) for task in against]), _scored_on(request)
    rows = [apart_from(fit_input.data, scored) if against else fit_input.data for fit_input in inputs]
    leaked = [len(fit_input.data) - len(left) for fit_input, left in zip(inputs, rows, strict=True)]
    for fit_input, count in zip(inputs, leaked, strict=True):
        if count:
            log(f"{fit_input.name}: {count:,} {why} are left out")
    hashed = [rows_of(source.name, data, source.groups) for source, data in zip(inputs, rows, strict=True)]
    clusters = find_clusters(hashed)
    earlier = [fit_input.earlier for fit_input in inputs]
    divide = partial(split_all, hashed, clusters, fewest_clusters(request), earlier)
    tested = any(own is not None and len(own.tested) for own in earlier)
    if all(has_few_shots(data) for data in rows) and not (against or request.recipe or tested):
        divide = partial(undivided, hashed, clusters)
    splits = [
        replace(split, left_out={**({why: count} if count else {}), **split.left_out})
        for split, count in zip(divide(), leaked, strict=True)
    ]
    notes = (*clusters.notes, *chain(*(split.notes for split in splits)))
    for line in notes:
        log(line)
    return splits, notes


def _scored_on(request: Request) -> str:
    """Why rows are left out that have sentences of the sets that decide."""
    return f"rows with sentences of {', '.join(map(request.label, request.against))}"


def fewest_clusters(request: Request) -> int:
    """The clusters of an input that are enough for validation rows. The test rows do not depend on it."""
    if request.recipe:
        return FEWEST_CLUSTERS
    budget = request.parsed_budget
    is_long = (budget.seconds or 0) >= LONG_SECONDS or (budget.steps or 0) >= LONG_STEPS
    return FEWEST_IF_LONG if is_long else FEWEST_CLUSTERS


def split_all(
    inputs: Sequence[InputRows],
    clusters: Clusters,
    fewest: int = FEWEST_CLUSTERS,
    earlier: Sequence[Earlier | None] = (),
) -> list[Split]:
    """Split several inputs: what one of them holds out, none trains on. Validation rows need `fewest` clusters.

    Rows of an `earlier` fit stay on their side.
    """
    datas = [rows.sentences for rows in inputs]
    draws, labelled = cluster_draws(datas, clusters.numbers), [handler_of(rows.data.shape).labelled for rows in inputs]
    needed = (TRAIN, TEST) if _is_cross_validated(draws, labelled, fewest) else (TRAIN, VALIDATION, TEST)
    all_sides = sides(datas, clusters.numbers, with_validation=VALIDATION in needed)
    if any(earlier):
        known = zip(datas, all_sides, clusters.numbers, earlier, strict=True)
        all_sides = [own if there is None else staying(data, own, at, there) for data, own, at, there in known]
    held_out = union([data.of(np.isin(side, (TEST, VALIDATION))) for data, side in zip(datas, all_sides, strict=True)])
    return [_split(*own, needed, held_out) for own in zip(inputs, all_sides, clusters.numbers, draws, strict=True)]


def staying(data: Sentences, sides: Sides, clusters: Integers, earlier: Earlier) -> Sides:
    """The sides of rows if those of an earlier fit stay on theirs, and their clusters with them; test rows come first.

    A training row that new rows connect with test rows is on no side.
    """
    keys, stayed = data.row_keys, sides.copy()
    trained, tested = np.isin(keys, earlier.trained), np.isin(keys, earlier.tested)
    stayed[np.isin(clusters, clusters[trained])] = TRAIN
    stayed[np.isin(clusters, clusters[tested])] = TEST
    stayed[trained & (stayed == TEST)] = DROPPED
    for held_out, others in ((TEST, (VALIDATION, TRAIN)), (VALIDATION, (TRAIN,))):
        stayed[np.isin(stayed, others) & data.touching(data.of(stayed == held_out))] = DROPPED
    return stayed


def _is_cross_validated(draws: Sequence[Keys], labelled: Sequence[bool], fewest: int) -> bool:
    """Whether every labelled input has too few clusters for a validation side; raw text alone always has one."""
    counts = [len(np.unique(own)) for own, has_labels in zip(draws, labelled, strict=True) if has_labels]
    return bool(counts) and max(counts) < fewest


def has_few_shots(data: Dataset) -> bool:
    """Whether labels have so few rows that all of them are needed for training."""
    if data.shape is not Shape.CLASSIFICATION:
        return False
    counts = pc.value_counts(data.column("label")).field("counts").to_numpy()
    return len(data) < FEW_ROWS or float(np.median(counts)) <= FEW_SHOTS


def undivided(inputs: Sequence[InputRows], clusters: Clusters) -> list[Split]:
    """All rows train, and what is chosen is chosen by cross-validation."""
    draws = cluster_draws([rows.sentences for rows in inputs], clusters.numbers)
    note = (
        "with so few rows per label all of them train and none are held out for a test: cross-validation shows what "
        "it can"
    )
    splits = []
    for rows, own, numbers in zip(inputs, draws, clusters.numbers, strict=True):
        data = rows.data
        plain = data.derive(data.table.drop_columns(list(rows.groups)), "without groups") if rows.groups else data
        none = plain.select(np.zeros(len(plain), bool))
        splits.append(Split(plain, none, none, none, numbers, own, (f"{rows.name}: {note}",)))
    return splits


def sides(datas: Sequence[Sentences], clusters: Sequence[Integers], *, with_validation: bool = True) -> list[Sides]:
    """For each data set the side of each row."""
    draws = cluster_draws(datas, clusters)
    all_sides = [_own_sides(*own, with_validation) for own in zip(datas, draws, strict=True)]
    held_out = np.empty(0, np.uint64)
    for filled, others in ((TEST, (VALIDATION, TRAIN)), (VALIDATION, (TRAIN,))):
        for data, side, own in zip(datas, all_sides, draws, strict=True):
            side[_too_many(data.row_keys, own, side == filled)] = THINNED
        held_out = union([held_out, *(data.of(side == filled) for data, side in zip(datas, all_sides, strict=True))])
        for data, side in zip(datas, all_sides, strict=True):
            side[np.isin(side, others) & data.touching(held_out)] = DROPPED
    return all_sides


def _too_many(keys: Keys, draws: Keys, held_out: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """The rows to leave out of a held-out side so that no cluster is more than 5% of it.

    The keys of the rows decide which of a cluster stay; equal ones stay together.
    """
    own = keys[held_out]
    _, cluster, sizes = np.unique(draws[held_out], return_inverse=True, return_counts=True)
    ordered = own[np.lexsort((own, cluster))]
    last = np.cumsum([0, *sizes])[:-1] + np.minimum(sizes, largest_size(sizes)) - 1
    too_many = held_out.copy()
    too_many[held_out] = own > ordered[last][cluster]
    return too_many


def largest_size(sizes: npt.NDArray[np.int64]) -> int:
    """How many rows a cluster may have, to be at most 5% of what is left. Two rows are never too many.

    The share of the largest cluster falls with its size, down to one row per cluster; with fewer than 20 clusters even
    that is too much, and all rows stay.
    """
    low, high = 1, int(sizes.max(initial=1))
    if len(sizes) * MOST_SHARE < 1:
        return high
    while low < high:
        middle = (low + high + 1) // 2
        if middle <= MOST_SHARE * np.minimum(sizes, middle).sum():
            low = middle
        else:
            high = middle - 1
    return max(low, 2)


def cluster_draws(datas: Sequence[Sentences], clusters: Sequence[Integers]) -> list[Keys]:
    """The draw of each row's cluster: its smallest key, hashed again, because large clusters have small ones."""
    names, place = np.unique(np.concatenate(clusters), return_inverse=True)
    least = np.full(len(names), np.iinfo(np.uint64).max)
    np.minimum.at(least, place, np.concatenate([data.draws for data in datas]))
    return np.split(mix(least)[place], np.cumsum([len(numbers) for numbers in clusters])[:-1])


def _own_sides(data: Sentences, draws: Keys, with_validation: bool) -> Sides:
    """By the draw alone. While shared sentences would drop too many rows, hold out half as much, down to the floor.

    Sentences that are in many rows drop nearly as many however little is held out: then less is not worth it.
    """
    parts = [1.0]
    while parts[-1] * min(VALIDATION_SHARE * len(draws), CAP) > FLOOR:
        parts.append(parts[-1] / 2)
    most = _left(data, _by_draw(draws, parts[-1], with_validation))
    for part in parts:
        side = _by_draw(draws, part, with_validation)
        left = _left(data, side)
        if (side == TRAIN).sum() - left <= MOST_DROPPED * len(side) or left >= ENOUGH_LEFT * most:
            break
    return side


def _by_draw(draws: Keys, part: float, with_validation: bool) -> Sides:
    ordered, clusters = np.sort(draws), len(np.unique(draws))
    test, validation = (min(FLOOR, int(most * clusters)) for most in (TEST_PART, VALIDATION_PART))
    tested = share_tested(len(draws))
    side = np.full(len(draws), TRAIN, np.int8)
    if with_validation:
        side[draws < _boundary(ordered, part * (tested + VALIDATION_SHARE), part * 2 * CAP, test + validation)] = (
            VALIDATION
        )
    side[draws < _boundary(ordered, part * tested, part * CAP, test)] = TEST
    return side


def share_tested(rows: int) -> float:
    """The share of test rows, which added rows never raise."""
    return float(np.interp(rows, (SMALL, LARGE), (SMALL_TEST_SHARE, TEST_SHARE)))


def _boundary(ordered: Keys, share: float, cap: float, floor: int) -> np.uint64:
    """The number below which rows are held out: a share of them, at most `cap`, and at least `floor` clusters.

    Adding rows can only lower it: at the floor and the cap because more rows draw lower numbers, and between them
    because the share never grows with the rows.
    """
    rows, cap = len(ordered), int(cap)
    most = int(ordered[cap]) if cap < rows else 2**64 - 1
    least = int(np.unique(ordered)[floor - 1]) + 1 if floor else 0
    return np.uint64(min(max(least, min(int(share * 2**64), most)), 2**64 - 1))


def _left(data: Sentences, side: Sides) -> int:
    """The training rows that share no sentence with a held-out one."""
    return int(((side == TRAIN) & ~data.touching(data.of(side != TRAIN))).sum())


def _split(
    rows: InputRows, side: Sides, clusters: Integers, draws: Keys, needed: Sequence[int], held_out: Keys
) -> Split:
    data, counts = rows.data, np.bincount(side, minlength=THINNED + 1)
    if counts[list(needed)].min() < LEAST_ROWS:
        problem = (
            f"{counts[TRAIN]:,} training rows and {counts[VALIDATION] + counts[TEST]:,} held-out rows are left after "
            f"dropping {counts[DROPPED]:,} that share sentences"
        )
        expected = f"at least {LEAST_ROWS} rows each for training, validation and test"
        raise InputError(data.files[0], problem, expected, "give more rows, or rows with fewer sentences in common")
    plain = data.derive(data.table.drop_columns(list(rows.groups)), "without groups") if rows.groups else data
    validation, test = (with_clusters(plain.select(side == at), clusters[side == at]) for at in (VALIDATION, TEST))
    dropped, train = plain.select((side == DROPPED) | (side == THINNED)), side == TRAIN
    trained = plain.select(train)
    kept = without_negatives(trained, held_out)
    notes = (*_notes(rows.name, counts), *_notes_on_negatives(rows.name, trained, kept))
    left_out = {why: int(counts[at]) for at, why in ((DROPPED, SHARED), (THINNED, LARGE_CLUSTERS)) if counts[at]}
    return Split(kept, validation, test, dropped, clusters[train], draws[train], notes, left_out)


def _notes_on_negatives(name: str, before: Dataset, after: Dataset) -> Iterator[str]:
    """How many hard negatives are left out of training rows, and how many of these rows have none left."""
    if before is after:
        return
    were, left = (pc.list_value_length(data.column(NEGATIVES)).to_numpy() for data in (before, after))
    if count := int(were.sum() - left.sum()):
        none = int(((left == 0) & (were > 0)).sum())
        pairs = f"; {none:,} have no other and train as pairs" if none else ""
        yield (
            f"{name}: {count:,} negatives of {int((left < were).sum()):,} training rows are texts of held-out rows "
            f"and left out of these rows{pairs}"
        )


def _notes(name: str, counts: npt.NDArray[np.int64]) -> Iterator[str]:
    if thinned := counts[THINNED]:
        rule = f"no cluster may be more than {MOST_SHARE:.0%} of the test or validation rows"
        rows = "1 row of a large cluster is" if thinned == 1 else f"{thinned:,} rows of large clusters are"
        yield f"{name}: {rows} neither trained nor tested on: {rule}"
