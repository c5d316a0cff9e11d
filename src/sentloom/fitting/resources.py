"""Step 5, resources: what a route can use besides the data."""

from dataclasses import dataclass

from sentloom.errors import MissingPart
from sentloom.fitting.bases import Base
from sentloom.fitting.request import Request
from sentloom.methods.tsdae import DECODERS
from sentloom.pipeline.stages.train import stated_pooling
from sentloom.views.pairs import makers_for
from sentloom.views.settings import BackTranslation


@dataclass(frozen=True)
class Teacher:
    """A cross-encoder as stages name it, and why it does not teach; None: it does."""

    name: str
    why_not: str | None = None


@dataclass(frozen=True)
class Resources:
    """What there is besides the data."""

    base: str  # as stages name it
    pooling: str | None  # of the base; None: a raw language model, which gets the preset's
    dropout: float  # of the base
    translator: str | None  # why there is none; None: there is one
    writer: str | None  # a folder or a name
    decoder: bool = True  # whether TSDAE has a decoder for the base's family
    projection: bool = False  # whether the base maps its pooled states once more
    guide: str | None = None  # an encoder that filters false negatives; None: the base
    teacher: Teacher | None = None  # a cross-encoder that the user named


def find_resources(request: Request, base: Base, teacher: Teacher | None = None) -> Resources:
    """Look for everything that a route may need."""
    try:
        makers_for(BackTranslation())
        translator = None
    except MissingPart as error:
        translator = f"it learns from back-translations, and the translator is missing: {error.problem}"
    return Resources(
        base=base.path,
        pooling=stated_pooling(base.name),
        dropout=base.encoder.backbone.dropout,
        translator=translator,
        writer=request.writer_path,
        decoder=base.encoder.backbone.model.config.model_type in DECODERS,
        projection=len(base.encoder.heads) > 0,
        guide=request.guide_path,
        teacher=teacher,
    )
