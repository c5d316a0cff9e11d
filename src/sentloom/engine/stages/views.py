"""Rewrite sentences: `views` pairs every distinct sentence with a second form of it, `translate` with its translation.

What is made is also cached by maker and text in DIR/views, so that a killed run resumes and other data reuses it.
"""

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Self

from pydantic import BaseModel, Field

from sentloom.data.dataset import Dataset
from sentloom.data.sentences import texts_of
from sentloom.data.shapes import Shape
from sentloom.engine.artifacts import DATA, Artifact, open_dataset, store_dataset
from sentloom.engine.stages.stage import LATER, ONCE, Context, DataStage, Forecast, Inputs
from sentloom.engine.stages.timing import placeholder, time_per_item
from sentloom.files import sha256
from sentloom.methods import Options
from sentloom.writing.views.pairs import Maker, make_pairs, make_translations, makers_for
from sentloom.writing.views.settings import (
    KINDS,
    BackTranslation,
    Entailment,
    MaskFill,
    ReadyPairs,
    Synonyms,
    ViewSettings,
)
from sentloom.writing.views.translation import translation_maker

TIMED_VIEWS = 24


class StoredDataset(DataStage):
    """A stage whose dataset is one file, with the origin of every row."""

    PRODUCES = "dataset"
    OUTPUTS = (DATA,)

    def open(self, place: Path, record: Mapping[str, Any], part: str) -> Dataset:
        """The rows."""
        return open_dataset(place / DATA)

    def store(self, data: Dataset, place: Path, start: float) -> dict[str, Any]:
        """Write the rows; returns what the record says about them."""
        store_dataset(data, place / DATA)
        facts = {"rows": len(data), "shape": str(data.shape), "skipped": dict(data.skipped)}
        return {"produced": facts, "seconds": time.perf_counter() - start}

    @staticmethod
    def describe(record: Mapping[str, Any]) -> str:
        """How many rows there are, and what was left out or counted."""
        produced = record["produced"]
        skipped = [f"{count:,} {reason}" for reason, count in produced["skipped"].items() if count]
        return "; ".join([f"{produced['rows']:,} {produced['shape']}", *skipped])


def time_makers(makers: list[Maker], texts: Dataset) -> float:
    """The seconds that these makers would take for all texts."""
    few = texts.column("text").slice(0, TIMED_VIEWS).to_pylist()
    seconds = [time_per_item(maker.views, few) for maker in makers]
    return sum(seconds) * len(texts)


class Views(StoredDataset):
    """Back-translation, synonyms, mask-fill, a file of pairs, or the entailments of NLI data."""

    options: ViewSettings = LATER

    @classmethod
    def options_model(cls, values: Mapping[str, Any]) -> type[BaseModel]:
        """The settings of the kind."""
        return KINDS[values["kind"]]

    def located(self, locate: Callable[[str], str]) -> Self:
        """With every path and model name located."""
        return super().located(locate).model_copy(update={"options": located_views(self.options, locate)})

    def makers(self) -> tuple[str, ...]:
        """The translators, or the masked language model."""
        match self.options:
            case BackTranslation(pivots=pivots):
                return tuple(model for pivot in pivots for model in (pivot.forward, pivot.backward))
            case MaskFill(model=model):
                return (model,)
        return ()

    def check(self) -> None:
        """Refuse a maker whose package or model is missing."""
        if isinstance(self.options, BackTranslation | Synonyms | MaskFill):
            makers_for(self.options)

    @property
    def checked_for_leaks(self) -> bool:
        """Views may hide their originals, so these are checked; entailments are checked where they are trained on."""
        return not isinstance(self.options, Entailment)

    def depends(self, inputs: Inputs, context: Context) -> dict[str, Any]:
        """Models count by their content, as makers identify themselves."""
        by = self.options
        if isinstance(by, BackTranslation | Synonyms | MaskFill):
            return {"makers": [maker.identity for maker in makers_for(by)]}
        kind = {"kind": by.kind}  # which is the default of its options, and so not among them
        return (
            super().depends(inputs, context)
            | kind
            | ({"file": sha256(Path(by.file))} if isinstance(by, ReadyPairs) and Path(by.file).is_file() else {})
        )

    def run(self, inputs: Inputs, place: Path, context: Context) -> dict[str, Any]:
        """Make the views that are not cached."""
        start = time.perf_counter()
        return self.store(make_pairs(inputs.rows, self.options, cache=context.folder / "views"), place, start)

    def forecast(self, inputs: Inputs, context: Context, scratch: Path) -> tuple[Forecast, Artifact]:
        """Time a few views. For the stages after it, every sentence is beside itself."""
        start = time.perf_counter()
        if isinstance(self.options, BackTranslation | Synonyms | MaskFill):
            texts = texts_of(inputs.rows)
            pairs, seconds = placeholder(texts, Shape.PAIRS), time_makers(makers_for(self.options), texts)
        else:
            pairs = make_pairs(inputs.rows, self.options)
            seconds = time.perf_counter() - start
        ahead = Forecast(self.name, self.method, len(pairs), Shape.PAIRS, seconds, leaked=inputs.leaked, note=ONCE)
        return ahead, Artifact("dataset", "", "", {}, lambda part: pairs)


