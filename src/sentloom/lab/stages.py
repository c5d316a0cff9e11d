"""The lab's stages: extend an encoder's vocabulary, and train a writer.

`vocabulary` adds tokens learned from the rows. `denoising` teaches a text-to-text model of random weights a language;
`synthesizer` teaches any model to write entailed and contradicting sentences and to judge them (GenSE).
"""

import math
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar

from pydantic import Field

from sentloom.data.dataset import Dataset
from sentloom.data.sentences import texts_of
from sentloom.data.shapes import Shape
from sentloom.encoder import Encoder
from sentloom.encoder.loading import takes_default_pooling
from sentloom.encoder.locate import locate
from sentloom.encoder.lora import add_adapters
from sentloom.encoder.pooling import Pooling
from sentloom.encoder.tokens import Prompts
from sentloom.engine.artifacts import MODEL, Artifact
from sentloom.engine.schema import PoolingName
from sentloom.engine.stages.stage import LATER, ONCE, PREVIOUS, Context, DataStage, Forecast, Inputs
from sentloom.engine.stages.synthesize import WriterStage
from sentloom.engine.stages.timing import training_time
from sentloom.lab.denoising import Denoising, DenoisingOptions
from sentloom.lab.synthesizer import Synthesizer, SynthesizerOptions, TextLearner
from sentloom.lab.vocabulary import new_vocabulary
from sentloom.lab.writer_training import apart, train_denoising, train_synthesizer
from sentloom.methods import Options
from sentloom.methods.settings import Settings
from sentloom.writing.language_model import LanguageModel
from sentloom.writing.models import open_model
from sentloom.writing.text_to_text import TextToText

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
        default = self.default_pooling if takes_default_pooling(locate(source)) else None
        return Encoder.load(source, pooling=self.pooling or default)

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
        tokens = [len(model.tokens.tokenizer) for model in (before, encoder)]
        return {"tokens": tokens, "seconds": time.perf_counter() - start, "fingerprint": encoder.fingerprint()}

    def forecast(self, inputs: Inputs, context: Context, scratch: Path) -> tuple[Forecast, Artifact]:
        """Learning tokens is quick: it is done, in the scratch folder."""
        facts = self.run(inputs, scratch / self.name, context)
        rows = inputs.rows
        forecast = Forecast(self.name, self.method, len(rows), rows.shape, facts["seconds"], leaked=inputs.leaked)
        return forecast, Artifact("encoder", str(scratch / self.name / MODEL), facts["fingerprint"])

    @staticmethod
    def describe(record: Mapping[str, Any]) -> str:
        """How many tokens there are."""
        before, after = record["tokens"]
        return f"{before:,} tokens before, {after:,} after"


def _texts(data: Dataset) -> list[str]:
    column = "target" if data.shape is Shape.PARALLEL else None
    return [text for _, name, text in data.sentences() if column in (None, name)]


class _Training(WriterStage):
    """Trains a language model, with a seed of its own: once for all seeds of the plan."""

    LEARNER: ClassVar[type[TextLearner]]
    PRODUCES = "writer"
    OUTPUTS = (MODEL,)
    TOGETHER: ClassVar[bool] = True

    seed: Annotated[int, Field(ge=0, lt=2**32)] = 1
    options: SynthesizerOptions | DenoisingOptions = LATER
    settings: Settings = LATER

    @property
    def shapes(self) -> tuple[Shape, ...]:
        """The shapes that the learner trains on."""
        return self.LEARNER.SHAPES

    def fit(self, data: Dataset) -> Dataset:
        """The distinct sentences where single sentences are learned, otherwise the rows as they are."""
        return texts_of(data) if self.takes_texts else data

    def depends(self, inputs: Inputs, context: Context) -> dict[str, Any]:
        """Options, the learner's revision, and the stage's own seed."""
        own = {"learner_revision": self.LEARNER.REVISION, "own_seed": self.seed}
        return {**super().depends(inputs, context), **own}

    def forecast(self, inputs: Inputs, context: Context, scratch: Path) -> tuple[Forecast, Artifact]:
        """Time some steps; the next stage gets the same model, which is of the same size."""
        model = inputs.model
        learner, data = self.LEARNER(self.load(model.source), self.options), self.trained_rows(inputs.rows)
        if self.settings.lora is not None:
            add_adapters(learner.scored.model, self.settings.lora.rank, self.settings.lora.alpha)
        steps, seconds = training_time(learner, data, self.settings, self.seed, context.accelerator)
        batch = self.settings.batch * self.settings.accumulate
        forecast = Forecast(self.name, self.method, len(data), data.shape, seconds, batch, steps, inputs.leaked, ONCE)
        return forecast, model


class SynthesizerStage(_Training):
    """Learns to write and to judge from NLI data."""

    LEARNER, OPTIONS, PRESETS = Synthesizer, SynthesizerOptions, Synthesizer.PRESETS

    options: SynthesizerOptions = LATER

    def load(self, source: str) -> LanguageModel:
        """The model that it starts from, with the stage's prompts and lengths."""
        by = self.options
        return open_model(source, wording=by.wording, source_length=by.source_length, target_length=by.target_length)

    def trained_rows(self, data: Dataset) -> Dataset:
        """The rows that are not held out."""
        return apart(data, self.options.held_out)[0]

    def run(self, inputs: Inputs, place: Path, context: Context) -> dict[str, Any]:
        """Train, measure on the held-out rows, and save the model."""
        return train_synthesizer(
            inputs.model.source, inputs.rows, self.options, self.settings,
            seed=self.seed, folder=place, accelerator=context.accelerator, log=context.log,
        )  # fmt: skip

    @staticmethod
    def describe(record: Mapping[str, Any]) -> str:
        """How well it judges and writes."""
        before, after = (record["held_out"][name] for name in ("before", "after"))
        return (
            f"accuracy {before['accuracy']:.1%} -> {after['accuracy']:.1%}, perplexity {before['perplexity']:.1f} -> "
            f"{after['perplexity']:.1f} on {after['rows']:,} held-out sentences"
        )


class DenoisingStage(_Training):
    """Learns to restore sentences with masked spans from raw text."""

    LEARNER, OPTIONS, PRESETS = Denoising, DenoisingOptions, Denoising.PRESETS

    options: DenoisingOptions = LATER

    def load(self, source: str) -> TextToText:
        """The model that it starts from, with the stage's lengths."""
        by = self.options
        return TextToText.load(source, source_length=by.source_length, target_length=by.target_length)

    def run(self, inputs: Inputs, place: Path, context: Context) -> dict[str, Any]:
        """Train, and save the model."""
        return train_denoising(
            inputs.model.source, inputs.rows, self.options, self.settings,
            seed=self.seed, folder=place, accelerator=context.accelerator, log=context.log,
        )  # fmt: skip

    @staticmethod
    def describe(record: Mapping[str, Any]) -> str:
        """The perplexity in training."""
        losses = " -> ".join(f"{math.exp(min(loss, 100.0)):.1f}" for loss in record["losses"])
        perplexity = f"perplexity {losses} in training, " if losses else ""
        return f"{perplexity}{record['outcome']['steps']:,} steps on {record['data']['rows']:,} sentences"


STAGES = {"vocabulary": Vocabulary, "denoising": DenoisingStage, "synthesizer": SynthesizerStage}
