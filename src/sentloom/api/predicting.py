"""`Predictor`: labels for texts, by the classifiers in a model folder."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from pathlib import Path

from sentloom.arguments import typed
from sentloom.classify.classifier import Classifier, Prediction, load
from sentloom.data import Dataset
from sentloom.data.shapes import Shape
from sentloom.encoder import Encoder
from sentloom.encoder.locate import locate
from sentloom.errors import InputError
from sentloom.files import cache_folder
from sentloom.search.vectors import VectorCache, Vectors

WINDOW = 8_192  # texts whose vectors are in memory

Encode = Callable[[Sequence[str]], Vectors]


@dataclass(frozen=True)
class Predictor:
    """An encoder with the classifiers that were fitted with it, one for each label column.

    >>> import sentloom
    >>> rows = [(f"I want my money back for {n}", "refund") for n in range(9)]
    >>> rows += [(f"Where is parcel {n}?", "delivery") for n in range(9)]
    >>> done = sentloom.fit(rows, "tickets", shape="classification", budget="2steps")
    >>> Predictor.load("tickets").predict(["my parcel has not arrived"])[0].label
    'delivery'
    """

    encoder: Encoder
    classifiers: tuple[Classifier, ...]

    @classmethod
    @typed
    def load(cls, model: str | Path, *, device: str | None = None, precision: str | None = None) -> "Predictor":
        """Load a model that was fitted to texts with labels."""
        encoder = Encoder.load(model, device=device, precision=precision)  # type: ignore[arg-type]
        return cls(encoder, load(locate(model), encoder.dimension))

    @typed
    def predict(self, texts: Sequence[str], *, column: str | None = None) -> list[Prediction]:
        """The label of each text, its probability, and whether to leave the text to people.

        `column` names one of several label columns; by default the first.
        """
        own = self.classifier(column)
        return [answers[0] for answers in replace(self, classifiers=(own,)).answers(texts, self.encoder.encode)]

    def classifier(self, column: str | None = None) -> Classifier:
        """The classifier of a label column; by default the first."""
        columns = [own.column for own in self.classifiers]
        if column is not None and column not in columns:
            expected = f"one of {', '.join(columns)}"
            raise InputError("column", f"no classifier was fitted for {column!r}", expected, "correct the name")
        return self.classifiers[columns.index(column) if column else 0]

    def answers(self, texts: Sequence[str], encode: Encode) -> Iterator[tuple[Prediction, ...]]:
        """The answers of all classifiers for each text; one without a word is left to people."""
        remaining = iter(texts)
        while part := [*islice(remaining, WINDOW)]:
            vectors = encode(part)
            answers = zip(*(own.predict(vectors) for own in self.classifiers), strict=True)
            for text, of_text in zip(part, answers, strict=True):
                yield of_text if text.strip() else tuple(replace(answer, abstain=True) for answer in of_text)

    def with_examples(self, data: Dataset) -> "Predictor":
        """The predictor after its classifier has learned from labelled texts, whose labels may be new."""
        if data.shape is not Shape.CLASSIFICATION:
            raise InputError(data.files[0], f"these are {data.shape}", "texts with labels", "give a file of these")
        if len(self.classifiers) > 1:
            names = " and ".join(own.column for own in self.classifiers)
            problem = f"the model has several label columns, {names}"
            raise InputError(data.files[0], problem, "a model with one", "fit again with the new rows")
        (own,) = self.classifiers
        return replace(self, classifiers=(own.with_examples(self.encoder.encode(data["text"]), data["label"]),))


def cached_encode(encoder: Encoder) -> Encode:
    """Encode with the cache of vectors, so that work that was stopped continues."""
    cache = VectorCache(cache_folder() / "vectors")
    return partial(_encoded, cache, encoder, f"{encoder.fingerprint()}-symmetric")


def _encoded(cache: VectorCache, encoder: Encoder, key: str, texts: Sequence[str]) -> Vectors:
    return cache.vectors(key, texts, encoder.encode, show_progress=True)
