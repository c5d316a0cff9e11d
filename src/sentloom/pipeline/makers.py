"""The methods of stages that make no encoder: a text-to-text model, or data that a later stage names."""

from typing import Any, ClassVar

from pydantic import Field, model_validator

from sentloom.data.shapes import Shape
from sentloom.methods import Options
from sentloom.writing.denoising import Denoising
from sentloom.writing.filters import PRESETS, Filtering
from sentloom.writing.generator import BackendName
from sentloom.writing.sampling import Sampling
from sentloom.writing.synthesize import BLOCK, Engine
from sentloom.writing.synthesizer import Synthesizer
from sentloom.writing.text_learner import TextLearner


class SynthesizeOptions(Sampling, Filtering, Options):
    """How sentences are written, which of them are kept, and what runs the model. The seed is the stage's."""

    rows: int | None = Field(None, ge=1)  # of the raw text, from its first on
    backend: BackendName = "transformers"
    engine: Engine = "local"
    workers: int = Field(1, ge=1)
    block: int = Field(BLOCK, ge=1)

    @model_validator(mode="after")
    def _workers_of_ray(self) -> "SynthesizeOptions":
        if self.engine == "local" and self.workers > 1:
            raise ValueError(f"{self.workers} workers with the engine local, which is one")
        return self

    @property
    def sampling(self) -> Sampling:
        """The part about writing."""
        return Sampling(**{name: getattr(self, name) for name in Sampling.model_fields})

    @property
    def filtering(self) -> Filtering:
        """The part about what is kept."""
        return Filtering(**{name: getattr(self, name) for name in Filtering.model_fields})


class Synthesize:
    """Triplets out of raw text: nothing learns, a synthesizer writes and judges (GenSE, section 3.2)."""

    NAME = "synthesize"
    REVISION = 1
    Options = SynthesizeOptions
    SHAPES = (Shape.TEXTS,)
    PRESETS: ClassVar[dict[str, dict[str, Any]]] = {
        name: by.model_dump(exclude_defaults=True) | ({"top_k": 50} if name == "official-code" else {})
        for name, by in PRESETS.items()
    }


MODEL_MAKERS = {Denoising.NAME: Denoising, Synthesizer.NAME: Synthesizer}
MAKERS: dict[str, type[TextLearner] | type[Synthesize]] = {**MODEL_MAKERS, Synthesize.NAME: Synthesize}
