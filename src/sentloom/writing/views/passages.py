"""Pairs of passages from documents: neighbours, two spans of the same text, or a sentence and its whole text."""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pyarrow as pa

from sentloom.data.batches import text_keys
from sentloom.data.dataset import BATCH_ROWS, FILE, LINE, Dataset, scratch_table, shape_schema
from sentloom.data.sentences import distinct_sentences
from sentloom.data.shapes import Shape
from sentloom.errors import InputError
from sentloom.writing.views.settings import Neighbours, Sentences, Spans

PAIRS = shape_schema(Shape.PAIRS)
SENTENCE_END = re.compile(r"(?<=[.!?…])[\"'”’)\]]*\s+|(?<=[。！？])|\n\s*\n")
SHORTEST = 4  # words, or characters of a text without spaces, of a document that spans are cut from
LONGEST_WORD = 20  # characters: if words are longer on average, they are not words
Passages = Neighbours | Spans | Sentences
TOO_SHORT = "texts too short for two passages"


def passage_pairs(dataset: Dataset, settings: Passages) -> Dataset:
    """Pairs of passages of every distinct text, with its origin; texts too short for a pair are counted."""
    counts: Counter[str] = Counter()
    table = scratch_table(PAIRS, _batches(distinct_sentences(dataset), settings, counts))
    if not len(table):
        problem = "no text is long enough for two passages"
        raise InputError(dataset.files[0], problem, "texts of several sentences", "choose another kind of view")
    pairs = dataset.derive(table, f"passages {settings.model_dump_json()}", Shape.PAIRS)
    used = {"anchor": settings.kind, "positive": settings.kind}
    return replace(pairs, used=used, ignored=(), skipped={**dataset.skipped, **+counts})


def neighbours(text: str, sentences: int) -> list[tuple[str, str]]:
    """Each passage of `sentences` sentences with the next one; the last may be shorter."""
    parts = sentences_of(text)
    passages = [" ".join(parts[start : start + sentences]) for start in range(0, len(parts), sentences)]
    return list(pairwise(passages))


def spans(text: str, settings: Spans) -> list[tuple[str, str]]:
    """Pairs of two random spans of a text, as in Contriever (Izacard et al., 2022); a function of seed and text."""
    words = text.split()
    between = " "
    if LONGEST_WORD * len(words) < len(text):  # a script without spaces
        words, between = list(text.strip()), ""
    if len(words) < SHORTEST:
        return []
    draw = np.random.default_rng([settings.seed, int(text_keys([text])[0])])
    pairs = [tuple(between.join(_stretch(words, settings, draw)) for _ in range(2)) for _ in range(settings.pairs)]
    return [(first, second) for first, second in pairs if first.strip() and second.strip() and first != second]


def sentences(text: str, settings: Sentences) -> list[tuple[str, str]]:
    """Some sentences of a text, each with the whole text; a function of seed and text."""
    parts = list(dict.fromkeys(sentences_of(text)))
    if len(parts) < 2:
        return []
    draw = np.random.default_rng([settings.seed, int(text_keys([text])[0])])
    chosen = draw.choice(len(parts), min(settings.pairs, len(parts)), replace=False)
    return [(parts[place], text) for place in sorted(chosen)]


def sentences_of(text: str) -> list[str]:
    """The sentences of a text: split after . ! ? with a space behind, after their Chinese forms, and at empty lines."""
    return [part.strip() for part in SENTENCE_END.split(text) if part.strip()]


def _pairs(text: str, settings: Passages) -> list[tuple[str, str]]:
    match settings:
        case Neighbours():
            return neighbours(text, settings.sentences)
        case Spans():
            return spans(text, settings)
        case Sentences():
            return sentences(text, settings)


def _stretch(words: list[str], settings: Spans, draw: np.random.Generator) -> list[str]:
    share = draw.uniform(settings.shortest, settings.longest)
    length = max(1, round(share * len(words)))
    start = int(draw.integers(len(words) - length + 1))
    return words[start : start + length]


def _batches(texts: pa.Table, settings: Passages, counts: Counter[str]) -> Iterator[pa.RecordBatch]:
    for batch in texts.to_batches(max_chunksize=BATCH_ROWS):
        rows, pairs = [], []
        for row, text in enumerate(batch.column("text").to_pylist()):
            made = _pairs(text, settings)
            counts[TOO_SHORT] += not made
            rows += [row] * len(made)
            pairs += made
        sides = [pa.array([pair[side] for pair in pairs], pa.large_string()) for side in (0, 1)]
        origin = (batch.column(name).take(pa.array(rows, pa.int64())) for name in (FILE, LINE))
        yield pa.record_batch([*sides, *origin], schema=PAIRS)
