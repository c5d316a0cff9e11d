"""Extend an encoder's vocabulary: an encoder and rows in, an encoder out whose tokenizer knows the rows' words."""

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from sentloom.data.dataset import Dataset
from sentloom.data.sentences import texts_of
from sentloom.data.shapes import Shape
from sentloom.encoder import Encoder
from sentloom.encoder.pooling import Pooling
from sentloom.encoder.prompts import Prompts
from sentloom.encoder.vocabulary import new_vocabulary
from sentloom.methods import Options
from sentloom.pipeline.artifacts import MODEL, Artifact
from sentloom.pipeline.schema import PoolingName
from sentloom.pipeline.stages.stage import LATER, PREVIOUS, Context, DataStage, Forecast, Inputs
from sentloom.pipeline.stages.train import stated_pooling

VocabularySize = Annotated[int, Field(ge=100)]


class VocabularyOptions(Options):
    """How many tokens are learned."""

    size: VocabularySize


class Vocabulary(DataStage):
    """Tokens learned from the rows (of translations, from the targets) are added to the tokenizer."""

    MODEL_KIND = "encoder"
    PRODUCES = "encoder"
    OUTPUTS = (MODEL,)
    OPTIONS = VocabularyOptions

    pooling: PoolingName | None = None
    default_pooling: PoolingName | None = None  # for a language model, which states none
    options: VocabularyOptions = LATER

    def models(self) -> tuple[str, ...]:
        """The encoder of the stage before."""
        return (PREVIOUS,)

    def fit(self, data: Dataset) -> Dataset:
        """Of raw text, every distinct sentence."""
        return texts_of(data) if data.shape is Shape.TEXTS else data

    def load(self, source: str) -> Encoder:
        """The encoder that it extends."""
        own = self.pooling or (self.default_pooling if stated_pooling(source) is None else None)
        return Encoder.load(source, pooling=own)

    def fingerprint(self, model: str, prompts: Prompts | None) -> str:
        """The fingerprint of a base as it is loaded; prompts come with training."""
        return self.load(model).fingerprint()

    def pooling_after(self, own: str | None) -> str | None:
        """The pooling of the encoder that it produces from one with this pooling."""
        return self.pooling or own or self.default_pooling or str(Pooling())

    def depends(self, inputs: Inputs, context: Context) -> dict[str, Any]:
        """Size and pooling."""
        return {**super().depends(inputs, context), "pooling": self.pooling, "default_pooling": self.default_pooling}

    def run(self, inputs: Inputs, place: Path, context: Context) -> dict[str, Any]:
        """Learn the tokens, and save the encoder."""
        start = time.perf_counter()
        before = self.load(inputs.model.source)
        encoder = new_vocabulary(before, _texts(inputs.rows), self.options.size)
        encoder.save(place / MODEL, golden=False)
        tokens = [len(one.tokens.tokenizer) for one in (before, encoder)]
        return {"tokens": tokens, "seconds": time.perf_counter() - start, "fingerprint": encoder.fingerprint()}

    def forecast(self, inputs: Inputs, context: Context, scratch: Path) -> tuple[Forecast, Artifact]:
        """Learning tokens is quick: it is done, in the scratch folder."""
        facts = self.run(inputs, scratch / self.name, context)
        rows = inputs.rows
        found = Forecast(self.name, self.method, len(rows), rows.shape, facts["seconds"], leaked=inputs.leaked)
        return found, Artifact("encoder", str(scratch / self.name / MODEL), facts["fingerprint"])

    @staticmethod
    def describe(record: Mapping[str, Any]) -> str:
        """How many tokens there are."""
        before, after = record["tokens"]
        return f"{before:,} tokens before, {after:,} after"


def _texts(data: Dataset) -> list[str]:
    column = "target" if data.shape is Shape.PARALLEL else None
    return [text for _, name, text in data.sentences() if column in (None, name)]
