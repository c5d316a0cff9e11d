"""Step 5, resources: what a route can use besides the data."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sentloom.encoder.carried import carried_file
from sentloom.errors import MissingPart, ModelError
from sentloom.fitting.bases import Base
from sentloom.fitting.request import Request
from sentloom.methods.tsdae import DECODERS
from sentloom.pipeline.stages.train import stated_pooling
from sentloom.progress import duration
from sentloom.views.embedded_translator import models_folder
from sentloom.writing.embedded import EMBEDDED, EMBEDDED_WRITER

NO_WRITER = "none"  # as a value of --writer
LEAST_SECONDS = 300  # of a budget, for a writer that the user did not name


@dataclass(frozen=True)
class Teacher:
    """A cross-encoder as stages name it, and why it does not teach; None: it does."""

    name: str
    why_not: str | None = None


@dataclass(frozen=True)
class WriterResource:
    """A language model as stages name it, and why it does not write; None: it does."""

    name: str
    why_not: str | None = None
    named: bool = True  # by the user
    options: Mapping[str, Any] = field(default_factory=dict)  # of the stages that it writes in


@dataclass(frozen=True)
class Resources:
    """What there is besides the data."""

    base: str  # as stages name it
    pooling: str | None  # of the base; None: a raw language model, which gets the preset's
    dropout: float  # of the base
    translator: str | None  # why there is none; None: there is one
    writer: WriterResource
    decoder: bool = True  # whether TSDAE has a decoder for the base's family
    projection: bool = False  # whether the base maps its pooled states once more
    guide: str | None = None  # an encoder that filters false negatives; None: there is none
    teacher: Teacher | None = None  # a cross-encoder that the user named


def find_resources(request: Request, base: Base, teacher: Teacher | None = None) -> Resources:
    """Look for everything that a route may need."""
    try:
        models_folder()  # it is loaded by the stage that uses it
        translator = None
    except MissingPart as error:
        translator = f"it learns from back-translations, and the translator is missing: {error.problem}"
    return Resources(
        base=base.path,
        pooling=stated_pooling(base.name),
        dropout=base.encoder.backbone.dropout,
        translator=translator,
        writer=find_writer(request),
        decoder=base.encoder.backbone.model.config.model_type in DECODERS,
        projection=len(base.encoder.heads) > 0,
        guide=request.guide_path,
        teacher=teacher,
    )


def find_writer(request: Request) -> WriterResource:
    """The writer that the user named, otherwise the embedded one, if it is installed and there is time for it."""
    if request.writer == NO_WRITER:
        return WriterResource(NO_WRITER, "--writer none says that nothing is written", named=False)
    if endpoint := request.endpoint:
        limits = {"writer_model": endpoint.model, "max_tokens": endpoint.max_tokens}
        return WriterResource(endpoint.url, options=limits)
    if request.writer_path and request.writer_path != EMBEDDED_WRITER:
        return WriterResource(request.writer_path)
    named, seconds = request.writer_path is not None, request.parsed_budget.seconds
    if not named and (seconds is None or seconds < LEAST_SECONDS):
        only = f"with a budget in steps or of less than {duration(LEAST_SECONDS)}, the writer only runs if you name one"
        return WriterResource(EMBEDDED_WRITER, f"{only} with --writer", named=False)
    try:
        carried_file(EMBEDDED)
    except (MissingPart, ModelError) as error:
        return WriterResource(EMBEDDED_WRITER, f"{error.problem}; {error.fix}", named)
    return WriterResource(EMBEDDED_WRITER, None, named)
