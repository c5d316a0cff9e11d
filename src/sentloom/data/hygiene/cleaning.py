"""Clean data with a list of rules built from the settings, applied batch by batch, each with a count of its effects."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sentloom.data.columns import (
    Seen,
    Texts,
    any_sentence,
    flat,
    hashes,
    identical,
    joined,
    mask,
    refill,
    text_column,
    walk,
)
from sentloom.data.dataset import Dataset, scratch_table
from sentloom.data.hygiene.languages import SCRIPTS, dominant_scripts, word_counts
from sentloom.data.hygiene.near_duplicates import check_threshold, first_of_group
from sentloom.data.shapes import COLUMNS, Shape, form_of, text_columns
from sentloom.errors import InputError

WHITE_SPACE = r"[\s\p{Z}\p{Cc}]+"
UNTIDY = r"[\p{Cc}\p{Zl}\p{Zp}]|[^\P{Z} ]|  |^ | $"  # any white space except single spaces between words
CHANGED, DROPPED, REPAIRED = "changed", "dropped", "repaired"
UNUSABLE = "unusable"
REASONS = {"duplicate": "repeated rows", "identical sides": "rows whose two sides are the same text"}


@dataclass(frozen=True)
class CleanSettings:
    """Which rules run besides those that always do: Unicode form, white space, empty, identical and repeated rows.

    Words are counted in a way that also works for scripts without spaces (`languages.word_counts`).
    """

    min_words: int | None = None
    max_words: int | None = None
    length_ratio: float | None = None  # drop rows if one side has more than this many times the words of the other
    scripts: tuple[str, ...] = ()  # one per text column, such as ("Latin", "Kana+Han"): drop rows in other scripts
    distinct: str | None = None  # a text column: drop rows whose sentence in it occurred before
    near_duplicates: float | None = None  # drop rows with at least this Jaccard index with an earlier one, often 0.8

    def __post_init__(self) -> None:
        _check_limits(self.min_words, self.max_words)
        if self.near_duplicates is not None:
            check_threshold(self.near_duplicates)
        if self.length_ratio is not None and not self.length_ratio >= 1:
            raise InputError("cleaning, length ratio", f"{self.length_ratio:g} is too small", "1 or more", "try 3")
        for name in {name for side in self.scripts for name in side.split("+")} - {*SCRIPTS[1:-1]}:
            expected = f"one of {', '.join(SCRIPTS[1:-1])}"
            raise InputError("cleaning, scripts", f"unknown script {name!r}", expected, "correct the name")


def _check_limits(low: int | None, high: int | None) -> None:
    if (low is not None and low < 0) or (high is not None and high < max(low or 0, 1)):
        raise InputError(
            "cleaning, limits in words",
            f"min_words={low} and max_words={high} are not valid limits",
            "a minimum of 0 or more, and a maximum of at least 1 that is not below the minimum",
            "correct the limits, or leave one out",
        )


@dataclass(frozen=True)
class RuleCount:
    """What one rule did: `effect` is "changed", "dropped" or "repaired"; `example` locates the first row or is ""."""

    rule: str
    effect: str
    why: str
    rows: int
    example: str


@dataclass(frozen=True)
class CleanReport:
    """What cleaning did. A dropped row is counted once, under the first rule that it violates."""

    rows_before: int
    rows_after: int
    rules: tuple[RuleCount, ...]

    def table(self) -> list[tuple[str, str, str, str, str]]:
        """Return table rows: rule, effect, number of rows, reason, example."""
        return [(count.rule, count.effect, f"{count.rows:,}", count.why, count.example) for count in self.rules]

    @property
    def reasons(self) -> dict[str, int]:
        """Why rows were dropped after they were read: reason -> rows."""
        dropped = (count for count in self.rules if count.effect == DROPPED and count.rule != UNUSABLE and count.rows)
        return {REASONS.get(count.rule, f"rows in which {count.why}"): count.rows for count in dropped}


Work = Callable[[pa.RecordBatch], tuple[pa.RecordBatch, np.ndarray]]  # -> the new batch, mask of the affected rows
Test = Callable[[pa.RecordBatch], np.ndarray]  # -> mask of the rows to drop


@dataclass
class _Rule:
    """A rule: its effect on a batch, and its counts so far."""

    name: str
    effect: str
    why: str
    work: Work
    rows: int = 0
    example: str = ""

    def count(self, dataset: Dataset, rows: np.ndarray) -> None:
        if len(rows) and not self.rows:
            self.example = dataset.place(int(rows[0]))
        self.rows += len(rows)


def clean(dataset: Dataset, settings: CleanSettings) -> tuple[Dataset, CleanReport]:
    """Apply the rules; return the cleaned data set, in its original order, and a report of each rule."""
    _check_fit(dataset, settings)
    rules = [*_changes(dataset.shape), *_drops(dataset, settings)]
    cleaned = dataset.derive(scratch_table(dataset.table.schema, _cleaned(dataset, rules)), repr(settings))
    counts = [RuleCount(rule.name, rule.effect, rule.why, rule.rows, rule.example) for rule in rules]
    if settings.near_duplicates is not None:
        cleaned, count = _without_near_duplicates(cleaned, settings.near_duplicates)
        counts.append(count)
    return cleaned, CleanReport(len(dataset) + dataset.left_out, len(cleaned), (*_from_reading(dataset), *counts))


def _from_reading(dataset: Dataset) -> Iterator[RuleCount]:
    """Yield what was repaired or left out when the data was read."""
    unusable = [kind for kind in dataset.irregular if not kind.repaired]
    yield from (
        RuleCount("repair", REPAIRED, kind.what, kind.count, kind.where) for kind in dataset.irregular if kind.repaired
    )
    if sum(kind.count for kind in unusable) > dataset.left_out:  # some rows have several of these problems
        why = "; ".join(kind.what for kind in unusable)
        yield RuleCount(UNUSABLE, DROPPED, why, dataset.left_out, unusable[0].where)
    else:
        yield from (RuleCount(UNUSABLE, DROPPED, kind.what, kind.count, kind.where) for kind in unusable)


def _check_fit(dataset: Dataset, settings: CleanSettings) -> None:
    shape, columns = dataset.shape, [dataset.own_name(name) for name in text_columns(dataset.shape)]
    if settings.length_ratio is not None and not form_of(shape).is_two_sided:
        problem = f"not available for the shape {shape}"
        raise InputError("cleaning, length ratio", problem, "pairs or parallel", "leave out the length ratio")
    if settings.scripts and len(settings.scripts) != len(columns):
        problem, expected = f"{len(settings.scripts)} given", f"one for each column: {', '.join(columns)}"
        raise InputError("cleaning, scripts", problem, expected, "give one script per column")


def _cleaned(dataset: Dataset, rules: list[_Rule]) -> Iterator[pa.RecordBatch]:
    for start, rest in walk(dataset):
        batch, rows = rest, np.arange(start, start + rest.num_rows)
        for rule in rules:
            batch, concerned = rule.work(batch)
            rule.count(dataset, rows[concerned])
            if rule.effect == DROPPED:
                rows = rows[~concerned]
        yield batch


def _without_near_duplicates(dataset: Dataset, threshold: float) -> tuple[Dataset, RuleCount]:
    keep = first_of_group(dataset, threshold) == np.arange(len(dataset))
    dropped = np.flatnonzero(~keep)
    example = dataset.place(int(dropped[0])) if len(dropped) else ""
    why = f"Jaccard index of {threshold:g} or more with an earlier row"
    count = RuleCount("near duplicate", DROPPED, why, len(dropped), example)
    return dataset.select(keep), count


def _changes(shape: Shape) -> Iterator[_Rule]:
    columns = text_columns(shape)
    yield _change("Unicode", "not in composed form (NFC)", columns, partial(pc.utf8_normalize, form="NFC"))
    yield _change("white space", "other than single spaces between words", columns, tidy)


def _drops(dataset: Dataset, settings: CleanSettings) -> Iterator[_Rule]:
    shape, columns = dataset.shape, text_columns(dataset.shape)
    yield _drop("empty", "a sentence is empty", _outside(columns, pc.utf8_length, low=1))
    if low := settings.min_words:
        yield _drop("short", f"a sentence has fewer than {low} words", _outside(columns, word_counts, low=low))
    if high := settings.max_words:
        yield _drop("long", f"a sentence has more than {high} words", _outside(columns, word_counts, high=high))
    if form_of(shape).is_two_sided:
        yield _drop("identical sides", "both sides are the same text", partial(identical, columns=columns))
    if (ratio := settings.length_ratio) is not None:
        yield _drop(
            "length ratio", f"one side has more than {ratio:g} times the words of the other", _uneven(columns, ratio)
        )
    for column, script in zip(columns, settings.scripts, strict=False):
        why = f"{dataset.own_name(column)} is mostly not in {script}"
        yield _drop("script", why, _in_other_script(column, script))
    yield _drop("duplicate", "repeats an earlier row", _repeated(COLUMNS[shape]))
    if settings.distinct:
        distinct = text_column(dataset, settings.distinct, "distinct")
        yield _drop("repeated side", f"repeats an earlier {dataset.own_name(distinct)}", _repeated((distinct,)))


def tidy(texts: Texts) -> Texts:
    """Collapse white space and control characters to single spaces and strip the ends. Most texts need no change."""
    untidy = pc.match_substring_regex(texts, UNTIDY)
    tidied = pc.utf8_trim(pc.replace_substring_regex(texts.filter(untidy), WHITE_SPACE, " "), " ")
    return pc.replace_with_mask(texts, untidy, tidied)


def _change(name: str, why: str, columns: tuple[str, ...], change: Callable[[Texts], Texts]) -> _Rule:
    def work(batch: pa.RecordBatch) -> tuple[pa.RecordBatch, np.ndarray]:
        concerned = np.zeros(batch.num_rows, bool)
        for column in columns:
            texts, owner = flat(batch.column(column))
            changed = change(texts)
            concerned[owner[mask(pc.not_equal(texts, changed))]] = True
            place = batch.schema.get_field_index(column)
            batch = batch.set_column(place, batch.schema.field(place), refill(batch.column(column), changed))
        return batch, concerned

    return _Rule(name, CHANGED, why, work)


def _drop(name: str, why: str, test: Test) -> _Rule:
    def work(batch: pa.RecordBatch) -> tuple[pa.RecordBatch, np.ndarray]:
        bad = test(batch)
        return (batch.filter(pa.array(~bad)) if bad.any() else batch), bad

    return _Rule(name, DROPPED, why, work)


def _outside(columns: tuple[str, ...], length: Callable[[Texts], pa.Array], low: int = 0, high: float = np.inf) -> Test:
    def outside(texts: Texts) -> np.ndarray:
        lengths = np.asarray(length(texts))
        return (lengths < low) | (lengths > high)

    return partial(any_sentence, columns=columns, test=outside)


def _uneven(columns: tuple[str, ...], ratio: float) -> Test:
    def uneven(batch: pa.RecordBatch) -> np.ndarray:
        left, right = (np.maximum(word_counts(batch.column(name)), 1) for name in columns)
        return np.asarray(np.maximum(left, right) > ratio * np.minimum(left, right))

    return uneven


def _in_other_script(column: str, script: str) -> Test:
    """Test for texts in other scripts; a text without letters passes."""
    allowed = [0, *(SCRIPTS.index(name) for name in script.split("+"))]

    def in_other_script(texts: Texts) -> np.ndarray:
        return ~np.isin(dominant_scripts(texts), allowed)

    return partial(any_sentence, columns=(column,), test=in_other_script)


def _repeated(columns: tuple[str, ...]) -> Test:
    seen = Seen()
    return lambda batch: seen.repeats(hashes(joined(batch, columns)))
