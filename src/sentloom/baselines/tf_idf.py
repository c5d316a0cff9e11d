"""TF-IDF: words weighted by their rarity, a baseline that any encoder should beat.

It is fitted on the texts that are scored. Metrics and classifiers need dense vectors, so with more than `width` words
the vectors are projected to their directions of greatest variance, without centring: latent semantic analysis.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from sentloom.baselines.baseline import of_distinct
from sentloom.encoder.encoder import Vectors
from sentloom.encoder.prompts import Role
from sentloom.errors import InputError

if TYPE_CHECKING:
    from sklearn.decomposition import TruncatedSVD
    from sklearn.feature_extraction.text import TfidfVectorizer

WORDS = 50_000  # the most frequent words
WORD = r"(?u)\b\w+\b"  # scikit-learn's default drops words of one letter


@dataclass(frozen=True)
class TfIdf:
    """Unfitted TF-IDF: single words in lower case, tf times smooth idf, unit length, as in scikit-learn."""

    width: int = 1024  # of a vector, at most

    def fit(self, texts: Sequence[str]) -> "FittedTfIdf":
        """Learn the words of texts and their document frequencies."""
        from sklearn.decomposition import TruncatedSVD
        from sklearn.feature_extraction.text import TfidfVectorizer

        vectorizer = TfidfVectorizer(token_pattern=WORD, max_features=WORDS, dtype=np.float32)
        try:
            weighted = vectorizer.fit_transform(texts)
        except ValueError:  # an empty vocabulary
            raise InputError("tf-idf", "the texts contain no words", "", "check the texts") from None
        if min(weighted.shape) <= self.width:
            return FittedTfIdf(vectorizer, None)
        return FittedTfIdf(vectorizer, TruncatedSVD(self.width, random_state=0).fit(weighted))

    def fingerprint(self) -> str:
        """Return a hash of the settings."""
        return hashlib.sha256(f"tf-idf {self.width} {WORDS} {WORD}".encode()).hexdigest()

    def encode(self, texts: Sequence[str], *, role: Role = "symmetric", show_progress: bool = False) -> Vectors:
        """Fit on these texts and encode them."""
        return self.fit(texts).encode(texts)


class FittedTfIdf:
    """Fitted TF-IDF."""

    def __init__(self, vectorizer: "TfidfVectorizer", svd: "TruncatedSVD | None") -> None:
        self.vectorizer, self.svd = vectorizer, svd

    @property
    def dimension(self) -> int:
        """The width of a vector: the number of words, or of directions after projection."""
        return len(self.vectorizer.vocabulary_) if self.svd is None else len(self.svd.components_)

    def fingerprint(self) -> str:
        """Return a hash of the words, their weights and the width."""
        words = " ".join([*self.vectorizer.get_feature_names_out(), str(self.dimension)])
        return hashlib.sha256(words.encode() + self.vectorizer.idf_.tobytes()).hexdigest()

    def encode(self, texts: Sequence[str], *, role: Role = "symmetric", show_progress: bool = False) -> Vectors:
        """Return the vectors (n, dimension) of texts, zeros if no word is known. The role has no effect."""
        return of_distinct(texts, self._vectors)

    def _vectors(self, texts: Sequence[str]) -> Vectors:
        weighted = self.vectorizer.transform(texts)
        vectors: Vectors = weighted.toarray() if self.svd is None else self.svd.transform(weighted)
        return vectors.astype(np.float32)
