"""Baselines by name."""

import re
from collections.abc import Callable
from dataclasses import dataclass, replace

from sentloom.data.corpus.opening import open_data
from sentloom.encoder import Encoder
from sentloom.errors import InputError
from sentloom.evaluation.bench import Model
from sentloom.lab.baselines.flow import Flowed, fit_flow
from sentloom.lab.baselines.whitening import Whitened, whiten
from sentloom.lab.baselines.wk_pooling import wk_pooling
from sentloom.lab.baselines.words import TfIdf, WordVectors

FORMS = (
    "tf-idf, binary, words:FILE, whitening:MODEL, whitening:MODEL:TEXTS, whitening-256:MODEL, flow:MODEL, "
    "flow:MODEL:TEXTS, wk:MODEL"
)
NAME = re.compile(r"(?P<kind>tf-idf|binary|words|wk|whitening|flow)(-(?P<dimension>\d+))?(:(?P<rest>.*))?", re.DOTALL)
BETWEEN_TEXTS = ","
OF_TEXTS = ("tf-idf", "binary")  # of the words of the scored text alone
FITTED = ("whitening", "flow")  # on the scored text, or on TEXTS


def parse_baseline(name: str) -> "BaselineName | None":
    """Parse the name of a baseline (see FORMS); None if it is another name."""
    form = NAME.fullmatch(name)
    if form is None or (form["rest"] is None and form["kind"] not in OF_TEXTS):
        return None
    kind, dimension, rest = form["kind"], form["dimension"], form["rest"]
    wrong = (kind in OF_TEXTS) != (rest is None) or rest == ""
    if wrong or (dimension and (kind != "whitening" or not int(dimension))):
        raise InputError("baseline", f"unknown name {name!r}", f"one of {FORMS}", "correct the name")
    source, _, texts = (rest or "").partition(":") if kind in FITTED else (rest or "", "", "")
    several = tuple(texts.split(BETWEEN_TEXTS)) if texts else ()
    return BaselineName(kind, source, several, int(dimension) if dimension else None)


@dataclass(frozen=True)
class BaselineName:
    """A baseline by its parts: `source` is a model, or the file of word vectors; "" for tf-idf and binary."""

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
        return None if self.kind in (*OF_TEXTS, "words") else self.source

    @property
    def files(self) -> tuple[str, ...]:
        """The data that it reads."""
        return (self.source,) if self.kind == "words" else self.texts

    def located(self, locate: Callable[[str], str]) -> "BaselineName":
        """With its model and files located."""
        return replace(self, source=self.source and locate(self.source), texts=tuple(map(locate, self.texts)))

    def open(self, pooling: str | None = None) -> Model:
        """Load it; `pooling` overrides that of its encoder."""
        if self.kind in OF_TEXTS:
            return TfIdf(binary=self.kind == "binary")
        if self.kind == "words":
            return WordVectors.load(self.source)
        base = Encoder.load(self.source, pooling=pooling)
        if self.kind == "wk":
            return wk_pooling(base)
        return _fitted(self, base) if self.texts else _unfitted(self, base)


def _unfitted(name: BaselineName, base: Encoder) -> Model:
    """Return what is fitted on the scored text."""
    return Flowed(base) if name.kind == "flow" else Whitened(base, name.dimension)


def _fitted(name: BaselineName, base: Encoder) -> Model:
    """Return what is fitted on the sentences of a data set."""
    sentences = [text for data in name.texts for _, _, text in open_data(data).sentences()]
    if name.kind == "flow":
        return fit_flow(base, sentences, show_progress=True)
    return whiten(base, sentences, name.dimension, show_progress=True)
