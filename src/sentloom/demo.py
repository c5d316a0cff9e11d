"""The main job on the embedded defaults: a corpus that every machine has, the embedded encoder, scores and searches."""

from collections.abc import Callable
from functools import partial

from rich.console import RenderableType

from sentloom.data.dataset import Dataset
from sentloom.data.docstrings import Corpus
from sentloom.encoder import Encoder
from sentloom.errors import InputError
from sentloom.evaluation import retrieval, top_k
from sentloom.report import tables

QUESTIONS = (
    "distance between two probability distributions",
    "find where a function crosses zero",
    "remove high frequencies from a signal",
    "group similar points together",
    "solve many linear equations with mostly zero coefficients",
)
POOLINGS = ("mean", "first")


def run(model: str, corpus: Corpus, num_queries: int, show: Callable[[RenderableType], None]) -> None:
    """Encode the held-out part of a harvest, score the encoder on it and search in it."""
    show(tables.corpus(corpus))
    pairs = corpus.pairs("held-out")
    if not len(pairs):
        raise InputError("demo", "no package that is held out", "one to score on", "name one with --held-out")
    names, summaries = pairs.column("anchor").to_pylist(), pairs.column("positive").to_pylist()
    asked = range(0, len(names), max(1, len(names) // num_queries))[:num_queries]
    packages = ", ".join(one.package for one in corpus.packages if one.split == "held-out")
    show(f"\nEncoding {len(summaries):,} summaries of {packages} and {len(asked):,} names with {model!r} ...")
    scores = {}
    for pooling in POOLINGS:
        encoder = Encoder.load(model, pooling=pooling)
        scores[f"{model}, {pooling} pooling"] = retrieval(
            partial(encoder.encode, role="query", show_progress=True),
            [names[row] for row in asked],
            summaries,
            [[row] for row in asked],
            encode_documents=partial(encoder.encode, role="document", show_progress=True),
        )
    show(tables.retrieval(f"Which summary belongs to a name? ({packages}, held out)", scores))
    _search(Encoder.load(model), pairs, show)


def _search(encoder: Encoder, pairs: Dataset, show: Callable[[RenderableType], None]) -> None:
    """Answer a few questions from the held-out summaries."""
    names, summaries = pairs.column("anchor").to_pylist(), pairs.column("positive").to_pylist()
    documents = encoder.encode(summaries, role="document", show_progress=True)
    numbers, cosines = top_k(encoder.encode(QUESTIONS, role="query"), documents, 3)
    for question, rows, values in zip(QUESTIONS, numbers, cosines, strict=True):
        show("")
        show(tables.answers(question, [(float(v), names[r], summaries[r]) for r, v in zip(rows, values, strict=True)]))
