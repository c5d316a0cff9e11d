"""Train a writer: a language model and rows in, a language model out.

`denoising` teaches a text-to-text model of random weights a language; `synthesizer` teaches any model to write entailed
and contradicting sentences and to judge them (GenSE).
"""

import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, Self

from pydantic import Field

from sentloom.data.dataset import Dataset
from sentloom.data.sentences import texts_of
from sentloom.data.shapes import Shape
from sentloom.encoder.lora import add_adapters
from sentloom.encoder.prompts import Prompts
from sentloom.methods.settings import Settings
from sentloom.pipeline.artifacts import MODEL, Artifact
from sentloom.pipeline.schema import Text
from sentloom.pipeline.stages.stage import LATER, Context, DataStage, Forecast, Inputs
from sentloom.pipeline.stages.timing import training_time
from sentloom.writing.denoising import Denoising, DenoisingOptions
from sentloom.writing.language_model import LanguageModel
from sentloom.writing.learning import apart, train_denoising, train_synthesizer
from sentloom.writing.models import open_model
from sentloom.writing.synthesizer import Synthesizer, SynthesizerOptions
from sentloom.writing.text_learner import TextLearner
from sentloom.writing.text_to_text import TextToText

ONCE = "runs once for all seeds"


class WriterStage(DataStage):
    """A stage that takes a language model."""

    MODEL_KIND = "writer"

    model: Text  # embedded, a folder, a hub name, or `stage:NAME`; for writing also the address of an endpoint

    def located(self, locate: Callable[[str], str]) -> Self:
        """With every path and model name located."""
        return super().located(locate).model_copy(update={"model": locate(self.model)})

    def models(self) -> tuple[str, ...]:
        """The writer."""
        return (self.model,)

    def load(self, source: str) -> LanguageModel:
        """The model as this stage uses it."""
        return open_model(source)

    def fingerprint(self, model: str, prompts: Prompts | None) -> str:
        """The hash of a model as it is loaded."""
        return self.load(model).sha256


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
        found = Forecast(self.name, self.method, len(data), data.shape, seconds, batch, steps, inputs.leaked, ONCE)
        return found, model


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
