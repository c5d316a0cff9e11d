"""Vectors from the words of a text: word vectors from a file, and TF-IDF, which any encoder should beat."""

import gzip
import hashlib
import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import numpy as np

from sentloom.data.sentences import as_texts, distinct, texts_at
from sentloom.encoder.encoder import Vectors
from sentloom.encoder.tokens import Role
from sentloom.errors import DataError, InputError, Problem
from sentloom.progress import progress

if TYPE_CHECKING:
    from sklearn.decomposition import TruncatedSVD
    from sklearn.feature_extraction.text import TfidfVectorizer

# Word vectors
HEADER = re.compile(rb"(\d+) (\d+)\s*")  # word2vec's first line: number of words, dimension
WORD_OR_MARK = re.compile(r"\w+|[^\w\s]")
CAPACITY = 1 << 16  # words at first; doubled when full
LINES_PER_STEP = 4096  # of the progress bar

# TF-IDF
WORDS = 50_000  # the most frequent words
WORD = r"(?u)\b\w+\b"  # scikit-learn's default drops words of one letter


class WordVectors:
    """Words and their vectors. An unknown word is looked up in lower case, and skipped if still unknown."""

    def __init__(self, rows: Mapping[str, int], vectors: Vectors) -> None:
        self.rows, self.vectors = rows, vectors

    @classmethod
    def load(cls, path: str | Path, *, capacity: int = CAPACITY) -> "WordVectors":
        """Read a text file (also .gz), with or without a header."""
        return cls(*_read(Path(path), capacity))

    @property
    def dimension(self) -> int:
        """The width of a vector."""
        return int(self.vectors.shape[1])

    def fingerprint(self) -> str:
        """Return a hash of words and vectors."""
        words = "\n".join(sorted(self.rows, key=self.rows.__getitem__))
        digest = hashlib.sha256(f"{self.vectors.shape} {words}".encode())
        digest.update(np.ascontiguousarray(self.vectors).data)
        return digest.hexdigest()

    def encode(self, texts: Sequence[str], *, role: Role = "symmetric", show_progress: bool = False) -> Vectors:
        """Return the mean (n, dimension) of each text's known words, zeros if it has none. The role has no effect."""

        def means(batch: list[str]) -> Vectors:
            out = np.zeros((len(batch), self.dimension), np.float32)
            with progress("averaging", len(batch), "texts", show_progress) as advance:
                for place, text in enumerate(batch):
                    if known := self._known(text):
                        out[place] = self.vectors[known].mean(axis=0)
                    advance(1)
            return out

        return of_distinct(texts, means)

    def _known(self, text: str) -> list[int]:
        rows = (self.rows.get(word, self.rows.get(word.lower())) for word in WORD_OR_MARK.findall(text))
        return [row for row in rows if row is not None]


class _Table:
    """Vectors that grow in place, without a second array in memory. The first vector of a repeated word counts."""

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.rows: dict[str, int] = {}
        self.vectors: Vectors = np.empty((0, 0), np.float32)

    def add(self, word: str, vector: Vectors) -> None:
        if word in self.rows:
            return
        if len(self.rows) == len(self.vectors):
            self.vectors.resize((max(self.capacity, 2 * len(self.rows)), len(vector)), refcheck=False)
        self.vectors[len(self.rows)] = vector
        self.rows[word] = len(self.rows)

    def fitting(self, width: int) -> Vectors:
        self.vectors.resize((len(self.rows), width), refcheck=False)
        return self.vectors


def _read(path: Path, capacity: int) -> tuple[dict[str, int], Vectors]:
    """Read each word's row, and the vectors."""
    table, width, promised, count, number = _Table(capacity), 0, 0, 0, 0
    for number, line in _lines(path):
        if number == 1 and (header := HEADER.fullmatch(line)):
            promised, width = map(int, header.groups())
            continue
        width = width or len(line.split()) - 1
        word, fields = _cut(path, number, line, width)
        count += 1
        table.add(word, _numbers(path, number, fields))
    if not count or count < promised:
        _refuse(path, number, f"the file ends after {count} words", f"{promised or 'some'} words")
    return table.rows, table.fitting(width)


def _lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """Yield the lines that are not blank with their numbers, and show the progress in bytes."""
    number = done = 0
    try:
        with path.open("rb") as raw, progress(f"reading {path.name}", path.stat().st_size, "bytes") as advance:
            for number, line in enumerate(gzip.GzipFile(fileobj=raw) if path.suffix == ".gz" else raw, 1):
                if number % LINES_PER_STEP == 0:
                    advance(raw.tell() - done)
                    done = raw.tell()
                if line := line.rstrip():
                    yield number, line
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        _refuse(path, number + 1, f"the file is damaged ({error})", "a complete .gz file")
    except OSError as error:
        problem = f"the file cannot be read ({error.strerror})"
        raise InputError(str(path), problem, "word vectors as text", "check the path") from None


