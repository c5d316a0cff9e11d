"""Baselines without training, for comparison: word vectors, TF-IDF, whitening, SBERT-WK."""

import re

from sentloom.baselines.baseline import Baseline
from sentloom.baselines.tf_idf import FittedTfIdf, TfIdf
from sentloom.baselines.whitening import Whitened, whiten
from sentloom.baselines.wk_pooling import WkEncoder, wk_pooling
from sentloom.baselines.word_vectors import WordVectors
from sentloom.corpus.opening import open_data
from sentloom.encoder import Encoder
from sentloom.errors import InputError

__all__ = [
    "Baseline",
    "FittedTfIdf",
    "TfIdf",
    "Whitened",
    "WkEncoder",
    "WordVectors",
    "open_baseline",
    "whiten",
    "wk_pooling",
]

FORMS = "tf-idf, words:FILE, whitening:MODEL, whitening:MODEL:TEXTS, whitening-256:MODEL, wk:MODEL"
NAME = re.compile(r"(?P<kind>tf-idf|words|wk|whitening)(-(?P<dimension>\d+))?(:(?P<rest>.*))?", re.DOTALL)


def open_baseline(name: str, *, pooling: str | None = None) -> Baseline | None:
    """Open a baseline by name (see FORMS); None if it is another name. `pooling` overrides the model's own."""
    form = NAME.fullmatch(name)
    if form is None or (form["rest"] is None and form["kind"] != "tf-idf"):
        return None
    kind, dimension, rest = form["kind"], form["dimension"], form["rest"]
    if (
        (kind == "tf-idf") != (rest is None)
        or rest == ""
        or (dimension and (kind != "whitening" or not int(dimension)))
    ):
        raise InputError("baseline", f"unknown name {name!r}", f"one of {FORMS}", "correct the name")
    if kind == "tf-idf":
        return TfIdf()
    if kind == "words":
        return WordVectors.load(rest)
    if kind == "wk":
        return wk_pooling(Encoder.load(rest, pooling=pooling))
    return _whitening(rest, int(dimension) if dimension else None, pooling)


def _whitening(rest: str, dimension: int | None, pooling: str | None) -> Baseline:
    """Return whitening that is fitted on the scored text, or on the sentences of a data set if one is named."""
    model, _, texts = rest.partition(":")
    base = Encoder.load(model, pooling=pooling)
    if not texts:
        return Whitened(base, dimension)
    sentences = [text for _, _, text in open_data(texts).sentences()]
    return whiten(base, sentences, dimension, show_progress=True)
