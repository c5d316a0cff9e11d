"""Count the tokens per word of a data set: few if the tokenizer knows the language, else many."""

import re
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from sentloom.data.columns import sampled_texts
from sentloom.data.dataset import Dataset
from sentloom.data.shapes import text_columns
from sentloom.hygiene.scripts import SCRIPTS, dominant_scripts

SAMPLE = 10_000  # rows
MANY_TOKENS = 1.5  # per word or character; the embedded model: English 1.05, French 1.6, German 2.0, Turkish 2.9
MANY_UNKNOWN = 0.01
UNSPACED = [SCRIPTS.index(name) for name in ("Han", "Kana", "Thai")]
BETWEEN_WORDS = re.compile(r"[\W_]+")

Tokenize = Callable[[list[str]], list[list[int]]]


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
    return [_count(dataset.own_name(name), sampled_texts(dataset, name, SAMPLE), tokenize, unknown) for name in names]


def _count(name: str, texts: list[str], tokenize: Tokenize, unknown: int | None) -> TokenStats:
    words = [BETWEEN_WORDS.sub(" ", text).strip() for text in texts]
    unspaced = np.isin(dominant_scripts(pa.array(texts, pa.large_string())), UNSPACED).mean() > 0.5
    units = sum(len(text.replace(" ", "")) if unspaced else len(text.split()) for text in words)
    ids = np.concatenate([np.empty(0, np.int64), *(np.array(one, np.int64) for one in tokenize(words))])
    share = float((ids == unknown).mean()) if unknown is not None and len(ids) else 0.0
    return TokenStats(name, "character" if unspaced else "word", len(ids) / max(units, 1), share)
