"""Words weighted by how rare they are: what any encoder should beat.

Fitted on the texts that are scored. The metrics and classifiers want dense vectors, so where there are more words than
`width`, the vectors are turned to their directions of greatest variance, without a shift: latent semantic analysis.
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
from sentloom.errors import InputError

if TYPE_CHECKING:
    from sklearn.decomposition import TruncatedSVD
    from sklearn.feature_extraction.text import TfidfVectorizer

WORDS = 50_000  # the most frequent ones
WORD = r"(?u)\b\w+\b"  # scikit-learn's own also drops words of one letter


@dataclass(frozen=True)
class TfIdf:
    """TF-IDF yet to be fitted: single words in lower case, tf times smooth idf, unit length, as scikit-learn has it."""

    name: ClassVar[str] = "tf-idf"
    width: int = 1024

    @property
    def dimension(self) -> int:
        """The greatest width of a vector."""
        return self.width

    def fit(self, texts: Sequence[str]) -> "FittedTfIdf":
        """Learn the words of texts and how many of them have each."""
        from sklearn.decomposition import TruncatedSVD
        from sklearn.feature_extraction.text import TfidfVectorizer

        vectorizer = TfidfVectorizer(token_pattern=WORD, max_features=WORDS, dtype=np.float32)
        try:
            weighted = vectorizer.fit_transform(texts)
        except ValueError:  # it has no word for nothing at all
            raise InputError("tf-idf", "texts without a word", "words to weigh", "check the texts") from None
        if min(weighted.shape) <= self.width:
            return FittedTfIdf(vectorizer, None)
        return FittedTfIdf(vectorizer, TruncatedSVD(self.width, random_state=0).fit(weighted))

    def fingerprint(self) -> str:
        """A hash of the settings."""
        return hashlib.sha256(f"tf-idf {self.width} {WORDS} {WORD}".encode()).hexdigest()

    def encode(self, texts: Sequence[str], *, role: Role = "symmetric", show_progress: bool = False) -> Vectors:
        """Fitted on these texts and applied to them."""
        return self.fit(texts).encode(texts)

    def save(self, folder: str | Path) -> None:
        """Refused."""
        refuse_to_save(self.name, folder, "which is fitted on the texts that it scores")


class FittedTfIdf:
    """TF-IDF that knows its words."""

    name = TfIdf.name

    def __init__(self, vectorizer: "TfidfVectorizer", turned: "TruncatedSVD | None") -> None:
        self.vectorizer, self.turned = vectorizer, turned

    @property
    def dimension(self) -> int:
        """The width of a vector: one number a word, or a direction."""
        return len(self.vectorizer.vocabulary_) if self.turned is None else len(self.turned.components_)

    def fingerprint(self) -> str:
        """A hash of the words, their weights and the width."""
        words = " ".join([*self.vectorizer.get_feature_names_out(), str(self.dimension)])
        return hashlib.sha256(words.encode() + self.vectorizer.idf_.tobytes()).hexdigest()

    def encode(self, texts: Sequence[str], *, role: Role = "symmetric", show_progress: bool = False) -> Vectors:
        """The vectors (n, dimension) of texts, zeros where none of the words is known. Roles are all one."""
        return of_distinct(texts, self._vectors)

    def _vectors(self, texts: Sequence[str]) -> Vectors:
        weighted = self.vectorizer.transform(texts)
        found: Vectors = weighted.toarray() if self.turned is None else self.turned.transform(weighted)
        return found.astype(np.float32)

    def save(self, folder: str | Path) -> None:
        """Refused."""
        refuse_to_save(self.name, folder, "which is fitted on the texts that it scores")
