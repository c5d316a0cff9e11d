"""Batches as a pure function of (seed, step): loaders are stateless, and a resumed run continues with the next step.

Batches are drawn from all rows, balanced over labels, or each from one of several sources.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from hashlib import blake2b
from typing import Any

import numpy as np
import numpy.typing as npt

from sentloom.data.dataset import FILE, Dataset
from sentloom.data.shapes import Kind, form_of, text_columns
from sentloom.errors import InputError

Rows = npt.NDArray[np.int64]
Mix = float | tuple[float, ...]  # a temperature, or a weight for each source


@dataclass(frozen=True)
class Batch:
    """A batch of rows, or a part of one: `places` are the rows' positions in the whole batch."""

    texts: Mapping[str, Sequence[Any]]  # column -> n texts, or n lists of texts for `negatives`
    rows: Rows  # (n,) in the data set
    places: Rows  # (n,)
    key: tuple[int, int]  # (seed, step), which seeds all random choices
    labels: Sequence[str] = ()  # empty if the rows have none
    scores: Sequence[float] = ()  # likewise

    def __len__(self) -> int:
        return len(self.rows)

    def part(self, start: int, stop: int) -> "Batch":
        """Return the rows from `start` up to `stop`."""
        texts = {name: column[start:stop] for name, column in self.texts.items()}
        labels, scores = self.labels[start:stop], self.scores[start:stop]
        return Batch(texts, self.rows[start:stop], self.places[start:stop], self.key, labels, scores)

    def random(self, place: int) -> np.random.Generator:
        """Return a generator for the row at a place; its draws do not depend on how the batch is split into parts."""
        return np.random.default_rng([*self.key, place + 1])  # numpy reads [a, b, 0] as [a, b], an epoch's order

    @property
    def first(self) -> Sequence[str]:
        """Texts of the first column: the sentence itself, or its first view."""
        return next(iter(self.texts.values()))

    @property
    def second(self) -> Sequence[str]:
        """Texts of the second column, or of the first if there is only one."""
        return list(self.texts.values())[1] if len(self.texts) > 1 else self.first

    def equal(self) -> npt.NDArray[np.bool_]:
        """Return an (n, n) mask of the rows i != j that share a text, in either of the first two columns.

        Such rows must not serve as negatives for each other.
        """
        shared = np.zeros((len(self), len(self)), bool)
        columns = [text_keys(self.first), text_keys(self.second)]
        for left in columns:
            for right in columns:
                shared |= left[:, None] == right[None, :]
        np.fill_diagonal(shared, False)
        return shared


def text_keys(texts: Sequence[str]) -> npt.NDArray[np.uint64]:
    """Hash each text, ignoring case and spacing."""
    bare = (" ".join(text.casefold().split()) for text in texts)
    digests = (blake2b(text.encode(), digest_size=8).digest() for text in bare)
    return np.array([int.from_bytes(digest, "little") for digest in digests], np.uint64)


def make_batches(data: Dataset, size: int, seed: int, mix: Mix | None, rows_per_label: int) -> "Batches":
    """Return batches of one source each if `mix` is given, else of all rows together; balanced over labels if any."""
    labelled = Kind.LABEL in form_of(data.shape).columns.values()
    if mix is None:
        return LabelBatches(data, size, seed, rows_per_label) if labelled else Batches(data, size, seed)
    if labelled:
        return MixedLabelBatches(data, size, seed, mix, rows_per_label)
    return MixedBatches(data, size, seed, mix)


@dataclass(frozen=True)
class Batches:
    """The batches of a data set. Every epoch is a new permutation; its last, incomplete batch is dropped."""

    data: Dataset
    size: int
    seed: int

    def __post_init__(self) -> None:
        if len(self.data) < self.size:
            problem = f"{len(self.data)} rows are fewer than one batch of {self.size}"
            raise InputError(self.data.files[0], problem, "", "give more data or a smaller batch")

    @property
    def per_epoch(self) -> int:
        """Batches per epoch."""
        return len(self.data) // self.size

    def rows(self, step: int) -> Rows:
        """Return the rows of the batch at a step, counted from 0 over all epochs."""
        epoch, place = divmod(step, self.per_epoch)
        return epoch_order(len(self.data), self.seed, epoch)[place * self.size : (place + 1) * self.size]

    def batch(self, step: int) -> Batch:
        """Return the batch at a step."""
        rows = self.rows(step)
        cells = self.data.take(rows)
        texts = {name: cells[name] for name in text_columns(self.data.shape)}
        key, labels, scores = (self.seed, step), cells.get("label", ()), cells.get("score", ())
        return Batch(texts, rows, np.arange(len(rows)), key, labels, scores)


@lru_cache(maxsize=8)
def epoch_order(rows: int, seed: int, epoch: int, stream: int = 0) -> Rows:
    """Return the permutation of an epoch, read-only because it is cached; streams of one seed are independent."""
    order = np.random.default_rng([seed, epoch, 0, stream]).permutation(rows)
    order.flags.writeable = False
    return order