def _cut(path: Path, number: int, line: bytes, width: int) -> tuple[str, list[bytes]]:
    """Split a line into a word, which may contain spaces, and `width` numbers."""
    expected = f"a word and {width} numbers" if width > 0 else "a word and numbers"
    word, *fields = line.rsplit(None, max(width, 0))
    if width < 1 or len(fields) != width:
        _refuse(path, number, f"found {len(line.split())} fields", expected)
    if len(parts := word.split()) > 1 and _is_number(parts[-1]):
        _refuse(path, number, f"found more than {width} numbers", expected)
    try:
        return word.decode(), fields
    except UnicodeDecodeError as error:
        _refuse(path, number, f"the word is not UTF-8 ({error.reason})", expected)


def _numbers(path: Path, number: int, fields: list[bytes]) -> Vectors:
    try:
        with np.errstate(over="ignore"):
            vector: Vectors = np.array(list(map(float, fields)), np.float32)
    except ValueError as error:
        _refuse(path, number, str(error), "numbers after the word")
    if not np.isfinite(vector).all():
        _refuse(path, number, "found NaN or infinity", "finite numbers")
    return vector


def _is_number(field: bytes) -> bool:
    try:
        float(field)
    except ValueError:
        return False
    return True


def _refuse(path: Path, number: int, problem: str, expected: str) -> NoReturn:
    fix = "download the file again, or remove the line"
    raise DataError([Problem(str(path), f"line {number}", problem, expected)], 1, fix) from None


@dataclass(frozen=True)
class TfIdf:
    """Unfitted TF-IDF: single words in lower case, tf times smooth idf, unit length, as in scikit-learn.

    It is fitted on the texts that are scored. Metrics and classifiers need dense vectors, so with more than `width`
    words the vectors are projected to their directions of greatest variance, without centring: latent semantic
    analysis. A `binary` one has 1 for every word that occurs, without weights: the cosine baseline of SemEval-2017.
    """

    width: int = 1024  # of a vector, at most
    binary: bool = False

    def fit(self, texts: Sequence[str]) -> "FittedTfIdf":
        """Learn the words of texts and their document frequencies."""
        from sklearn.decomposition import TruncatedSVD
        from sklearn.feature_extraction.text import TfidfVectorizer

        counted = {"binary": True, "use_idf": False} if self.binary else {}
        vectorizer = TfidfVectorizer(token_pattern=WORD, max_features=WORDS, dtype=np.float32, **counted)
        try:
            weighted = vectorizer.fit_transform(texts)
        except ValueError:  # an empty vocabulary
            raise InputError(
                "binary" if self.binary else "tf-idf", "the texts contain no words", "", "check the texts"
            ) from None
        if min(weighted.shape) <= self.width:
            return FittedTfIdf(vectorizer, None)
        return FittedTfIdf(vectorizer, TruncatedSVD(self.width, random_state=0).fit(weighted))

    def fingerprint(self) -> str:
        """Return a hash of the settings."""
        kind = "binary" if self.binary else "tf-idf"
        return hashlib.sha256(f"{kind} {self.width} {WORDS} {WORD}".encode()).hexdigest()

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
        weights = self.vectorizer.idf_.tobytes() if self.vectorizer.use_idf else b"binary"
        return hashlib.sha256(words.encode() + weights).hexdigest()

    def encode(self, texts: Sequence[str], *, role: Role = "symmetric", show_progress: bool = False) -> Vectors:
        """Return the vectors (n, dimension) of texts, zeros if no word is known. The role has no effect."""
        return of_distinct(texts, self._vectors)

    def _vectors(self, texts: Sequence[str]) -> Vectors:
        weighted = self.vectorizer.transform(texts)
        vectors: Vectors = weighted.toarray() if self.svd is None else self.svd.transform(weighted)
        return vectors.astype(np.float32)


def of_distinct(texts: Iterable[str], encode: Callable[[list[str]], Vectors]) -> Vectors:
    """Encode each distinct text once; an item that is not a string is an error that names its position."""
    sequence = as_texts([texts] if isinstance(texts, str) else texts)
    rows, first_of_row = distinct(sequence)
    vectors = encode(texts_at(sequence, rows))[np.searchsorted(rows, first_of_row)]
    return vectors[0] if isinstance(texts, str) else vectors
