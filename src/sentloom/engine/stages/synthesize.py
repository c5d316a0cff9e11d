"""Write training data: a writer and raw text in, triplets and pairs out (GenSE, section 3.2).

Everything that is written goes to a ledger beside the artifact, DIR/stages/NAME-ledger-KEY. Other filters, or more
rows, give another artifact and continue the same ledger.
"""

import math
import shutil
import time
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Annotated, Any, ClassVar, Self

import numpy as np
from pydantic import BaseModel, Field

from sentloom.data.corpus.opening import open_data
from sentloom.data.dataset import Dataset, take_rows
from sentloom.data.sentences import texts_of
from sentloom.data.shapes import Shape
from sentloom.encoder.catalogue.listed import QWEN
from sentloom.encoder.loading import shared_encoder
from sentloom.encoder.tokens import Prompts
from sentloom.engine.artifacts import Artifact, content_key
from sentloom.engine.schema import Text
from sentloom.engine.stages.stage import LATER, ONCE, Context, DataStage, Forecast, Inputs, Stage
from sentloom.engine.stages.timing import placeholder, time_per_item
from sentloom.errors import InputError
from sentloom.files import new_file
from sentloom.methods import Options
from sentloom.progress import OutOfTime, deadline
from sentloom.writing.answers import ANSWERS, Answers
from sentloom.writing.chat import TokenLimit
from sentloom.writing.endpoint import EndpointOptions, find_endpoint, requests_per_text
from sentloom.writing.filters import PRESETS, Filtering
from sentloom.writing.judges import BM25_ALONE
from sentloom.writing.language_model import LanguageModel
from sentloom.writing.ledger import PLAN, Ledger
from sentloom.writing.llama import is_llama, refuse_no_llama
from sentloom.writing.models import open_model, version_for
from sentloom.writing.sampling import Sampling
from sentloom.writing.synthesize import Execution, WritingTask, synthesize, writer_loader
from sentloom.writing.triplets import PAIRS, SUMMARY, TRIPLETS, Summary, draw
from sentloom.writing.writer import NLI_KINDS, Kind

SYNTHESIZER = "synthesizer"  # the method of a stage whose model has learned to write and to judge
TIMED_TEXTS = 16
ENDPOINT_SECONDS = 1.0  # per request, assumed: a forecast sends no request that could be timed
PARTS = {"": ("triplets", TRIPLETS), "pairs": ("pairs", PAIRS)}


class SynthesizeOptions(Sampling, Filtering, Execution, Options):
    """What is written and how, which texts are kept, and what runs the model."""

    kinds: Annotated[tuple[Kind, ...], Field(min_length=1)] = NLI_KINDS
    shots: str | None = None  # a file of pairs or triplets that show what to write
    writer_model: str | None = None  # of an endpoint
    max_tokens: int | None = Field(None, ge=1)  # that an endpoint reads and writes, for all ledgers of the folder
    rows: int | None = Field(None, ge=1)  # how many texts, from the first; None: all
    shuffle: bool = False  # the texts by the seed, so that the first ones are a sample of all

    def part(self, model: type[BaseModel]) -> Any:
        """The options that belong to `Sampling`, `Filtering` or `Execution`."""
        return model(**{name: getattr(self, name) for name in model.model_fields})

    def task(self, spent: int = 0) -> WritingTask:
        """What is written; `spent` tokens of an endpoint were used for other ledgers."""
        shots = open_data(self.shots) if self.shots else None
        return WritingTask(self.kinds, shots, self.writer_model, self.max_tokens, spent)

    def version(self, model: str) -> str:
        """The name of the model that writes; the shots are not read for it."""
        return version_for(model, self.kinds, shown=self.shots is not None)

    def endpoint(self, model: str) -> EndpointOptions | None:
        """The endpoint that the model's name is; None for a model that runs here."""
        return find_endpoint(model, self.writer_model, self.max_tokens, self.requests, self.prices)

    @property
    def triplets(self) -> bool:
        """Whether `stage:NAME` is triplets, and not pairs."""
        return "contradiction" in self.kinds


class WritingStopped(Exception):
    """Writing ended early; what was written for the first `rows` of `wanted` texts is in the ledger."""

    def __init__(self, stage: str, rows: int, wanted: int, *, late: bool) -> None:
        """`late`: the time was used up; otherwise the tokens were."""
        super().__init__(f"{stage}: stopped after {rows} of {wanted} texts")
        self.stage, self.rows, self.wanted, self.late = stage, rows, wanted, late


