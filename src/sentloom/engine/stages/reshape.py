"""Make an encoder of others without training: `merge` averages the weights of several, `shrink` drops layers of one."""

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import AfterValidator, Field, model_validator

from sentloom.encoder import Encoder
from sentloom.encoder.device import running_on
from sentloom.encoder.loading import shared_encoder
from sentloom.encoder.pooling import Pooling
from sentloom.encoder.reshaping import merge, plain_pooling, shrink
from sentloom.encoder.tokens import Prompts
from sentloom.engine.artifacts import MODEL, Artifact
from sentloom.engine.schema import PoolingName, Text
from sentloom.engine.stages.stage import BASE, LATER, PREVIOUS, Context, Forecast, Inputs, Stage
from sentloom.engine.stages.train import stated_pooling
from sentloom.methods import Options
from sentloom.methods.settings import Weight


class Reshape(Stage):
    """A stage that only rearranges weights, which takes seconds: a forecast does it, in the scratch folder."""

    MODEL_KIND = "encoder"
    PRODUCES = "encoder"
    OUTPUTS = (MODEL,)

    def reshaped(self, inputs: Inputs, context: Context) -> tuple[Encoder, dict[str, Any]]:
        """The new encoder, and what the record says about it."""
        raise NotImplementedError

    def run(self, inputs: Inputs, place: Path, context: Context) -> dict[str, Any]:
        """Make the encoder, and save it."""
        start = time.perf_counter()
        encoder, facts = self.reshaped(inputs, context)
        encoder.save(place / MODEL, golden=False)
        return {**facts, "seconds": time.perf_counter() - start, "fingerprint": encoder.fingerprint()}

    def forecast(self, inputs: Inputs, context: Context, scratch: Path) -> tuple[Forecast, Artifact]:
        """What the run itself took."""
        facts = self.run(inputs, scratch / self.name, context)
        artifact = Artifact("encoder", str(scratch / self.name / MODEL), facts["fingerprint"])
        return Forecast(self.name, self.method, 0, None, facts["seconds"]), artifact


def _two_or_more(models: tuple[str, ...]) -> tuple[str, ...]:
    if len(models) < 2:
        raise ValueError("two or more")
    return models


class MergeOptions(Options):
    """Which encoders count how much; weights are relative to their sum."""

    models: Annotated[tuple[Text, ...], AfterValidator(_two_or_more)]  # folders, hub names, `stage:NAME` or `base`
    weights: tuple[Weight, ...] | None = Field(None)  # None: all the same

    @model_validator(mode="after")
    def _a_weight_for_each(self) -> Self:
        if self.weights is not None and (len(self.weights) != len(self.models) or not any(self.weights)):
            raise ValueError(f"{len(self.weights)} weights for {len(self.models)} models, or none above 0")
        return self


class Merge(Reshape):
    """The weighted mean of encoders of one architecture; pooling, prompts and length are those of the first."""

    OPTIONS = MergeOptions

    options: MergeOptions = LATER

    def located(self, locate: Callable[[str], str]) -> Self:
        """With every path and model name located."""
        models = tuple(name if name == BASE else locate(name) for name in self.options.models)
        return self.model_copy(update={"options": self.options.model_copy(update={"models": models})})

    def models(self) -> tuple[str, ...]:
        """The encoders that are merged."""
        return self.options.models

    def fingerprint(self, model: str, prompts: Prompts | None) -> str:
        """The fingerprint of an encoder as it is loaded."""
        return shared_encoder(model, prompts=prompts).fingerprint()

    def depends(self, inputs: Inputs, context: Context) -> dict[str, Any]:
        """The weights; models count by their content."""
        return {"weights": self.options.weights}

    def reshaped(self, inputs: Inputs, context: Context) -> tuple[Encoder, dict[str, Any]]:
        """The mean, and the weight of each encoder."""
        with running_on("cpu", None):  # the mean is taken in float64
            encoders = [shared_encoder(model.source, prompts=context.prompts) for model in inputs.models]
        weights = list(self.options.weights or [1.0] * len(encoders))
        return merge(encoders, self.options.weights), {"weights": weights}

    @staticmethod
    def describe(record: Mapping[str, Any]) -> str:
        """The share of each encoder."""
        weights = record["weights"]
        return "merged " + " + ".join(f"{weight / sum(weights):.2f}" for weight in weights)


class ShrinkOptions(Options):
    """How many layers are kept; None: half of them."""

    layers: Annotated[int, Field(ge=1)] | None = None


class Shrink(Reshape):
    """Fewer layers of the encoder before. A decoder is dropped: a decoder-first encoder gets mean pooling."""

    OPTIONS = ShrinkOptions

    pooling: PoolingName | None = None  # of the smaller encoder
    options: ShrinkOptions = LATER

    def models(self) -> tuple[str, ...]:
        """The encoder of the stage before."""
        return (PREVIOUS,)

    def load(self, source: str, prompts: Prompts | None) -> Encoder:
        """The encoder that layers are taken from, with the pooling that the smaller one gets."""
        return Encoder.load(source, pooling=self.pooling_after(stated_pooling(source)), prompts=prompts, device="cpu")

    def fingerprint(self, model: str, prompts: Prompts | None) -> str:
        """The fingerprint of a base as it is loaded."""
        return self.load(model, prompts).fingerprint()

    def pooling_after(self, own: str | None) -> str | None:
        """The pooling of the encoder that it produces from one with this pooling."""
        return self.pooling or str(plain_pooling(Pooling.parse(own) if own else Pooling()))

    def depends(self, inputs: Inputs, context: Context) -> dict[str, Any]:
        """Layers and pooling."""
        return {**super().depends(inputs, context), "pooling": self.pooling}

    def reshaped(self, inputs: Inputs, context: Context) -> tuple[Encoder, dict[str, Any]]:
        """The smaller encoder, and the number of layers before and after."""
        before = self.load(inputs.model.source, context.prompts)
        after = shrink(before, self.options.layers)
        return after, {"layers": [encoder.backbone.num_layers for encoder in (before, after)]}

    @staticmethod
    def describe(record: Mapping[str, Any]) -> str:
        """How many layers there are."""
        before, after = record["layers"]
        return f"{before} layers before, {after} after"
