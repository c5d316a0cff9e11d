"""BM25 (Robertson and Walker, 1994): which texts share rare words with a query; one sparse product per batch."""

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

K1, B = 1.5, 0.75  # term-frequency saturation, and how much long texts are penalised
SINGLE = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"  # kana and ideographs, written without spaces
WORD = re.compile(rf"[{SINGLE}]|[^\W{SINGLE}]+")


def words_of(text: str) -> list[str]:
    """Lower-case words; single characters in scripts without spaces."""
    return WORD.findall(text.lower())


class Bm25:
    """An index of texts, as Lucene scores them: a word that is in every text still counts a little."""

    def __init__(self, texts: Sequence[str]) -> None:
        from scipy import sparse  # takes a second, and most commands need no BM25
        from sklearn.feature_extraction.text import CountVectorizer

        self._vectorizer = CountVectorizer(analyzer=words_of, dtype=np.float32)
        try:
            counts = self._vectorizer.fit_transform(texts).tocsr()
        except ValueError:  # no text has a word
            counts, self._vectorizer = sparse.csr_matrix((len(texts), 1), dtype=np.float32), None
        self._weights = _weighted(counts).T.tocsr()  # (words, texts)

    def scores(self, queries: Sequence[str]) -> npt.NDArray[np.float32]:
        """(queries, texts): how well each text matches; 0 if they share no word."""
        if self._vectorizer is None:
            return np.zeros((len(queries), self._weights.shape[1]), np.float32)
        asked = self._vectorizer.transform(queries)
        scores: npt.NDArray[np.float32] = (asked @ self._weights).toarray()
        return scores


def _weighted(counts: Any) -> Any:
    """The weight of each word (columns) in each text (rows)."""
    texts, _ = counts.shape
    lengths = np.asarray(counts.sum(axis=1)).ravel()
    mean = max(float(lengths.mean()), 1e-9) if texts else 1.0
    having = np.bincount(counts.indices, minlength=counts.shape[1])
    rarity = np.log(1 + (texts - having + 0.5) / (having + 0.5)).astype(np.float32)
    weights = counts.tocoo()
    penalty = K1 * (1 - B + B * lengths[weights.row] / mean)
    weights.data = rarity[weights.col] * weights.data / (weights.data + penalty)
    return weights.tocsr()
