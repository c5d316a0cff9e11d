"""Mine hard negatives: an encoder and pairs in, triplets out."""

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import numpy as np
import pyarrow as pa
from pydantic import Field

from sentloom.corpus.opening import open_data
from sentloom.data.columns import evenly_spaced
from sentloom.data.dataset import FILE, LINE, Dataset
from sentloom.data.sentences import texts_of
from sentloom.data.shapes import ARROW_TYPES, COLUMNS, Shape
from sentloom.encoder import Encoder
from sentloom.encoder.prompts import Prompts
from sentloom.encoder.shared import shared_encoder
from sentloom.errors import InputError
from sentloom.methods import Options
from sentloom.pipeline.artifacts import Artifact
from sentloom.pipeline.schema import Text
from sentloom.pipeline.stages.stage import LATER, PREVIOUS, Context, EncoderKeys, Forecast, Inputs
from sentloom.pipeline.stages.timing import time_per_item
from sentloom.pipeline.stages.views import StoredDataset
from sentloom.search.cross_encoder import CrossEncoder
from sentloom.search.mining import MineSettings, mine

TIMED_PAIRS = 128
TIMED_SCORES = 32  # pairs that a teacher is timed on
SCORED = 2  # pairs that a teacher scores, for each positive and negative: it rejects some candidates


class MineOptions(MineSettings, Options):
    """How hard the negatives may be, and where they are searched for."""

    MODELS = ("guide", "teacher")
    guide: Text | None = None  # a second encoder that candidates must be far from the anchor by
    teacher: Text | None = None  # a cross-encoder that must score candidates below the positive
    corpus: tuple[Text, ...] = ()  # files to search in; without any, the positives of the pairs
    rows: int | None = Field(None, ge=1)  # pairs that are searched for, evenly spaced; None: all

    @property
    def how(self) -> MineSettings:
        """How hard they may be."""
        return MineSettings(**self.model_dump(include={*MineSettings.model_fields}))


class Mine(EncoderKeys, StoredDataset):
    """Each pair gets its hardest negatives; pairs without any are left out, unless `keep_all` is set."""

    MODEL_KIND = "encoder"
    OPTIONS = MineOptions

    model: Text | None = None  # a folder, a hub name or `stage:NAME`; None: the encoder of the stage before
    options: MineOptions = LATER

    def located(self, locate: Callable[[str], str]) -> Self:
        """With every path and model name located."""
        found = super().located(locate)
        options = found.options.model_copy(update={"corpus": tuple(map(locate, self.options.corpus))})
        return found.model_copy(update={"model": self.model and locate(self.model), "options": options})

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
            found = f"the shape of its data is {data.shape}"
            raise InputError(f"stage {self.name}", found, "pairs", "give a file with anchors and positives")
        return sampled_rows(data, self.options.rows)

    def load(self, source: str, prompts: Prompts | None) -> Encoder:
        """The encoder that searches."""
        return shared_encoder(source, pooling=self.pooling, max_length=self.max_length, prompts=prompts)

    def fingerprint(self, model: str, prompts: Prompts | None) -> str:
        """The fingerprint of an encoder as it is loaded."""
        return self.load(model, prompts).fingerprint()

    def depends(self, inputs: Inputs, context: Context) -> dict[str, Any]:
        """Options, and the corpus by its content."""
        corpus = [open_data(name).sha256 for name in self.options.corpus]
        found = super().depends(inputs, context)
        return {**found, "corpus": corpus, "pooling": self.pooling, "max": self.max_length}

    def run(self, inputs: Inputs, place: Path, context: Context) -> dict[str, Any]:
        """Search for the negatives of every pair."""
        start = time.perf_counter()
        encoder = self.load(inputs.model.source, context.prompts)
        guide = shared_encoder(self.options.guide) if self.options.guide else None
        teacher = CrossEncoder.load(self.options.teacher) if self.options.teacher else None
        triplets, _ = mine(encoder, inputs.rows, self._corpus(), self.options.how, guide=guide, teacher=teacher)
        return self.store(triplets, place, start)

    def _corpus(self) -> list[str] | None:
        """Every distinct sentence of the corpus files."""
        files = [texts_of(open_data(name)) for name in self.options.corpus]
        return [text for one in files for text in one.column("text").to_pylist()] if files else None

    def forecast(self, inputs: Inputs, context: Context, scratch: Path) -> tuple[Forecast, Artifact]:
        """Time the encoding of some pairs. For the stages after it, the next positives are each pair's negatives."""
        pairs, encoder = inputs.rows, self.load(inputs.model.source, context.prompts)
        texts = [text for name in COLUMNS[Shape.PAIRS] for text in pairs.column(name).slice(0, TIMED_PAIRS).to_pylist()]
        each, corpus = time_per_item(encoder.encode, texts), len(self._corpus() or ())
        if self.options.guide:
            each += time_per_item(shared_encoder(self.options.guide).encode, texts)
        seconds, before = 2 * len(pairs) * each, corpus * each
        if self.options.teacher:
            first = pairs.take(range(min(TIMED_SCORES, len(pairs))))
            both = list(zip(first["anchor"], first["positive"], strict=True))
            scored = SCORED * (1 + self.options.negatives) * len(pairs)
            seconds += scored * time_per_item(CrossEncoder.load(self.options.teacher).score, both)
        rows, leaked = len(pairs), inputs.leaked
        found = Forecast(self.name, self.method, rows, Shape.TRIPLETS, seconds, leaked=leaked, before=before)
        negatives = self.options.negatives
        return found, Artifact("dataset", "", "", {}, lambda part: _with_next_positives(pairs, negatives))


def sampled_rows(data: Dataset, rows: int | None) -> Dataset:
    """At most `rows` rows, evenly spaced; None: all."""
    if rows is None or rows >= len(data):
        return data
    return data.select(np.isin(np.arange(len(data)), evenly_spaced(len(data), rows)))


def _with_next_positives(pairs: Dataset, count: int) -> Dataset:
    """Triplets of the size that mining gives."""
    positives = pairs.column("positive").to_pylist()
    cycle = positives * (1 + -(-count // len(positives)))
    lists = [cycle[row + 1 : row + 1 + count] for row in range(len(positives))]
    negatives = pa.array(lists, ARROW_TYPES["negatives"])
    columns = {name: pairs.column(name) for name in ("anchor", "positive")}
    table = pa.table({**columns, "negatives": negatives, FILE: pairs.column(FILE), LINE: pairs.column(LINE)})
    return replace(pairs.derive(table, "placeholder triplets", Shape.TRIPLETS), used={}, skipped={})
