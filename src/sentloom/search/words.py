"""Search by words: BM25 (Robertson and Walker, 1994) as Lucene scores it, computed by bm25s, with Snowball stemming.

A code such as AB-1234 counts as a whole besides its parts, so that a text with the same code comes before others.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from sentloom.data.hygiene.languages import language_name, language_shares, recognised

K1, B = 1.5, 0.75  # term-frequency saturation, and how much long texts are penalised
SINGLE = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"  # kana and ideographs, written without spaces
WORD = re.compile(rf"[{SINGLE}]|[^\W{SINGLE}]+")
CODE = re.compile(r"\w+(?:[-./:#]\w+)+", re.ASCII)  # kept whole if it has a digit
SAMPLE = 1_000  # texts whose language is recognised

Stem = Callable[[list[str]], list[str]]


def words_of(text: str) -> list[str]:
    """Lower-case words; single characters in scripts without spaces."""
    return WORD.findall(text.lower())


def terms_of(text: str, stem: Stem | None = None) -> list[str]:
    """What is looked up: the words of a text, stemmed, and its codes.

    >>> terms_of("Replace the filter AB-12")
    ['replace', 'the', 'filter', 'ab', '12', 'ab-12']
    """
    words = words_of(text)
    codes = [code for code in CODE.findall(text.lower()) if any(map(str.isdigit, code))]
    return [*(stem(words) if stem else words), *codes]


def stemming_of(texts: Sequence[str]) -> str:
    """The stemmer for the language that most of these texts are in; "" if there is none for it."""
    import Stemmer

    step = max(1, len(texts) // SAMPLE)
    shares = recognised(language_shares([str(text) for text in texts[::step]]))
    name = language_name(next(iter(shares))).lower() if shares else ""
    return name if name in Stemmer.algorithms() else ""


class WordIndex:
    """An index of texts. A word that is in every text still counts a little."""

    def __init__(self, texts: Iterable[str], stemming: str = "") -> None:
        """`stemming` names a Snowball stemmer, such as english; without one, words count as they are written."""
        import bm25s  # with the next, only where something is searched by words
        import Stemmer

        self._stem: Stem | None = Stemmer.Stemmer(stemming).stemWords if stemming else None
        self._ids: dict[str, int] = {}
        by_text = [
            [self._ids.setdefault(term, len(self._ids)) for term in terms_of(str(text), self._stem)] for text in texts
        ]
        self._size = len(by_text)
        self._index: Any = bm25s.BM25(k1=K1, b=B, method="lucene")
        if self._ids:
            self._index.index((by_text, self._ids), create_empty_token=False, show_progress=False)

    def scores(self, queries: Sequence[str]) -> npt.NDArray[np.float32]:
        """(queries, texts): how well each text matches; 0 if they share no word."""
        scores = np.zeros((len(queries), self._size), np.float32)
        for row, query in enumerate(queries):
            known = [self._ids[term] for term in terms_of(str(query), self._stem) if term in self._ids]
            if known:
                scores[row] = self._index.get_scores_from_ids(known)
        return scores
