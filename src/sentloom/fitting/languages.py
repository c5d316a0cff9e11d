"""The language of each row of an input, and training rows in parts of one language each."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sentloom.data.dataset import Dataset
from sentloom.data.nli import triplets_from_nli
from sentloom.data.shapes import COLUMNS, Shape
from sentloom.fitting.inputs import LANGUAGE_COLUMNS, FitInput
from sentloom.hygiene.languages import recognised, text_languages

FEWEST_EXAMPLES = 200  # of a language, for batches of its own: with fewer, the same rows meet too often
MOST_DETECTED = 50_000  # rows, in about five seconds; with more, a column must say the language


@dataclass(frozen=True)
class LanguagePart:
    """The training rows of one language, and of how many examples batches are made: triplets, for NLI."""

    language: str
    data: Dataset
    examples: int


def row_languages(given: FitInput, rows: Dataset, most: int = MOST_DETECTED) -> list[str]:
    """The language of each row: that of the column `language`, or else detected if the file has several; "": unknown.

    Empty if the file has a single language or too many rows to detect it, and for translations, which have two in every
    row.
    """
    if rows.shape is Shape.PARALLEL:
        return []
    columns = [name for name in LANGUAGE_COLUMNS if name in rows.table.column_names]
    if columns:
        return [str(code or "").strip().lower() for code in rows.column(columns[0]).to_pylist()]
    if len(rows) > most or len(recognised(next(iter(given.column_shares.values())))) < 2:
        return []
    return [code or "" for code in text_languages(first_texts(rows))]


def first_texts(rows: Dataset) -> list[str]:
    """The texts of the first column."""
    texts: list[str] = rows.column(COLUMNS[rows.shape][0]).to_pylist()
    return texts


def language_parts(given: FitInput, rows: Dataset) -> list[LanguagePart]:
    """The training rows of each language, the largest first; none for raw text, or if only one language has enough.

    Rows of other languages, and rows whose language is unknown, go with the largest one.
    """
    if rows.shape is Shape.TEXTS:
        return []
    examples = triplets_from_nli(rows) if rows.shape is Shape.NLI else rows
    codes = row_languages(given, examples)
    counts = Counter(filter(None, codes))
    large = [code for code, count in counts.most_common() if count >= FEWEST_EXAMPLES]
    if len(large) < 2:
        return []
    own = np.array([code if code in large else large[0] for code in _of_rows(rows, examples, codes)])
    plain = without_languages(rows)
    return [LanguagePart(code, plain.select(own == code), counts[code]) for code in large]


def _of_rows(rows: Dataset, examples: Dataset, codes: Sequence[str]) -> Sequence[str]:
    """The language of each row, from those of the examples made of them; rows of one premise stay together."""
    if examples is rows:
        return codes
    known = dict(zip(first_texts(examples), codes, strict=True))
    return [known.get(text, "") for text in first_texts(rows)]


def without_languages(rows: Dataset) -> Dataset:
    """The rows with only what methods take."""
    extra = [name for name in LANGUAGE_COLUMNS if name in rows.table.column_names]
    return rows.derive(rows.table.drop_columns(extra), "without languages") if extra else rows
