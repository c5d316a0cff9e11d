"""Make an encoder smaller: an encoder in, one with fewer of its layers out, to be trained by the next stage."""

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from sentloom.encoder import Encoder
from sentloom.encoder.pooling import Pooling
from sentloom.encoder.prompts import Prompts
from sentloom.encoder.shrinking import plain_pooling, shrink
from sentloom.methods import Options
from sentloom.pipeline.artifacts import MODEL, Artifact
from sentloom.pipeline.schema import PoolingName
from sentloom.pipeline.stages.stage import LATER, PREVIOUS, Context, Forecast, Inputs, Stage
from sentloom.pipeline.stages.train import stated_pooling


class ShrinkOptions(Options):
    """How many layers are kept; None: half of them."""

    layers: Annotated[int, Field(ge=1)] | None = None


class Shrink(Stage):
    """Nothing is trained. A decoder is dropped: a decoder-first encoder gets mean pooling."""

    MODEL_KIND = "encoder"
    PRODUCES = "encoder"
    OUTPUTS = (MODEL,)
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

    def run(self, inputs: Inputs, place: Path, context: Context) -> dict[str, Any]:
        """Take the layers, and save the encoder."""
        start = time.perf_counter()
        before = self.load(inputs.model.source, context.prompts)
        after = shrink(before, self.options.layers)
        after.save(place / MODEL, golden=False)
        layers = [one.backbone.num_layers for one in (before, after)]
        return {"layers": layers, "seconds": time.perf_counter() - start, "fingerprint": after.fingerprint()}

    def forecast(self, inputs: Inputs, context: Context, scratch: Path) -> tuple[Forecast, Artifact]:
        """Taking layers is quick: it is done, in the scratch folder."""
        facts = self.run(inputs, scratch / self.name, context)
        found = Forecast(self.name, self.method, 0, None, facts["seconds"])
        return found, Artifact("encoder", str(scratch / self.name / MODEL), facts["fingerprint"])

    @staticmethod
    def describe(record: Mapping[str, Any]) -> str:
        """How many layers there are."""
        before, after = record["layers"]
        return f"{before} layers before, {after} after"
