"""Words weighted by how rare they are: what any encoder should beat.

Fitted on the texts that are scored. Only their most frequent words count, so that vectors, which the metrics want
dense, stay small: 10,000 texts are at most 328 MB.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from sentloom.baselines.baseline import of_distinct, refuse_to_save
from sentloom.encoder.encoder import Vectors
from sentloom.encoder.prompts import Role
from sentloom.errors import InputError, MissingPart

if TYPE_CHECKING:
    from sklearn.feature_extraction.text import TfidfVectorizer

WORD = r"(?u)\b\w+\b"  # scikit-learn's own also drops words of one letter


@dataclass(frozen=True)
class TfIdf:
    """TF-IDF yet to be fitted: single words in lower case, tf times smooth idf, unit length, as scikit-learn has it."""

    name: ClassVar[str] = "tf-idf"
    words: int = 8192  # the most frequent ones

    @property
    def dimension(self) -> int:
        """The greatest width of a vector."""
        return self.words

    def fit(self, texts: Sequence[str]) -> "FittedTfIdf":
        """Learn the words of texts and how many of them have each."""
        try:
            from sklearn.feature_extraction.text import TfidfVectorizer
        except ImportError:
            next_step = "pip install scikit-learn, or 'sentloom[embedded]', which has it"
            raise MissingPart("tf-idf", "no package scikit-learn", "scikit-learn", next_step) from None
        vectorizer = TfidfVectorizer(token_pattern=WORD, max_features=self.words, dtype=np.float32)
        try:
            vectorizer.fit(texts)
        except ValueError:  # it has no word for nothing at all
            raise InputError("tf-idf", "texts without a word", "words to weigh", "check the texts") from None
        return FittedTfIdf(vectorizer)

    def fingerprint(self) -> str:
        """A hash of the settings."""
        return hashlib.sha256(f"tf-idf {self.words} {WORD}".encode()).hexdigest()

    def encode(self, texts: Sequence[str], *, role: Role = "symmetric", show_progress: bool = False) -> Vectors:
        """Fitted on these texts and applied to them."""
        return self.fit(texts).encode(texts)

    def save(self, folder: str | Path) -> None:
        """Refused."""
        refuse_to_save(self.name, folder, "which is fitted on the texts that it scores")


class FittedTfIdf:
    """TF-IDF that knows its words."""

    name = TfIdf.name

    def __init__(self, vectorizer: "TfidfVectorizer") -> None:
        self.vectorizer = vectorizer

    @property
    def dimension(self) -> int:
        """The width of a vector: one number a word."""
        return len(self.vectorizer.vocabulary_)

    def fingerprint(self) -> str:
        """A hash of the words and their weights."""
        words = " ".join(self.vectorizer.get_feature_names_out())
        return hashlib.sha256(words.encode() + self.vectorizer.idf_.tobytes()).hexdigest()

    def encode(self, texts: Sequence[str], *, role: Role = "symmetric", show_progress: bool = False) -> Vectors:
        """The vectors (n, dimension) of texts, zeros where none of the words is known. Roles are all one."""
        return of_distinct(texts, lambda some: self.vectorizer.transform(some).toarray())

    def save(self, folder: str | Path) -> None:
        """Refused."""
        refuse_to_save(self.name, folder, "which is fitted on the texts that it scores")
