"""Baselines without training of an encoder, for comparison: word vectors, TF-IDF, whitening, BERT-flow, SBERT-WK."""

from sentloom.data.corpus.opening import open_data
from sentloom.encoder import Encoder
from sentloom.lab.baselines.flow import Flowed, FlowEncoder, fit_flow
from sentloom.lab.baselines.names import FORMS, Baseline, BaselineName, parse_baseline
from sentloom.lab.baselines.whitening import Whitened, whiten
from sentloom.lab.baselines.wk_pooling import WkEncoder, wk_pooling
from sentloom.lab.baselines.words import FittedTfIdf, TfIdf, WordVectors

__all__ = [
    "FORMS",
    "Baseline",
    "BaselineName",
    "FittedTfIdf",
    "FlowEncoder",
    "Flowed",
    "TfIdf",
    "Whitened",
    "WkEncoder",
    "WordVectors",
    "fit_flow",
    "open_baseline",
    "open_parsed",
    "parse_baseline",
    "whiten",
    "wk_pooling",
]


def open_baseline(name: str, *, pooling: str | None = None) -> Baseline | None:
    """Open a baseline by name (see FORMS); None if it is another name. `pooling` overrides the model's own."""
    parsed = parse_baseline(name)
    return open_parsed(parsed, pooling) if parsed else None


def open_parsed(one: BaselineName, pooling: str | None = None) -> Baseline:
    """Open a baseline by the parts of its name."""
    if one.kind == "tf-idf":
        return TfIdf()
    if one.kind == "words":
        return WordVectors.load(one.source)
    base = Encoder.load(one.source, pooling=pooling)
    if one.kind == "wk":
        return wk_pooling(base)
    return _fitted(one, base) if one.texts else _unfitted(one, base)


def _unfitted(one: BaselineName, base: Encoder) -> Baseline:
    """Return what is fitted on the scored text."""
    return Flowed(base) if one.kind == "flow" else Whitened(base, one.dimension)


def _fitted(one: BaselineName, base: Encoder) -> Baseline:
    """Return what is fitted on the sentences of a data set."""
    sentences = [text for name in one.texts for _, _, text in open_data(name).sentences()]
    if one.kind == "flow":
        return fit_flow(base, sentences, show_progress=True)
    return whiten(base, sentences, one.dimension, show_progress=True)
