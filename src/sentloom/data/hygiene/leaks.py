"""Find leaks: evaluation sentences and pairs that occur in the training data, possibly spelled differently.

Every sentence is hashed in several forms, from the exact text to only its letters and digits. The training data is
read once and looked up by its most reduced form only; the other forms are computed for the few matches.
"""

import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sentloom.data.columns import Texts, among, flat, hashes, walk
from sentloom.data.dataset import Dataset
from sentloom.data.shapes import text_columns

SPACES = r"[\s\p{Z}\p{Cc}\p{Cf}]+"
SPACES_AND_PUNCTUATION = r"[\s\p{Z}\p{Cc}\p{Cf}\p{P}`]+"  # the backtick is a symbol in Unicode but a quote in treebanks
ORDERED = np.uint64(0x9E3779B97F4A7C15)  # makes the hashes of (a, b) and (b, a) differ


class Kind(StrEnum):
    """How an evaluation sentence differs from the training sentence, or the order of a leaked pair."""

    EXACT = "exact"
    UNICODE = "Unicode form"
    SPACING = "spacing"
    CASE = "case"
    PUNCTUATION = "punctuation"  # and spacing, which changes with it
    MIXED = "mixed"  # case, and spacing or punctuation
    PAIR = "pair"
    SWAPPED = "swapped pair"


SENTENCE_KINDS = (Kind.EXACT, Kind.UNICODE, Kind.SPACING, Kind.CASE, Kind.PUNCTUATION, Kind.MIXED)
PAIR_KINDS = (Kind.PAIR, Kind.SWAPPED)


@dataclass(frozen=True)
class Leak:
    """One evaluation sentence (or pair) and the first training row that contains it in the closest form."""

    kind: Kind
    text: str
    evaluation: str
    training: str


@dataclass(frozen=True)
class Leaks:
    """Counts of all leaks, and the first of each kind. A leaked pair is counted in addition to its sentences."""

    counts: dict[Kind, int]
    first: tuple[Leak, ...]  # of each kind
    sentences: int  # in the evaluation data
    pairs: int
    training_rows: np.ndarray  # every training row that contains an evaluation sentence, sorted

    @property
    def leaked_sentences(self) -> int:
        """Number of evaluation sentences found in the training data, in any form."""
        return sum(self.counts.get(kind, 0) for kind in SENTENCE_KINDS)

    @property
    def leaked_pairs(self) -> int:
        """Number of evaluation pairs of which both sides are in one training row."""
        return sum(self.counts.get(kind, 0) for kind in PAIR_KINDS)


@dataclass(frozen=True)
class _Column:
    """The sentences of one text column of a batch, with their rows in the data set and their most reduced hashes."""

    rows: np.ndarray
    texts: Texts
    keys: np.ndarray


@dataclass(frozen=True)
class _Items:
    """Sentences or pairs: their rows, and one hash for each kind of leak, closest kind first [kinds, items]."""

    rows: np.ndarray
    hashes: np.ndarray
    texts: Sequence[str] = ()  # evaluation items only: training data may be too large


def find_leaks(train: Dataset, evals: Sequence[Dataset], most: int = 1000) -> Leaks:
    """Find the sentences and pairs of evaluation sets in training data; returns up to `most` leaks of each kind."""
    sentences, pairs = [_sentences(part) for part in evals], [_pairs(part) for part in evals]
    leaked_sentences, leaked_pairs = _training_items(train, _lookup(sentences), _lookup(pairs))
    counts: Counter[Kind] = Counter()
    first: list[Leak] = []
    for items, training, kinds in ((sentences, leaked_sentences, SENTENCE_KINDS), (pairs, leaked_pairs, PAIR_KINDS)):
        for dataset, own in zip(evals, items, strict=True):
            for kind, item, row in _matches(own, training, kinds):
                if counts[kind] < most:
                    first.append(Leak(kind, own.texts[item], dataset.place(int(own.rows[item])), train.place(row)))
                counts[kind] += 1
    rows = np.unique(np.concatenate([leaked_sentences.rows, leaked_pairs.rows]))
    return Leaks(dict(counts), tuple(first), _total(sentences), _total(pairs), rows)


def _total(items: list[_Items]) -> int:
    return sum(len(part.rows) for part in items)


def _matches(items: _Items, training: _Items, kinds: Sequence[Kind]) -> Iterator[tuple[Kind, int, int]]:
    """Yield (closest kind, item, training row) for each evaluation item that is in the training data."""
    match = np.full(len(items.rows), -1)
    for kind, values, training_values in zip(kinds, items.hashes, training.hashes, strict=True):
        distinct, first = np.unique(training_values, return_index=True)
        new = np.flatnonzero((match < 0) & among(values, distinct))
        match[new] = training.rows[first[np.searchsorted(distinct, values[new])]]
        for item in new:
            yield kind, int(item), int(match[item])


