"""Write training data: a writer and raw text in, triplets and pairs out (GenSE, section 3.2).

Every sentence that is written goes to a ledger beside the artifact, DIR/stages/NAME-ledger-KEY. Other filters, or more
rows, give another artifact and continue the same ledger.
"""

import shutil
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar, Self

from pydantic import BaseModel, Field

from sentloom.corpus.opening import open_data
from sentloom.data.dataset import Dataset
from sentloom.data.sentences import texts_of
from sentloom.data.shapes import Shape
from sentloom.encoder.prompts import Prompts
from sentloom.errors import InputError
from sentloom.files import new_file
from sentloom.methods import Options
from sentloom.pipeline.artifacts import Artifact, content_key
from sentloom.pipeline.schema import Text
from sentloom.pipeline.stages.stage import LATER, Context, DataStage, Forecast, Inputs, Stage
from sentloom.pipeline.stages.timing import placeholder
from sentloom.pipeline.stages.writer import ONCE
from sentloom.writing.filters import PRESETS, Filtering
from sentloom.writing.ledger import PLAN, Ledger
from sentloom.writing.sampling import Sampling
from sentloom.writing.summary import Summary
from sentloom.writing.synthesize import Execution, synthesize
from sentloom.writing.synthesizer import Synthesizer
from sentloom.writing.text_to_text import TextToText
from sentloom.writing.triplets import PAIRS, SUMMARY, TRIPLETS, draw

TIMED_TEXTS = 32
PARTS = {"": ("triplets", TRIPLETS), "pairs": ("pairs", PAIRS)}


class SynthesizeOptions(Sampling, Filtering, Execution, Options):
    """How sentences are sampled, which of them are kept, and what runs the model."""

    rows: int | None = Field(None, ge=1)  # of the raw text, from the first

    def part(self, model: type[BaseModel]) -> Any:
        """The options that belong to `Sampling`, `Filtering` or `Execution`."""
        return model(**{name: getattr(self, name) for name in model.model_fields})


class Synthesize(DataStage):
    """A writer writes an entailed and a contradicting sentence for each text, judges them, and keeps the good ones."""

    MODEL_KIND = "writer"
    PRODUCES = "dataset"
    PARTS = ("", "/pairs")
    OUTPUTS = (TRIPLETS, PAIRS, SUMMARY)
    OPTIONS = SynthesizeOptions
    PRESETS: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        name: by.model_dump(exclude_defaults=True) | ({"top_k": 50} if name == "official-code" else {})
        for name, by in PRESETS.items()
    }

    model: Text  # a folder, a hub name, or `stage:NAME`
    options: SynthesizeOptions = LATER

    def located(self, locate: Callable[[str], str]) -> Self:
        """With every path and model name located."""
        return super().located(locate).model_copy(update={"model": locate(self.model)})

    def models(self) -> tuple[str, ...]:
        """The writer."""
        return (self.model,)

    @classmethod
    def takes_model_of(cls, other: type[Stage], method: str) -> bool:
        """A model that has only learned to restore sentences can neither write nor judge."""
        return method == Synthesizer.NAME

    def fingerprint(self, model: str, prompts: Prompts | None) -> str:
        """The hash of a writer that no stage trained."""
        return TextToText.load(model).sha256

    def fit(self, data: Dataset) -> Dataset:
        """Every distinct sentence."""
        return texts_of(data)

    def depends(self, inputs: Inputs, context: Context) -> dict[str, Any]:
        """What the ledger's rows depend on, how many rows there are, and what filters them."""
        filtering = self.options.part(Filtering).model_dump(mode="json", exclude_defaults=True)
        return {"ledger": self._ledger_key(inputs), "rows": self.options.rows, "filtering": filtering}

    def _ledger_key(self, inputs: Inputs) -> str:
        by = self.options
        return content_key(
            method=self.method,
            revision=self.REVISION,
            sampling=by.part(Sampling).model_dump(mode="json", exclude_defaults=True),
            backend=by.backend,
            block=by.block,
            model=inputs.model.fingerprint,
            data=inputs.rows.sha256,
        )

    def run(self, inputs: Inputs, place: Path, context: Context) -> dict[str, Any]:
        """Write what the ledger lacks, filter it, and copy what was kept, which other filters would overwrite."""
        start = time.perf_counter()
        ledger = place.with_name(f"{self.name}-ledger-{self._ledger_key(inputs)}")
        summary = self._written(inputs.rows, inputs.model.source, ledger)
        for name in self.OUTPUTS:
            with new_file(place / name) as part:
                shutil.copyfile(ledger / name, part)
        kinds = {kind: {"written": one.written, "kept": one.kept} for kind, one in summary.kinds.items()}
        counts = {"sources": summary.sources, "triplets": summary.triplets, "pairs": summary.pairs, "kinds": kinds}
        return {**counts, "seconds": time.perf_counter() - start}

    def _written(self, data: Dataset, model: str, ledger: Path) -> Summary:
        """The model is not loaded if the ledger lacks nothing."""
        by, rows = self.options, min(self.options.rows or len(data), len(data))
        if (ledger / PLAN).is_file() and not (known := Ledger.open(ledger)).missing(rows):
            return draw(known, by.part(Filtering), rows=rows)
        return synthesize(data, model, ledger, by.part(Sampling), by.part(Filtering), by.part(Execution), rows=rows)

    def forecast(self, inputs: Inputs, context: Context, scratch: Path) -> tuple[Forecast, Artifact]:
        """Write for a few sentences. For the stages after it, every sentence counts as one triplet and one pair."""
        data, by = inputs.rows, self.options
        rows = min(by.rows or len(data), len(data))
        few = min(rows, TIMED_TEXTS)
        model = TextToText.load(inputs.model.source).eval()  # loading is not timed
        start = time.perf_counter()
        synthesize(data, lambda: model, scratch / self.name, by.part(Sampling), rows=few, show_progress=False)
        seconds = (time.perf_counter() - start) / few * rows
        found = Forecast(self.name, self.method, rows, data.shape, seconds, leaked=inputs.leaked, note=ONCE)
        shapes = {"": Shape.TRIPLETS, "pairs": Shape.PAIRS}
        return found, Artifact("dataset", "", "", {}, lambda part: placeholder(data, shapes[part], rows))

    def open(self, place: Path, record: Mapping[str, Any], part: str) -> Dataset:
        """The triplets, or the pairs of sources without a good contradiction."""
        what, file = PARTS[part]
        if not record[what]:
            found = f"the filters kept no {what} of {record['sources']:,} sentences"
            fix = "lower its threshold, or use a synthesizer that writes better"
            raise InputError(f"stage {self.name}", found, "some to train on", fix)
        return open_data(place / file)

    @staticmethod
    def describe(record: Mapping[str, Any]) -> str:
        """How many triplets and pairs there are, and how much was kept."""
        share = record["triplets"] / max(1, record["sources"])
        parts = [f"{one['kept'] / max(1, one['written']):.1%} of {kind}s kept" for kind, one in record["kinds"].items()]
        return (
            f"{record['triplets']:,} triplets and {record['pairs']:,} pairs of {record['sources']:,} sentences "
            f"(yield {share:.1%}; {', '.join(parts)})"
        )
