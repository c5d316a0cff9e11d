"""Translate: rows in, translations of every distinct sentence out (source, target)."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

from pydantic import Field

from sentloom.data.sentences import texts_of
from sentloom.data.shapes import Shape
from sentloom.methods import Options
from sentloom.pipeline.artifacts import Artifact
from sentloom.pipeline.stages.stage import LATER, ONCE, Context, Forecast, Inputs
from sentloom.pipeline.stages.timing import placeholder
from sentloom.pipeline.stages.views import StoredDataset, time_makers
from sentloom.views.maker import Maker
from sentloom.views.pairs import make_translations
from sentloom.views.translation import translation_maker


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
    """Translations are also cached by translator and text in DIR/views, so that a killed run resumes."""

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
        found = Forecast(self.name, self.method, len(rows), rows.shape, seconds, leaked=inputs.leaked, note=ONCE)
        return found, Artifact("dataset", "", "", {}, lambda part: rows)
