"""Rows that are a query and what it should find, among the texts of all rows."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np

from sentloom.data.dataset import Dataset
from sentloom.data.shapes import COLUMNS
from sentloom.evaluation.user_tasks import Corpus
from sentloom.fitting.shapes.handler import Handler, Matching

if TYPE_CHECKING:
    from sentloom.fitting.split import Split
    from sentloom.fitting.tasks import HeldOut

SEED = 0  # of the sample of candidates


@dataclass(frozen=True)
class Searching(Handler):
    """Queries that find texts of the second column."""

    searches: bool = True

    def candidates(self, data: Dataset) -> list[str]:
        """The second column, and hard negatives."""
        texts: list[str] = data.column(COLUMNS[data.shape][1]).to_pylist()
        return [*texts, *chain(*data.column("negatives").to_pylist())] if "negatives" in COLUMNS[data.shape] else texts

    def corpus(self, split: "Split", more: Sequence[str], most: int) -> Corpus | None:
        """All held-out candidates, and a sample of the others."""
        held_out = held_out_rows(split)
        known = set(chain(*map(self.candidates, held_out)))
        others = [text for text in dict.fromkeys([*self.candidates(split.train), *more]) if text not in known]
        return Corpus(held_out, tuple(others[at] for at in sample(len(others), most - len(known))))

    def document_count(self, split: "Split", more: Sequence[str]) -> int | None:
        """How many different candidates there are."""
        return len(all_candidates(self, split, more))


def held_out_rows(split: "Split") -> tuple[Dataset, ...]:
    """The rows that are not trained on; dropped ones share sentences with the others."""
    return split.validation, split.test, split.dropped


def all_candidates(handler: Handler, split: "Split", more: Sequence[str]) -> list[str]:
    """All distinct candidates of an input, the held-out ones first."""
    parts = (*held_out_rows(split), split.train)
    return list(dict.fromkeys([*chain(*map(handler.candidates, parts)), *more]))


def sample(size: int, most: int) -> list[int]:
    """At most `most` numbers below `size`, in order."""
    if size <= most:
        return list(range(size))
    return sorted(np.random.default_rng(SEED).permutation(size)[: max(0, most)].tolist())


def match_partners(part: "HeldOut", split: "Split | None") -> Matching:
    """A query's candidate is right if it is one of its partners, some of which may be in dropped rows."""
    (task,) = part.tasks
    queries, documents = task.texts["query"], task.texts["document"]
    rows = [part.data, *([split.dropped] if split else [])]
    partners = {pair for data in rows for pair in zip(data["anchor"], data["positive"], strict=True)}
    return Matching(
        queries, documents, ("query", "document"), lambda query, at: (queries[query], documents[at]) in partners
    )
