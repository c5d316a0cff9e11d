"""Mix several data sets in batches of one source each, so that in-batch negatives come from one domain."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from sentloom.data.batches import Batches, Rows, epoch_order
from sentloom.data.dataset import FILE, Dataset
from sentloom.data.label_batches import LabelBatches
from sentloom.data.shapes import Shape
from sentloom.errors import InputError

Mix = float | tuple[float, ...]  # a temperature, or a weight for each source


def make_batches(data: Dataset, size: int, seed: int, mix: Mix | None, rows_per_label: int) -> Batches:
    """Return batches of one source each if `mix` is given, else of all rows together; balanced over labels if any."""
    labelled = data.shape is Shape.CLASSIFICATION
    if mix is None:
        return LabelBatches(data, size, seed, rows_per_label) if labelled else Batches(data, size, seed)
    if labelled:
        return MixedLabelBatches(data, size, seed, mix, rows_per_label)
    return MixedBatches(data, size, seed, mix)


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
        each = np.repeat(np.arange(len(self.counts)), self.counts)
        return each[epoch_order(len(each), self.seed, epoch, len(self.counts) + 1)]


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
