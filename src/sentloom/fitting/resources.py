"""Step 5, resources: what a route can use besides the data."""

from dataclasses import dataclass

from sentloom.encoder import Encoder
from sentloom.errors import MissingPart
from sentloom.fitting.request import Request
from sentloom.pipeline.stages.train import stated_pooling
from sentloom.views.pairs import makers_for
from sentloom.views.settings import BackTranslation


@dataclass(frozen=True)
class Resources:
    """What there is besides the data."""

    base: str  # as stages name it
    pooling: str | None  # of the base; None: a raw language model, which gets the preset's
    dropout: float  # of the base
    translator: str | None  # why there is none; None: there is one
    synthesizer: str | None  # a folder


def find_resources(request: Request, base: Encoder) -> Resources:
    """Look for everything that a route may need."""
    try:
        makers_for(BackTranslation())
        translator = None
    except MissingPart as error:
        translator = f"it learns from back-translations, and the translator is missing: {error.problem}"
    return Resources(
        base=request.base_path,
        pooling=stated_pooling(request.base),
        dropout=base.backbone.dropout,
        translator=translator,
        synthesizer=request.synthesizer_path,
    )