class WriterStage(DataStage):
    """A stage that takes a language model."""

    MODEL_KIND = "writer"

    model: Text  # smollm2, a folder, a hub name, or `stage:NAME`; for writing also the address of an endpoint

    def located(self, locate: Callable[[str], str]) -> Self:
        """With every path and model name located."""
        return super().located(locate).model_copy(update={"model": locate(self.model)})

    def models(self) -> tuple[str, ...]:
        """The writer."""
        return (self.model,)

    def load(self, source: str) -> LanguageModel:
        """The model as this stage uses it."""
        return open_model(source)

    def fingerprint(self, model: str, prompts: Prompts | None) -> str:
        """The hash of a model as it is loaded."""
        return self.load(model).sha256


class Synthesize(WriterStage):
    """A writer writes sentences or queries for each text, judges them, and keeps the good ones."""

    PRODUCES = "dataset"
    PARTS = ("", "/pairs")
    OUTPUTS = (TRIPLETS, PAIRS, SUMMARY)
    OPTIONS = SynthesizeOptions
    PRESETS: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        name: by.model_dump(exclude_defaults=True) | ({"top_k": 50} if name == "official-code" else {})
        for name, by in PRESETS.items()
    }

    options: SynthesizeOptions = LATER

    def located(self, locate: Callable[[str], str]) -> Self:
        """With every path and model name located."""
        by = self.options
        named = {name: locate(value) for name in ("encoder", "teacher", "shots") if (value := getattr(by, name))}
        return super().located(locate).model_copy(update={"options": by.model_copy(update=named)})

    @classmethod
    def takes_model_of(cls, other: type[Stage], method: str) -> bool:
        """A model that has only learned to restore sentences can neither write nor judge."""
        return method == SYNTHESIZER

    def fingerprint(self, model: str, prompts: Prompts | None) -> str:
        """The hash of a writer that no stage trained, or the endpoint."""
        if endpoint := self.options.endpoint(model):
            return endpoint.identity
        if is_llama(model):
            return QWEN.sha256
        files = [(file.name, file.stat().st_mtime_ns) for file in Path(model).glob("*")]  # none, if it is no folder
        return _fingerprint(self.options.version(model), tuple(sorted(files)))

    def check(self) -> None:
        """Refuse an endpoint without a model, its options without an endpoint, and a writer that cannot run."""
        self.options.endpoint(self.model)
        if is_llama(self.model):
            refuse_no_llama()

    def fit(self, data: Dataset) -> Dataset:
        """Every distinct sentence, in order or shuffled."""
        texts = texts_of(data)
        return shuffled(texts, self.options.seed) if self.options.shuffle else texts

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
            kinds=by.kinds,
            shots=by.shots and open_data(by.shots).sha256,
            encoder=by.encoder if "query" in by.kinds else None,
            teacher=by.teacher if "query" in by.kinds else None,
            backend=by.backend,
            block=by.block,
            model=inputs.model.fingerprint,
            data=inputs.rows.sha256,
        )

    def run(self, inputs: Inputs, place: Path, context: Context) -> dict[str, Any]:
        """Write what the ledger lacks, and filter it; what was kept is copied, as other filters overwrite it."""
        start = time.perf_counter()
        ledger = place.with_name(f"{self.name}-ledger-{self._ledger_key(inputs)}")
        summary = self._written(inputs.rows, inputs.model.source, ledger, context)
        for name in self.OUTPUTS:
            with new_file(place / name) as part:
                shutil.copyfile(ledger / name, part)
        kinds = {name: {"written": kind.written, "kept": kind.kept} for name, kind in summary.kinds.items()}
        counts = {"sources": summary.sources, "triplets": summary.triplets, "pairs": summary.pairs, "kinds": kinds}
        paid = {"tokens": summary.endpoint_tokens, "cost": summary.endpoint_cost} if summary.endpoint_tokens else {}
        return {**counts, **paid, "seconds": time.perf_counter() - start}

    def _written(self, data: Dataset, model: str, ledger: Path, context: Context) -> Summary:
        """The model is not loaded if the ledger lacks nothing."""
        by, rows = self.options, min(self.options.rows or len(data), len(data))
        if (ledger / PLAN).is_file() and not (known := Ledger.open(ledger)).missing(rows):
            return draw(known, by.part(Filtering), rows=rows)
        try:
            return self._synthesized(data, model, ledger, rows, context)
        except (OutOfTime, TokenLimit) as error:
            if self.name not in context.limits:  # nobody set a limit for this stage, so all rows are needed
                raise
            late = isinstance(error, OutOfTime)
            if late and not _rows_in(ledger, rows):
                with deadline(math.inf):  # the first block is always written
                    self._synthesized(data, model, ledger, min(by.block, rows), context)
            raise WritingStopped(self.name, _rows_in(ledger, rows), rows, late=late) from None

    def _synthesized(self, data: Dataset, model: str, ledger: Path, rows: int, context: Context) -> Summary:
        by = self.options
        return synthesize(
            data, model, ledger, by.part(Sampling), by.part(Filtering), by.part(Execution),
            task=by.task(_spent_beside(ledger)), rows=rows, log=context.log,
        )  # fmt: skip

    def forecast(self, inputs: Inputs, context: Context, scratch: Path) -> tuple[Forecast, Artifact]:
        """Write for a few sentences. For the stages after it, every sentence counts as one triplet and one pair."""
        data, by = inputs.rows, self.options
        rows = min(by.rows or len(data), len(data))
        seconds = rows * self._seconds_per_text(inputs, scratch)
        before, leaked = len(data) * self._seconds_per_vector(data), inputs.leaked
        ahead = Forecast(self.name, self.method, rows, data.shape, seconds, leaked=leaked, note=ONCE, before=before)
        shapes = {"": Shape.TRIPLETS if by.triplets else Shape.PAIRS, "pairs": Shape.PAIRS}
        return ahead, Artifact("dataset", "", "", {}, lambda part: placeholder(data, shapes[part], rows))

    def _seconds_per_text(self, inputs: Inputs, scratch: Path) -> float:
        """Measured on a few texts, which queries are also searched among; loading the model is not timed."""
        by, few = self.options, inputs.rows[:TIMED_TEXTS]
        if by.endpoint(self.model) or is_llama(self.model):
            return ENDPOINT_SECONDS * requests_per_text(by.kinds, by.candidates) / by.requests
        model = writer_loader(by.version(inputs.model.source), by.backend)().eval()
        start = time.perf_counter()
        synthesize(
            few, lambda: model, scratch / self.name, by.part(Sampling), None, by.part(Execution),
            task=by.task(), show_progress=False,
        )  # fmt: skip
        return (time.perf_counter() - start) / max(1, len(few))

    def _seconds_per_vector(self, data: Dataset) -> float:
        """Queries are searched among all texts, however few of them get queries."""
        if "query" not in self.options.kinds or self.options.encoder == BM25_ALONE:
            return 0.0
        return time_per_item(shared_encoder(self.options.encoder).encode, data[:TIMED_TEXTS]["text"])

    def open(self, place: Path, record: Mapping[str, Any], part: str) -> Dataset:
        """The triplets, if contradictions were written, or the pairs."""
        what, file = PARTS[part if self.options.triplets else "pairs"]
        if not record[what]:
            problem = f"the filters kept no {what} of {record['sources']:,} sentences"
            fix = "loosen its filters, or use a writer that writes better"
            raise InputError(f"stage {self.name}", problem, "some to train on", fix)
        return open_data(place / file)

    @staticmethod
    def describe(record: Mapping[str, Any]) -> str:
        """How many triplets and pairs there are, and how much was kept."""
        share = (record["triplets"] + record["pairs"]) / max(1, record["sources"])
        parts = [
            f"{counts['kept'] / max(1, counts['written']):.1%} of kind {kind} kept"
            for kind, counts in record["kinds"].items()
        ]
        paid = f"; {record['tokens']:,} tokens of the endpoint" if record.get("tokens") else ""
        return (
            f"{record['triplets']:,} triplets and {record['pairs']:,} pairs of {record['sources']:,} texts "
            f"(yield {share:.1%}; {', '.join(parts)}{paid})"
        )


def _rows_in(folder: Path, rows: int) -> int:
    """How many of the first `rows` texts a ledger is complete for, without a gap."""
    ledger = Ledger.open(folder)
    first, *_ = (*ledger.missing(rows), None)
    return rows if first is None else first * ledger.plan.block


def _spent_beside(ledger: Path) -> int:
    """The tokens of an endpoint that the other ledgers of a folder have used."""
    others = (path for path in ledger.parent.glob(f"*-ledger-*/{ANSWERS}") if path.parent != ledger)
    return sum(Answers(path).usage.total for path in others)


@cache
def _fingerprint(model: str, files: tuple[tuple[str, int], ...]) -> str:
    """The hash of a writer, read once: a fit asks for it before every run, and `files` say whether it has changed."""
    return open_model(model).sha256


def shuffled(data: Dataset, seed: int) -> Dataset:
    """The rows in an order that depends on the seed."""
    order = np.random.default_rng(seed).permutation(len(data))
    return data.derive(take_rows(data.table, order), f"shuffled with seed {seed}")
