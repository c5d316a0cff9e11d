"""Mine hard negatives: an encoder and pairs in, triplets out."""

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
import pyarrow as pa
from pydantic import Field, model_validator

from sentloom.corpus.opening import open_data
from sentloom.data.dataset import FILE, LINE, Dataset
from sentloom.data.sentences import texts_of
from sentloom.data.shapes import ARROW_TYPES, COLUMNS, Shape
from sentloom.encoder import Encoder
from sentloom.encoder.prompts import Prompts
from sentloom.errors import InputError
from sentloom.methods import Options
from sentloom.pipeline.artifacts import Artifact
from sentloom.pipeline.schema import Text
from sentloom.pipeline.stages.stage import LATER, PREVIOUS, Context, EncoderKeys, Forecast, Inputs
from sentloom.pipeline.stages.timing import time_per_item
from sentloom.pipeline.stages.views import StoredDataset
from sentloom.search.mining import MineSettings, mine

TIMED_PAIRS = 128


class MineOptions(Options):
    """How hard the negatives may be (see `MineSettings`), and where they are searched for."""

    negatives: int = Field(1, ge=1)
    margin: float = 0.05
    skip: int = Field(0, ge=0)
    depth: int = Field(50, ge=1)
    search: Literal["exact", "faiss"] = "exact"
    corpus: tuple[Text, ...] = ()  # files to search in; without any, the positives of the pairs
    rows: int | None = Field(None, ge=1)  # pairs that are searched for, evenly spaced; None: all

    @model_validator(mode="after")
    def _depth_beyond_skip(self) -> Self:
        if self.depth <= self.skip:
            raise ValueError(f"depth {self.depth}, which is not more than skip {self.skip}")
        return self

    @property
    def how(self) -> MineSettings:
        """As mining takes them."""
        return MineSettings(self.negatives, self.margin, self.skip, self.depth, self.search)


class Mine(EncoderKeys, StoredDataset):
    """Each pair gets its hardest negatives; pairs without any are left out."""

    MODEL_KIND = "encoder"
    OPTIONS = MineOptions

    model: Text | None = None  # a folder, a hub name or `stage:NAME`; None: the encoder of the stage before
    options: MineOptions = LATER

    def located(self, locate: Callable[[str], str]) -> Self:
        """With every path and model name located."""
        corpus = tuple(map(locate, self.options.corpus))
        found = {
            "model": self.model and locate(self.model),
            "options": self.options.model_copy(update={"corpus": corpus}),
        }
        return super().located(locate).model_copy(update=found)

    def models(self) -> tuple[str, ...]:
        """The encoder that searches."""
        return (self.model or PREVIOUS,)

    @property
    def shapes(self) -> tuple[Shape, ...]:
        """Pairs alone."""
        return (Shape.PAIRS,)

    def fit(self, data: Dataset) -> Dataset:
        """The pairs, or as many of them as are wanted."""
        if data.shape is not Shape.PAIRS:
            found = f"data of the shape {data.shape}"
            raise InputError(f"stage {self.name}", found, "pairs", "give a file with anchors and positives")
        return evenly(data, self.options.rows)

    def load(self, source: str, prompts: Prompts | None) -> Encoder:
        """The encoder that searches."""
        return Encoder.load(source, pooling=self.pooling, max_length=self.max_length, prompts=prompts)

    def fingerprint(self, model: str, prompts: Prompts | None) -> str:
        """The fingerprint of an encoder as it is loaded."""
        return self.load(model, prompts).fingerprint()

    def depends(self, inputs: Inputs, context: Context) -> dict[str, Any]:
        """The corpus counts by its content."""
        corpus = [open_data(name).sha256 for name in self.options.corpus]
        return {**super().depends(inputs, context), "corpus": corpus, "pooling": self.pooling, "max": self.max_length}

    def run(self, inputs: Inputs, place: Path, context: Context) -> dict[str, Any]:
        """Search for the negatives of every pair."""
        start = time.perf_counter()
        encoder = self.load(inputs.model.source, context.prompts)
        triplets, _ = mine(encoder, inputs.rows, self._corpus(), self.options.how)
        return self.store(triplets, place, start)

    def _corpus(self) -> list[str] | None:
        """Every distinct sentence of the corpus files."""
        files = [texts_of(open_data(name)) for name in self.options.corpus]
        return [text for one in files for text in one.column("text").to_pylist()] if files else None

    def forecast(self, inputs: Inputs, context: Context, scratch: Path) -> tuple[Forecast, Artifact]:
        """Time the encoding of some pairs. For the stages after it, the next positive is each pair's negative."""
        pairs, encoder = inputs.rows, self.load(inputs.model.source, context.prompts)
        texts = [text for name in COLUMNS[Shape.PAIRS] for text in pairs.column(name).slice(0, TIMED_PAIRS).to_pylist()]
        seconds = 2 * len(pairs) * time_per_item(encoder.encode, texts)
        found = Forecast(self.name, self.method, len(pairs), Shape.TRIPLETS, seconds, leaked=inputs.leaked)
        return found, Artifact("dataset", "", "", {}, lambda part: _with_next_positive(pairs))


def evenly(data: Dataset, rows: int | None) -> Dataset:
    """So many rows, evenly spaced, or all."""
    if rows is None or rows >= len(data):
        return data
    keep = np.zeros(len(data), bool)
    keep[np.linspace(0, len(data) - 1, rows).astype(np.int64)] = True
    return data.select(keep)


def _with_next_positive(pairs: Dataset) -> Dataset:
    """Triplets of the size that mining gives."""
    positives = pairs.column("positive").to_pylist()
    negatives = pa.array([[text] for text in [*positives[1:], positives[0]]], ARROW_TYPES["negatives"])
    columns = {name: pairs.column(name) for name in ("anchor", "positive")}
    table = pa.table({**columns, "negatives": negatives, FILE: pairs.column(FILE), LINE: pairs.column(LINE)})
    return replace(pairs.derive(table, "placeholder triplets", Shape.TRIPLETS), used={}, skipped={})
