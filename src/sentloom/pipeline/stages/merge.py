"""Merge encoders: two or more encoders of one architecture in, the weighted mean of their weights out."""

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import AfterValidator, Field, model_validator

from sentloom.encoder.device import running_on
from sentloom.encoder.merging import merge
from sentloom.encoder.prompts import Prompts
from sentloom.encoder.shared import shared_encoder
from sentloom.methods import Options
from sentloom.methods.settings import Weight
from sentloom.pipeline.artifacts import MODEL, Artifact
from sentloom.pipeline.schema import Text
from sentloom.pipeline.stages.stage import BASE, LATER, Context, Forecast, Inputs, Stage


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


class Merge(Stage):
    """Nothing is trained. Pooling, prompts and length are those of the first encoder."""

    MODEL_KIND = "encoder"
    PRODUCES = "encoder"
    OUTPUTS = (MODEL,)
    OPTIONS = MergeOptions

    options: MergeOptions = LATER

    def located(self, locate: Callable[[str], str]) -> Self:
        """With every path and model name located."""
        found = tuple(name if name == BASE else locate(name) for name in self.options.models)
        return self.model_copy(update={"options": self.options.model_copy(update={"models": found})})

    def models(self) -> tuple[str, ...]:
        """The encoders that are merged."""
        return self.options.models

    def fingerprint(self, model: str, prompts: Prompts | None) -> str:
        """The fingerprint of an encoder as it is loaded."""
        return shared_encoder(model, prompts=prompts).fingerprint()

    def depends(self, inputs: Inputs, context: Context) -> dict[str, Any]:
        """The weights; models count by their content."""
        return {"weights": self.options.weights}

    def run(self, inputs: Inputs, place: Path, context: Context) -> dict[str, Any]:
        """Merge, and save the encoder."""
        start = time.perf_counter()
        with running_on("cpu", None):  # the mean is taken in float64
            encoders = [shared_encoder(model.source, prompts=context.prompts) for model in inputs.models]
        merged = merge(encoders, self.options.weights)
        merged.save(place / MODEL, golden=False)
        weights = list(self.options.weights or [1.0] * len(encoders))
        return {"weights": weights, "seconds": time.perf_counter() - start, "fingerprint": merged.fingerprint()}

    def forecast(self, inputs: Inputs, context: Context, scratch: Path) -> tuple[Forecast, Artifact]:
        """Merging is quick: it is done, in the scratch folder."""
        facts = self.run(inputs, scratch / self.name, context)
        found = Forecast(self.name, self.method, 0, None, facts["seconds"])
        return found, Artifact("encoder", str(scratch / self.name / MODEL), facts["fingerprint"])

    @staticmethod
    def describe(record: Mapping[str, Any]) -> str:
        """The share of each encoder."""
        weights = record["weights"]
        return "merged " + " + ".join(f"{weight / sum(weights):.2f}" for weight in weights)
