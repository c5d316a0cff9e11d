"""Batches of labelled texts: several rows of a label come together, and a batch has as many labels as it can."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from sentloom.data.batches import Batches, Rows


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
