"""Retrieve pairs from raw text: sentences that share rare words, if one entails the other (Thakur et al., 2021).

GenSE compares with it in Table 8: BM25 finds candidates among the sentences themselves, and a cross-encoder that was
trained on NLI decides which of them are entailed.
"""

import hashlib
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Self

import numpy as np
import pyarrow as pa
from pydantic import Field

from sentloom.data.dataset import FILE, LINE, Dataset
from sentloom.data.sentences import texts_of
from sentloom.data.shapes import Shape
from sentloom.encoder.prompts import Prompts
from sentloom.errors import InputError
from sentloom.methods import Options
from sentloom.pipeline.artifacts import Artifact
from sentloom.pipeline.schema import Text
from sentloom.pipeline.stages.stage import LATER, ONCE, Context, Forecast, Inputs
from sentloom.pipeline.stages.timing import placeholder, time_per_item
from sentloom.pipeline.stages.views import StoredDataset
from sentloom.progress import progress
from sentloom.search.bm25 import Bm25
from sentloom.search.cross_encoder import CrossEncoder, load_nli_judge

BLOCK = 256  # sentences that are searched for at a time
TIMED_PAIRS = 16


class RetrieveOptions(Options):
    """How many candidates a sentence has, and how sure the judge must be."""

    candidates: int = Field(5, ge=1)
    threshold: Annotated[float, Field(ge=0, le=1)] = 0.9  # of the probability of entailment


class Retrieve(StoredDataset):
    """Every sentence with those of its candidates that it entails."""

    OPTIONS = RetrieveOptions

    model: Text  # a cross-encoder for NLI: a folder or a hub name
    options: RetrieveOptions = LATER

    def located(self, locate: Callable[[str], str]) -> Self:
        """With every path and model name located."""
        return super().located(locate).model_copy(update={"model": locate(self.model)})

    def models(self) -> tuple[str, ...]:
        """The judge."""
        return (self.model,)

    def fingerprint(self, model: str, prompts: Prompts | None) -> str:
        """The hash of the judge."""
        return load_nli_judge(model).identity

    def fit(self, data: Dataset) -> Dataset:
        """Every distinct sentence."""
        return texts_of(data)

    def run(self, inputs: Inputs, place: Path, context: Context) -> dict[str, Any]:
        """Search and judge."""
        start = time.perf_counter()
        judge, by = load_nli_judge(inputs.model.source), self.options
        texts = inputs.rows.column("text").to_pylist()
        found = list(entailed(texts, judge, by.candidates, by.threshold))
        if not found:
            problem = f"none of the candidates of {len(texts):,} sentences is entailed"
            raise InputError(f"stage {self.name}", problem, "some pairs", "lower the threshold, or give more text")
        return self.store(_pairs(inputs.rows, found), place, start)

    def forecast(self, inputs: Inputs, context: Context, scratch: Path) -> tuple[Forecast, Artifact]:
        """Time some judgements. For the stages after it, every sentence is beside itself."""
        rows = inputs.rows
        few = rows.column("text").slice(0, TIMED_PAIRS).to_pylist()
        each = time_per_item(load_nli_judge(self.model).score, list(zip(few, few, strict=True)))
        seconds = each * self.options.candidates * len(rows)
        pairs = placeholder(rows, Shape.PAIRS)
        found = Forecast(self.name, self.method, len(rows), Shape.PAIRS, seconds, leaked=inputs.leaked, note=ONCE)
        return found, Artifact("dataset", "", "", {}, lambda part: pairs)


def entailed(texts: Sequence[str], judge: CrossEncoder, count: int, threshold: float) -> Iterator[tuple[int, str]]:
    """Yield the row of each sentence and a candidate that it entails."""
    index = Bm25(texts)
    with progress("retrieving", len(texts), "sentences") as advance:
        for start in range(0, len(texts), BLOCK):
            some = candidates(index, texts, range(start, min(start + BLOCK, len(texts))), count)
            scores = judge.score([(texts[row], texts[other]) for row, other in some])
            yield from ((row, texts[other]) for (row, other), one in zip(some, scores, strict=True) if one >= threshold)
            advance(min(BLOCK, len(texts) - start))


def candidates(index: Bm25, texts: Sequence[str], rows: range, count: int) -> list[tuple[int, int]]:
    """For each row the other rows that BM25 ranks first, if they share a word with it."""
    scores = index.scores([texts[row] for row in rows])
    scores[np.arange(len(rows)), list(rows)] = 0.0  # not the sentence itself
    best = np.argsort(-scores, axis=1, kind="stable")[:, :count]
    return [(row, int(other)) for at, row in enumerate(rows) for other in best[at] if scores[at, other] > 0]


def _pairs(texts: Dataset, found: Sequence[tuple[int, str]]) -> Dataset:
    """Pairs with the origin of their first sentence."""
    rows, others = zip(*found, strict=True)
    first = texts.table.take(pa.array(rows))
    columns = {"anchor": first.column("text"), "positive": pa.array(others, pa.large_string())}
    table = pa.table({**columns, FILE: first.column(FILE), LINE: first.column(LINE)})
    how = hashlib.sha256(repr(found).encode()).hexdigest()
    return replace(texts.derive(table, f"retrieved pairs {how}", Shape.PAIRS), used={}, skipped={})
