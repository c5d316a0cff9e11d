"""Inspect a data set: lengths, repeats, scripts, labels, scores, warnings, and its tokens per word.

There are few tokens per word if the tokenizer knows the language, and many if it does not.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sentloom.data.columns import Seen, Texts, any_sentence, flat, hashes, identical, joined, mask, sampled_texts, walk
from sentloom.data.dataset import Dataset, take_rows
from sentloom.data.hygiene.languages import SCRIPTS, dominant_scripts, word_counts
from sentloom.data.hygiene.near_duplicates import coordinated_sample, first_of_group
from sentloom.data.shapes import COLUMNS, form_of, text_columns

Measure = Callable[[Texts], np.ndarray]
Tokenize = Callable[[list[str]], list[list[int]]]

NEAR = 0.8  # Jaccard
SAMPLE = 20_000
MANY_IDENTICAL = 0.01  # share of rows
TAGS = "a|b|br|code|div|em|font|h[1-6]|hr|i|img|li|ol|p|pre|span|strong|sub|sup|table|tbody|td|th|tr|u|ul"
HTML = rf"(?i)</?(?:{TAGS})(?:\s[^<>]*)?/?>|&(?:amp|lt|gt|quot|apos|nbsp|#[0-9]+|#x[0-9a-f]+);"

TOKEN_SAMPLE = 10_000  # rows
MANY_TOKENS = 1.5  # per word or character; the embedded model: English 1.05, French 1.6, German 2.0, Turkish 2.9
MANY_UNKNOWN = 0.01
UNSPACED = [SCRIPTS.index(name) for name in ("Han", "Kana", "Thai")]
BETWEEN_WORDS = re.compile(r"[\W_]+")


@dataclass(frozen=True)
class Distribution:
    """Summary statistics of a number."""

    least: float
    p25: float
    median: float
    p75: float
    p95: float
    most: float
    mean: float


@dataclass(frozen=True)
class Lengths:
    """The lengths of a column's sentences, in tokens or words."""

    column: str
    unit: str
    distribution: Distribution


@dataclass(frozen=True)
class NearDuplicates:
    """How many of `sampled` rows repeat or nearly repeat an earlier one of them (Jaccard index of `threshold`)."""

    threshold: float
    sampled: int
    repeats: int
    whole: bool  # the sample is the whole data set, so this is a count, not an estimate


@dataclass(frozen=True)
class Finding:
    """A warning: what was found, in how many rows, and the place of the first."""

    what: str
    rows: int
    example: str


@dataclass(frozen=True)
class Inspection:
    """The result of `inspect`; `dataclasses.asdict` converts it for JSON."""

    shape: str
    rows: int
    sentences: int
    lengths: tuple[Lengths, ...]
    duplicate_rows: int  # rows that repeat an earlier one
    duplicate_sentences: int  # sentences that occurred before in any text column
    near_duplicates: NearDuplicates
    scripts: dict[str, float]  # share of the sentences by dominant script, most frequent first
    labels: dict[str, int]  # most frequent first; empty for shapes without labels
    scores: Distribution | None
    findings: tuple[Finding, ...]


def inspect(
    dataset: Dataset,
    count_tokens: Callable[[list[str]], list[int]] | None = None,
    token_limit: int | None = None,
    sample: int = SAMPLE,
) -> Inspection:
    """Inspect the whole data set, using a few bytes of memory per sentence.

    Lengths are in tokens if `count_tokens` is given, else in words; sentences above `token_limit` tokens are reported.
    Near-duplicates of larger data are estimated from about `sample` rows.
    """
    unit, measure = ("words", word_counts) if count_tokens is None else ("tokens", _measure(count_tokens))
    limit = np.inf if count_tokens is None or token_limit is None else token_limit
    lengths, long_rows = _lengths(dataset, measure, limit)
    scripts, labels, scores = _scripts(dataset), _labels(dataset), _scores(dataset)
    sentences = scripts.total()
    too_long = _finding(dataset, f"a sentence has more than {token_limit} tokens and will be truncated", long_rows)
    return Inspection(
        shape=str(dataset.shape),
        rows=len(dataset),
        sentences=sentences,
        lengths=tuple(Lengths(dataset.own_name(name), unit, distribution(counts)) for name, counts in lengths.items()),
        duplicate_rows=_duplicate_rows(dataset),
        duplicate_sentences=_duplicate_sentences(dataset),
        near_duplicates=_near_duplicates(dataset, sample),
        scripts={name: count / sentences for name, count in scripts.most_common()},
        labels=labels,
        scores=scores,
        findings=(*_uniform(labels, scores, len(dataset)), *too_long, *_faults(dataset)),
    )


def _measure(count_tokens: Callable[[list[str]], list[int]]) -> Measure:
    return lambda texts: np.asarray(count_tokens(texts.to_pylist()))


def distribution(values: np.ndarray) -> Distribution:
    """Summarise a non-empty array of numbers."""
    points = np.quantile(values, [0, 0.25, 0.5, 0.75, 0.95, 1])
    return Distribution(*(float(point) for point in (*points, values.mean())))


def _sentences(dataset: Dataset) -> Iterator[tuple[str, np.ndarray, Texts]]:
    """Yield (column, rows, texts) for each batch of each column."""
    for start, batch in walk(dataset, text_columns(dataset.shape)):
        for name in batch.schema.names:
            texts, owner = flat(batch.column(name))
            yield name, start + owner, texts


