"""What all baselines share: the interface for scoring."""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from sentloom.data.sentences import as_texts, distinct, texts_at
from sentloom.encoder.encoder import Vectors
from sentloom.encoder.tokens import Role
from sentloom.errors import InputError


class Baseline(Protocol):
    """Can be scored like an Encoder. Baselines that are fitted on the scored text also have a `fit(texts)`."""

    def fingerprint(self) -> str:
        """Return a hash of everything a vector depends on, except the text that it is yet to be fitted on."""

    def encode(self, texts: Sequence[str], *, role: Role = "symmetric", show_progress: bool = False) -> Vectors:
        """Return the vectors (n, dimension) of texts. An unfitted baseline is fitted on these texts."""


def of_distinct(texts: Iterable[str], encode: Callable[[list[str]], Vectors]) -> Vectors:
    """Encode each distinct text once; an item that is not a string is an error that names its position."""
    sequence = as_texts([texts] if isinstance(texts, str) else texts)
    rows, first_of_row = distinct(sequence)
    vectors = encode(texts_at(sequence, rows))[np.searchsorted(rows, first_of_row)]
    return vectors[0] if isinstance(texts, str) else vectors


FORMS = (
    "tf-idf, words:FILE, whitening:MODEL, whitening:MODEL:TEXTS, whitening-256:MODEL, flow:MODEL, flow:MODEL:TEXTS, "
    "wk:MODEL"
)
BETWEEN_TEXTS = ","
FITTED = ("whitening", "flow")  # on the scored text, or on TEXTS
NAME = re.compile(r"(?P<kind>tf-idf|words|wk|whitening|flow)(-(?P<dimension>\d+))?(:(?P<rest>.*))?", re.DOTALL)


@dataclass(frozen=True)
class BaselineName:
    """A baseline by its parts: `source` is a model, or the file of word vectors; "" for tf-idf."""

    kind: str
    source: str = ""
    texts: tuple[str, ...] = ()  # the data that it is fitted on; (): the scored text
    dimension: int | None = None

    def __str__(self) -> str:
        dimension = f"-{self.dimension}" if self.dimension else ""
        return ":".join([f"{self.kind}{dimension}", *filter(None, (self.source, BETWEEN_TEXTS.join(self.texts)))])

    @property
    def model(self) -> str | None:
        """The encoder that it is made of."""
        return None if self.kind in ("tf-idf", "words") else self.source

    @property
    def files(self) -> tuple[str, ...]:
        """The data that it reads."""
        return (self.source,) if self.kind == "words" else self.texts

    def open(self, pooling: str | None = None) -> "Baseline":
        """Load it; `pooling` overrides that of its encoder."""
        from sentloom.lab.baselines import open_parsed

        return open_parsed(self, pooling)

    def located(self, locate: Callable[[str], str]) -> "BaselineName":
        """With its model and files located."""
        return replace(self, source=self.source and locate(self.source), texts=tuple(map(locate, self.texts)))


def parse_baseline(name: str) -> BaselineName | None:
    """Parse the name of a baseline; None if it is another name."""
    form = NAME.fullmatch(name)
    if form is None or (form["rest"] is None and form["kind"] != "tf-idf"):
        return None
    kind, dimension, rest = form["kind"], form["dimension"], form["rest"]
    wrong = (kind == "tf-idf") != (rest is None) or rest == ""
    if wrong or (dimension and (kind != "whitening" or not int(dimension))):
        raise InputError("baseline", f"unknown name {name!r}", f"one of {FORMS}", "correct the name")
    source, _, texts = (rest or "").partition(":") if kind in FITTED else (rest or "", "", "")
    several = tuple(texts.split(BETWEEN_TEXTS)) if texts else ()
    return BaselineName(kind, source, several, int(dimension) if dimension else None)