@dataclass(frozen=True)
class LabelBatches(Batches):
    """Batches of groups: up to `rows_per_label` rows of one label that come together.

    In an epoch every row comes at least once. A label with several rows but fewer groups than labels have on average
    comes again until it has as many, which at most doubles an epoch; each time its rows are regrouped. The groups of
    a label are spread evenly over the epoch, so that a batch repeats a label only if that label has that many rows. The
    last batch is filled up with the first rows of the epoch.
    """

    rows_per_label: int

    @cached_property
    def _rows_of(self) -> list[Rows]:
        """The rows of each label."""
        codes = self.data.column("label").combine_chunks().dictionary_encode().indices.to_numpy()
        order = np.argsort(codes, kind="stable")
        return np.split(order, np.flatnonzero(np.diff(codes[order])) + 1)

    @cached_property
    def _counts(self) -> tuple[tuple[int, int], ...]:
        """For each label, the groups that hold its rows once, and its groups in an epoch."""
        once = [-(-len(rows) // self.rows_per_label) for rows in self._rows_of]
        mean = round(sum(once) / len(once))
        return tuple((n, max(n, mean) if len(rows) > 1 else n) for n, rows in zip(once, self._rows_of, strict=True))

    @cached_property
    def per_epoch(self) -> int:
        """Batches per epoch."""
        return -(-len(self._order(0)) // self.size)

    def rows(self, step: int) -> Rows:
        """Return the rows of the batch at a step, counted from 0 over all epochs."""
        epoch, place = divmod(step, self.per_epoch)
        return np.take(self._order(epoch), range(place * self.size, (place + 1) * self.size), mode="wrap")

    @cached_property
    def _order(self) -> Callable[[int], Rows]:
        return lru_cache(maxsize=2)(self._ordered)

    def _ordered(self, epoch: int) -> Rows:
        """Return all rows of an epoch, group after group; the same number in every epoch."""
        draw = np.random.default_rng([self.seed, epoch, 0, 1])
        rows, times = [], []
        for own, (once, count) in zip(self._rows_of, self._counts, strict=True):
            passes = [draw.permutation(own) for _ in range(-(-count // once))]
            size, larger = divmod(len(own), once)
            sizes = np.tile([size + 1] * larger + [size] * (once - larger), len(passes))[:count]
            rows.append(np.concatenate(passes)[: sizes.sum()])
            times.append(np.repeat((np.arange(count) + draw.random(count)) / count, sizes))  # in [0, 1), evenly spread
        order: Rows = np.concatenate(rows)[np.argsort(np.concatenate(times), kind="stable")]
        return order


@dataclass(frozen=True)
class MixedBatches(Batches):
    """Batches of one source each, in proportions given by `mix`; an epoch has as many as the sources have full batches.

    A temperature T gives a source of n rows a share of n^(1/T): 1 is proportional, higher values are more even. A
    source that runs out restarts in a new order, independently of the others.
    """

    mix: Mix

    def __post_init__(self) -> None:
        short = [str(number + 1) for number, rows in enumerate(self._rows) if len(rows) < self.size]
        if short:
            problem = f"too few rows for one batch of {self.size} in source {', '.join(short)}"
            raise InputError(self.data.files[0], problem, "", "leave out the source or use a smaller batch")
        if isinstance(self.mix, tuple) and (len(self.mix) != len(self._rows) or not any(self.mix)):
            problem = f"{len(self.mix)} weights for {len(self._rows)} sources, with sum {sum(self.mix):g}"
            raise InputError("mix", problem, "one weight per source, not all 0", "give as many weights as data sets")

    @cached_property
    def _rows(self) -> list[Rows]:
        """The rows of each source."""
        files = self.data.column(FILE).to_numpy()
        source = np.array(self.data.sources or [0] * len(self.data.files))[files]
        return [np.flatnonzero(source == number) for number in range(source.max() + 1)]

    @cached_property
    def counts(self) -> npt.NDArray[np.int64]:
        """Batches of each source per epoch: its share, rounded, and at least one unless its weight is 0."""
        sizes = np.array([len(rows) for rows in self._rows], float)
        weights = np.array(self.mix) if isinstance(self.mix, tuple) else sizes ** (1 / self.mix)
        total = int(sum(len(rows) // self.size for rows in self._rows))
        exact = total * weights / weights.sum()
        counts = np.floor(exact).astype(np.int64)
        rest = np.argsort(counts - exact, kind="stable")[: total - counts.sum()]  # the largest remainders
        counts[rest] += 1
        return np.where(weights > 0, np.maximum(counts, 1), counts)

    @property
    def per_epoch(self) -> int:
        """Batches per epoch."""
        return int(self.counts.sum())

    def rows(self, step: int) -> Rows:
        """Return the rows of the batch at a step, counted from 0 over all epochs."""
        epoch, place = divmod(step, self.per_epoch)
        sequence = self._sequence(epoch)
        source = int(sequence[place])
        so_far = epoch * int(self.counts[source]) + int((sequence[:place] == source).sum())  # batches of this source
        return self._rows[source][self._within(source, so_far)]

    def _within(self, source: int, number: int) -> Rows:
        """Return the places, among the rows of a source, of its batch of this number."""
        count = len(self._rows[source])
        epoch, place = divmod(number, count // self.size)
        return epoch_order(count, self.seed, epoch, source + 1)[place * self.size : (place + 1) * self.size]

    def _sequence(self, epoch: int) -> Rows:
        """Return the sources of an epoch's batches, in order."""
        sources = np.repeat(np.arange(len(self.counts)), self.counts)
        return sources[epoch_order(len(sources), self.seed, epoch, len(self.counts) + 1)]


@dataclass(frozen=True)
class MixedLabelBatches(MixedBatches):
    """Batches of one source each, such as one of several label columns; within a source balanced over its labels."""

    rows_per_label: int

    @cached_property
    def _balanced(self) -> list[LabelBatches]:
        """The batches of each source by itself."""
        chosen = [np.isin(np.arange(len(self.data)), rows) for rows in self._rows]
        return [LabelBatches(self.data.select(rows), self.size, self.seed, self.rows_per_label) for rows in chosen]

    def _within(self, source: int, number: int) -> Rows:
        return self._balanced[source].rows(number)