def _lengths(dataset: Dataset, measure: Measure, limit: float) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Return the sentence lengths of each column, and the rows with a sentence above the limit."""
    lengths: dict[str, list[np.ndarray]] = {}
    above = [np.empty(0, np.int64)]
    for name, rows, texts in _sentences(dataset):
        counts = np.asarray(measure(texts), np.int32)
        lengths.setdefault(name, []).append(counts)
        above.append(rows[counts > limit])
    return {name: np.concatenate(parts) for name, parts in lengths.items()}, np.unique(np.concatenate(above))


def _scripts(dataset: Dataset) -> Counter[str]:
    counts = np.zeros(len(SCRIPTS), np.int64)
    for _, _, texts in _sentences(dataset):
        counts += np.bincount(dominant_scripts(texts), minlength=len(SCRIPTS))
    return Counter({name: int(count) for name, count in zip(SCRIPTS, counts, strict=True) if count})


def _labels(dataset: Dataset) -> dict[str, int]:
    counts: Counter[str] = Counter()
    if "label" in COLUMNS[dataset.shape]:
        for _, batch in walk(dataset, ("label",)):
            counts.update(batch.column("label").to_pylist())
    return dict(counts.most_common())


def _scores(dataset: Dataset) -> Distribution | None:
    if "score" not in COLUMNS[dataset.shape] or len(dataset) == 0:
        return None
    return distribution(dataset.column("score").to_numpy())


def _duplicate_rows(dataset: Dataset) -> int:
    seen, names = Seen(), COLUMNS[dataset.shape]
    return sum(int(seen.repeats(hashes(joined(batch, names))).sum()) for _, batch in walk(dataset, names))


def _duplicate_sentences(dataset: Dataset) -> int:
    seen = Seen()
    return sum(int(seen.repeats(hashes(texts)).sum()) for _, _, texts in _sentences(dataset))


def _near_duplicates(dataset: Dataset, sample: int) -> NearDuplicates:
    rows = coordinated_sample(dataset, sample)
    sampled = replace(dataset, table=take_rows(dataset.table, rows))
    repeats = int((first_of_group(sampled, NEAR) != np.arange(len(rows))).sum())
    return NearDuplicates(NEAR, len(rows), repeats, whole=len(rows) == len(dataset))


def _uniform(labels: dict[str, int], scores: Distribution | None, rows: int) -> Iterator[Finding]:
    if len(labels) == 1 and rows > 1:
        yield Finding(f"all rows have the same label: {next(iter(labels))}", rows, "")
    if scores is not None and scores.least == scores.most and rows > 1:
        yield Finding(f"all rows have the same score: {scores.least:g}", rows, "")


def _faults(dataset: Dataset) -> Iterator[Finding]:
    names = text_columns(dataset.shape)
    tests: list[tuple[str, float, Callable[[pa.RecordBatch], np.ndarray]]] = [
        ("the replacement character U+FFFD, a sign of wrong decoding", 0, partial(_matching, names, "\ufffd")),
        ("text that looks like HTML", 0, partial(_matching, names, HTML)),
    ]
    form = form_of(dataset.shape)
    if form.sides == 2 and not form.is_judged:  # with a score or a label, equal sides can be intended
        tests.append(("both sides are the same text", MANY_IDENTICAL, partial(identical, columns=names)))
    for what, tolerated, test in tests:
        parts = [start + np.flatnonzero(test(batch)) for start, batch in walk(dataset, names)]
        rows = np.concatenate([np.empty(0, np.int64), *parts])
        if len(rows) > tolerated * len(dataset):
            yield from _finding(dataset, what, rows)


def _finding(dataset: Dataset, what: str, rows: np.ndarray) -> Iterator[Finding]:
    if len(rows):
        yield Finding(what, len(rows), dataset.place(int(rows[0])))


def _matching(columns: tuple[str, ...], pattern: str, batch: pa.RecordBatch) -> np.ndarray:
    return any_sentence(batch, columns, lambda texts: mask(pc.match_substring_regex(texts, pattern)))


@dataclass(frozen=True)
class TokenStats:
    """Tokens per word of a column, or per character in scripts without spaces."""

    column: str
    unit: str  # "word" or "character"
    mean: float
    unknown: float  # the share of unknown tokens, for characters that the tokenizer does not know

    def __str__(self) -> str:
        return f"{self.column}, {self.share}"

    @property
    def share(self) -> str:
        """The numbers as text."""
        unknown = f" ({self.unknown:.1%} of them unknown)" if self.unknown else ""
        return f"{self.mean:.2f} tokens per {self.unit}{unknown}"

    @property
    def many(self) -> bool:
        """Whether extending the vocabulary for this text would help the model."""
        return self.mean > MANY_TOKENS or self.unknown > MANY_UNKNOWN


def count_tokens(dataset: Dataset, tokenize: Tokenize, unknown: int | None) -> list[TokenStats]:
    """Count the tokens per word of each text column, over at most 10,000 evenly spaced rows, without punctuation.

    `tokenize` returns the ids of each text without special tokens; `unknown` is the id of the unknown token.
    """
    names = text_columns(dataset.shape)
    return [
        _count(dataset.own_name(name), sampled_texts(dataset, name, TOKEN_SAMPLE), tokenize, unknown) for name in names
    ]


def _count(name: str, texts: list[str], tokenize: Tokenize, unknown: int | None) -> TokenStats:
    words = [BETWEEN_WORDS.sub(" ", text).strip() for text in texts]
    unspaced = np.isin(dominant_scripts(pa.array(texts, pa.large_string())), UNSPACED).mean() > 0.5
    units = sum(len(text.replace(" ", "")) if unspaced else len(text.split()) for text in words)
    ids = np.concatenate([np.empty(0, np.int64), *(np.array(tokens, np.int64) for tokens in tokenize(words))])
    share = float((ids == unknown).mean()) if unknown is not None and len(ids) else 0.0
    return TokenStats(name, "character" if unspaced else "word", len(ids) / max(units, 1), share)