def _columns(dataset: Dataset) -> Iterator[list[_Column]]:
    """Yield the text columns of each batch."""
    for start, batch in walk(dataset, text_columns(dataset.shape)):
        flattened = [flat(column) for column in batch.columns]
        yield [_Column(start + owner, texts, hashes(_bare(_folded(texts)))) for texts, owner in flattened]


def _pairings(columns: list[_Column]) -> Iterator[tuple[_Column, np.ndarray, np.ndarray, np.ndarray]]:
    """Pair the first column with each other one: (other column, partner of each sentence, hash, swapped hash)."""
    first, *others = columns
    for other in others:
        partner = other.rows - first.rows[0]
        keys = first.keys[partner]
        yield other, partner, keys * ORDERED + other.keys, other.keys * ORDERED + keys


def _sentences(dataset: Dataset) -> _Items:
    parts = [
        _Items(column.rows, forms(column.texts), column.texts.to_pylist())
        for columns in _columns(dataset)
        for column in columns
    ]
    return _in_order(parts, SENTENCE_KINDS)


def _pairs(dataset: Dataset) -> _Items:
    parts = []
    for columns in _columns(dataset):
        first = columns[0].texts.to_pylist()
        for other, partner, forward, _ in _pairings(columns):
            texts = [f"{first[place]} | {text}" for place, text in zip(partner, other.texts.to_pylist(), strict=True)]
            parts.append(_Items(other.rows, np.stack([forward, forward]), texts))
    return _in_order(parts, PAIR_KINDS)


def _training_items(train: Dataset, sentence_keys: np.ndarray, pair_keys: np.ndarray) -> tuple[_Items, _Items]:
    """Return the training sentences and pairs with one of the keys, in one pass."""
    sentences, pairs = [], []
    for columns in _columns(train):
        for column in columns:
            hit = among(column.keys, sentence_keys)
            sentences.append(_Items(column.rows[hit], forms(column.texts.filter(pa.array(hit)))))
        for other, _, forward, swapped in _pairings(columns):
            hit = among(forward, pair_keys) | among(swapped, pair_keys)
            pairs.append(_Items(other.rows[hit], np.stack([forward[hit], swapped[hit]])))
    return _in_order(sentences, SENTENCE_KINDS), _in_order(pairs, PAIR_KINDS)


def _lookup(items: list[_Items]) -> np.ndarray:
    """Return the most reduced hashes of all items, sorted."""
    return np.unique(np.concatenate([np.empty(0, np.uint64), *(part.hashes[-1] for part in items)]))


def _in_order(parts: list[_Items], kinds: Sequence[Kind]) -> _Items:
    """Join all parts, sorted by row."""
    rows = np.concatenate([np.empty(0, np.int64), *(part.rows for part in parts)])
    values = np.concatenate([np.empty((len(kinds), 0), np.uint64), *(part.hashes for part in parts)], axis=1)
    texts = [text for part in parts for text in part.texts]
    order = np.argsort(rows, kind="stable")
    return _Items(rows[order], values[:, order], [texts[place] for place in order] if texts else ())


def forms(texts: Texts) -> np.ndarray:
    """Hash each sentence in the form that each of SENTENCE_KINDS compares: [kinds, sentences].

    Two sentences that are equal in any form are equal in the last one, so it is enough for lookups.
    """
    plain = pa.array([unicodedata.normalize("NFKC", text) for text in texts.to_pylist()], pa.large_string())
    folded = _folded(texts)
    spaceless = pc.replace_substring_regex(plain, SPACES, "")
    return np.stack([hashes(form) for form in (texts, plain, spaceless, folded, _bare(plain), _bare(folded))])


def _folded(texts: Texts) -> Texts:
    return pa.array([unicodedata.normalize("NFKC", text).casefold() for text in texts.to_pylist()], pa.large_string())


def _bare(texts: Texts) -> Texts:
    """Remove spaces and punctuation; keep the punctuation if there is nothing else."""
    bare = pc.replace_substring_regex(texts, SPACES_AND_PUNCTUATION, "")
    empty = pc.equal(bare, "")
    return pc.replace_with_mask(bare, empty, pc.replace_substring_regex(texts.filter(empty), SPACES, ""))


def without_leaks(data: Dataset, evaluated: Sequence[Dataset]) -> Dataset:
    """The rows without any sentence of the evaluation sets; the others are counted in `skipped`."""
    keep = np.ones(len(data), bool)
    if evaluated:
        keep[find_leaks(data, evaluated).training_rows] = False
    if keep.all():
        return data
    kept = data.select(keep)
    return replace(kept, skipped={**kept.skipped, "rows with sentences of the evaluation sets": int((~keep).sum())})