def located_views(views: ViewSettings, locate: Callable[[str], str]) -> ViewSettings:
    """View settings with every path and model name located."""
    match views:
        case ReadyPairs():
            return views.model_copy(update={"file": locate(views.file)})
        case MaskFill():
            return views.model_copy(update={"model": locate(views.model)})
        case BackTranslation():
            pivots = [{"forward": locate(pivot.forward), "backward": locate(pivot.backward)} for pivot in views.pivots]
            return BackTranslation(**{**views.model_dump(), "pivots": pivots})
    return views


class TranslateOptions(Options):
    """The embedded translator `into` pt or en, or a translation model with its beams and prefix."""

    into: str | None = None
    model: str | None = None
    beams: int | None = Field(None, ge=1)
    prefix: str = ""

    def maker(self) -> Maker:
        """The translator; its package or model must be installed."""
        return translation_maker(self.into, self.model, self.beams, self.prefix)


class Translate(StoredDataset):
    """Every distinct sentence beside its translation."""

    OPTIONS = TranslateOptions

    options: TranslateOptions = LATER

    def located(self, locate: Callable[[str], str]) -> Self:
        """With every path and model name located."""
        model = self.options.model and locate(self.options.model)
        return super().located(locate).model_copy(update={"options": self.options.model_copy(update={"model": model})})

    def makers(self) -> tuple[str, ...]:
        """The translation model, unless it is the embedded one."""
        return (self.options.model,) if self.options.model else ()

    def check(self) -> None:
        """Refuse a translator whose package or model is missing."""
        self.options.maker()

    def depends(self, inputs: Inputs, context: Context) -> dict[str, Any]:
        """Models count by their content, as makers identify themselves."""
        return {"maker": self.options.maker().identity}

    def run(self, inputs: Inputs, place: Path, context: Context) -> dict[str, Any]:
        """Make the translations that are not cached."""
        start = time.perf_counter()
        made = make_translations(inputs.rows, self.options.maker(), cache=context.folder / "views")
        return self.store(made, place, start)

    def forecast(self, inputs: Inputs, context: Context, scratch: Path) -> tuple[Forecast, Artifact]:
        """Time a few translations. For the stages after it, every sentence is its own translation."""
        texts = texts_of(inputs.rows)
        rows, seconds = placeholder(texts, Shape.PARALLEL), time_makers([self.options.maker()], texts)
        ahead = Forecast(self.name, self.method, len(rows), rows.shape, seconds, leaked=inputs.leaked, note=ONCE)
        return ahead, Artifact("dataset", "", "", {}, lambda part: rows)
