"""Raw text in, labelled data out: blocks that the ledger lacks are written and judged, then everything is filtered.

Blocks are made in this process, one after the other, or by several workers with Ray.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple, Self

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch
from pydantic import BaseModel, ConfigDict, Field, model_validator

from sentloom.data.dataset import Dataset
from sentloom.data.hygiene.languages import NAMES, language_shares, main_language
from sentloom.data.shapes import Shape
from sentloom.encoder.catalogue.listed import QWEN
from sentloom.encoder.device import DEFAULT, Choice, Precision, chosen, device_for, fast_precision, running_on
from sentloom.errors import InputError, option
from sentloom.progress import progress
from sentloom.ray_actors import Actor, check_workers, lay_out, run_blocks
from sentloom.search.cross_encoder import CrossEncoder
from sentloom.writing.answers import ANSWERS, Answers, Prices
from sentloom.writing.chat import PATIENCE
from sentloom.writing.endpoint import Endpoint, EndpointOptions, find_endpoint
from sentloom.writing.filters import Filtering
from sentloom.writing.judges import QueryJudges, open_encoder, open_query_judges, score_all
from sentloom.writing.language_model import LanguageModel
from sentloom.writing.ledger import SCHEMA, Ledger, LedgerPlan
from sentloom.writing.llama import is_llama, llama_endpoint, refuse_no_llama
from sentloom.writing.models import SMOLLM2, SMOLLM2_NLI, open_model, version_for
from sentloom.writing.sampling import Sampling
from sentloom.writing.text_to_text import BackendName, open_backend
from sentloom.writing.triplets import Summary, check_filters, draw
from sentloom.writing.writer import NLI_KINDS, Kind, SourceText, Wording, Writer, WritingPrompt, Written, prompts_for

Engine = Literal["local", "ray"]
Loader = Callable[[], LanguageModel]
Log = Callable[[str], None]
BLOCK = 256  # sources
SOURCES = "sources.parquet"  # the raw texts, one row group per block
CONVERTED = "converted"  # the folder, inside the ledger's, for a backend's converted model
LANGUAGE_ROWS = 500  # of the raw data, evenly spaced, whose language is identified
TAUGHT = ("English", None)  # languages of what smollm2 has learned from; None: unknown


class Execution(BaseModel):
    """What runs the model, and how many sources are written at a time."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    backend: BackendName = "transformers"
    engine: Engine = "local"
    workers: int = Field(default=1, ge=1)  # of the engine ray
    requests: int = Field(default=8, ge=1)  # to an endpoint at a time
    timeout: float = Field(default=PATIENCE, gt=0)  # seconds for a whole answer of an endpoint
    price_read: float = Field(default=0.0, ge=0)  # of a million tokens, to an endpoint; to count the cost
    price_written: float = Field(default=0.0, ge=0)
    block: int = Field(default=BLOCK, ge=1)  # sources
    encoder: str = "embedded"  # searches, together with BM25, for the source of a query; none: BM25 alone
    teacher: str | None = None  # a cross-encoder that scores queries: reranker, a folder or a hub name

    @model_validator(mode="after")
    def _workers_of_ray(self) -> Self:
        if self.engine == "local" and self.workers > 1:
            raise ValueError(f"{self.workers} workers need the engine ray; the engine local is a single process")
        return self

    @property
    def prices(self) -> Prices:
        """What an endpoint's tokens cost."""
        return Prices(self.price_read, self.price_written)


@dataclass(frozen=True)
class WritingTask:
    """What is written, with which examples, and the limits of an endpoint."""

    kinds: tuple[Kind, ...] = NLI_KINDS
    shots: Dataset | None = None  # the user's own pairs or triplets
    writer_model: str | None = None  # of an endpoint
    max_tokens: int | None = None  # read and written by an endpoint, at most, for this ledger
    spent: int = 0  # tokens of other ledgers that count towards it

    def model(self, name: str | Path) -> str:
        """The name of the model that writes this; there are two versions of the embedded one."""
        return version_for(str(name), self.kinds, shown=self.shots is not None)


def synthesize(
    raw: Dataset,
    writer: str | Path | Loader,
    out: Path,
    sampling: Sampling | None = None,
    filtering: Filtering | None = None,
    execution: Execution | None = None,
    *,
    task: WritingTask | None = None,
    rows: int | None = None,
    show_progress: bool = True,
    log: Log = lambda text: None,
) -> Summary:
    """Write for the first `rows` texts, or for all, judge what was written, and draw triplets and pairs.

    `writer` is a name of the catalogue, a folder, a hub name, the address of an endpoint, or a function that loads a
    model. `out` is the ledger's folder. What it holds is not written again, so that a killed run resumes, and more rows
    or other filters cost only what they add; another writer, text, prompt or sampling is refused. With the engine
    `ray`, several workers write blocks at the same time.
    """
    if raw.shape is not Shape.TEXTS:
        raise InputError(
            raw.files[0],
            f"its shape is {raw.shape}",
            f"{Shape.TEXTS}",
            f"choose one text column: {option('columns', 'text=NAME')}",
        )
    execution, sampling, task = execution or Execution(), sampling or Sampling(), task or WritingTask()
    opening = _opening(writer, task, sampling, execution)
    language = language_of(raw)
    plan = _plan(raw, language, task, sampling, execution, opening)
    check_filters(plan, filtering or Filtering())
    if not callable(writer) and task.model(writer) == SMOLLM2_NLI and language not in TAUGHT:
        log(
            f"smollm2 has learned this from English texts, and yours are {language}: the filters will drop "
            "most of what it writes; name another writer"
        )
    ledger = Ledger.begin(out, plan)
    if any(execution.prices):
        Answers(ledger.folder / ANSWERS).set_prices(execution.prices)
    count = len(raw) if rows is None else min(rows, len(raw))
    missing = ledger.missing(count)
    if missing and execution.engine == "ray":
        if opening.load is None:
            fix = "leave out engine=ray; requests=N sends more of them at a time"
            raise InputError("execution", "the engine ray runs models, and the writer is an endpoint", "", fix)
        _make_blocks_with_ray(_Missing(ledger, raw, missing, count), opening.load, execution, show_progress)
    elif missing:
        opened = opening.open(ledger)
        if isinstance(opened, Endpoint) and not is_llama(writer):
            texts = _Missing(ledger, raw, missing, count).texts
            log(opened.announcement(plan.prompts, texts, sampling.candidates))
        judges = open_query_judges(plan, raw.column("text").to_pylist, execution.encoder, execution.teacher)
        _make_blocks_here(_Missing(ledger, raw, missing, count), opened, judges, show_progress)
    return draw(ledger, filtering, rows=count, show_progress=show_progress)


@dataclass(frozen=True)
class _Opening:
    """A writer before there is a ledger: what its rows depend on, and how to open it."""

    identity: str
    learned: Wording | None
    judge: str
    backend: str
    open: Callable[[Ledger], Writer]
    temperature: float = 1.0  # if none is asked for
    load: Loader | None = None  # for workers


def _opening(writer: str | Path | Loader, task: WritingTask, sampling: Sampling, execution: Execution) -> _Opening:
    by = execution
    endpoint = find_endpoint(writer, task.writer_model, task.max_tokens, by.requests, by.prices, task.spent, by.timeout)
    if is_llama(writer):
        refuse_no_llama()
        return _at_endpoint(QWEN.sha256, llama_endpoint, sampling)
    if endpoint:
        return _at_endpoint(endpoint.identity, lambda: endpoint, sampling)
    load = writer if callable(writer) else writer_loader(task.model(writer), execution.backend)
    model = load().eval()
    return _Opening(
        model.sha256,
        model.learned,
        "{}".join(model.wording.judge),
        execution.backend,
        lambda ledger: open_ledgers_writer(ledger, model),
        model.temperature,
        load,
    )


def _at_endpoint(identity: str, options: Callable[[], EndpointOptions], sampling: Sampling) -> _Opening:
    judge = "{}".join(Wording().judge)
    return _Opening(identity, None, judge, Endpoint.name, lambda ledger: Endpoint(options(), sampling, ledger.folder))


def _plan(
    raw: Dataset,
    language: str | None,
    task: WritingTask,
    sampling: Sampling,
    execution: Execution,
    opening: _Opening,
) -> LedgerPlan:
    prompts = prompts_for(task.kinds, language, task.shots, opening.learned)
    queried = "query" in prompts
    encoder = open_encoder(execution.encoder) if queried else None
    chosen = sampling.model_copy(update={"temperature": sampling.temperature or opening.temperature})
    return LedgerPlan(
        raw=raw.sha256, rows=len(raw), writer=opening.identity, prompts=prompts, judge=opening.judge,
        encoder=encoder.fingerprint() if encoder else None,
        teacher=CrossEncoder.load(execution.teacher).identity if queried and execution.teacher else None,
        sampling=chosen, backend=opening.backend, block=execution.block,
    )  # fmt: skip


def language_of(raw: Dataset) -> str | None:
    """The name of the language of the raw data; None if it is not recognised, or there are several."""
    rows = np.unique(np.linspace(0, max(0, len(raw) - 1), min(len(raw), LANGUAGE_ROWS)).astype(np.int64))
    code = main_language(language_shares(raw.take(rows)["text"]))
    return NAMES.get(code, code) if code else None


def writer_loader(name: str, backend: BackendName) -> Loader:
    """What opens a model in its precision. A folder gets its absolute path: a worker may run in another folder."""
    full = str(Path(name).resolve()) if Path(name).exists() else name
    if writing_precision(name, backend) == "fp32":
        return lambda: open_model(full)
    return lambda: open_model(full).to(torch.bfloat16)  # other weights, and so another hash


def writing_precision(name: str, backend: BackendName) -> Precision:
    """The chosen precision. By default `smollm2` runs in bf16 on CPUs that compute in it, twice as fast."""
    fast = name in (SMOLLM2, SMOLLM2_NLI) and backend == "transformers"
    return chosen().precision or (fast_precision(device_for()) if fast else "fp32")


def open_ledgers_writer(ledger: Ledger, model: LanguageModel) -> Writer:
    """The writer that a ledger's plan names, running a model."""
    return open_backend(ledger.plan.backend, model, ledger.plan.sampling, ledger.folder / CONVERTED)


@dataclass(frozen=True)
class _Missing:
    """The blocks that a ledger lacks of the first `rows` raw texts."""

    ledger: Ledger
    raw: Dataset
    numbers: Sequence[int]
    rows: int

    @property
    def sources(self) -> int:
        """How many texts they are about."""
        return sum(len(self.ledger.span(number, self.rows)) for number in self.numbers)

    @property
    def texts(self) -> list[str]:
        """These texts."""
        spans = (self.ledger.span(number, self.rows) for number in self.numbers)
        return [text for span in spans for text in self.raw.take(span)["text"]]


def _make_blocks_here(missing: _Missing, writer: Writer, judges: QueryJudges | None, show_progress: bool) -> None:
    """Write one block after the other, in this process."""
    ledger, raw, rows = missing.ledger, missing.raw, missing.rows
    with progress("writing and judging", missing.sources, "sources", show_progress) as advance:
        for number in missing.numbers:
            span = ledger.span(number, rows)
            if not ledger.has(number, rows):  # another run on the same ledger may have written it
                texts = raw.column("text").slice(span.start, len(span)).to_pylist()
                ledger.write(number, make_block(ledger.plan, span, texts, writer, judges))
            advance(len(span))


class _Request(NamedTuple):
    source: SourceText
    kind: Kind
    prompt: WritingPrompt


def make_block(
    plan: LedgerPlan, sources: range, texts: Sequence[str], writer: Writer, judges: QueryJudges | None = None
) -> pa.Table:
    """All candidates of some sources with their scores: per source the kinds, per kind the candidates."""
    requests = [
        _Request(SourceText(row, text, candidate), kind, prompts[(row + candidate) % len(prompts)])  # styles take turns
        for row, text in zip(sources, texts, strict=True)
        for kind, prompts in plan.prompts.items()
        for candidate in range(plan.sampling.candidates)
    ]
    answers = _written(requests, writer)
    texts = [answer.text.replace("\0", "") for answer in answers]  # which data readers refuse
    pairs = [(request.source.text, text) for request, text in zip(requests, texts, strict=True)]
    scores = score_all([request.kind for request in requests], pairs, writer, judges)
    columns = {
        "source": [request.source.row for request in requests],
        "source_text": [request.source.text for request in requests],
        "kind": [request.kind for request in requests],
        "style": [request.prompt.style for request in requests],
        "candidate": [request.source.candidate for request in requests],
        "prompt": ["{}".join(request.prompt.around) for request in requests],
        "seed": [plan.sampling.seed] * len(requests),
        "writer": [plan.writer] * len(requests),
        "text": texts,
        "finished": [answer.finished for answer in answers],
        "tokens_read": [answer.tokens_read for answer in answers],
        "tokens_written": [answer.tokens_written for answer in answers],
        **scores._asdict(),
        "cross_encoder": pa.array(scores.cross_encoder, from_pandas=True),  # NaN becomes null
    }
    return pa.table(columns, schema=SCHEMA)


def _written(requests: Sequence[_Request], writer: Writer) -> list[Written]:
    """What was written for the requests: those that share a kind and a prompt are written together."""
    written: dict[int, Written] = {}
    for kind, prompt in dict.fromkeys((request.kind, request.prompt) for request in requests):
        places = [place for place, request in enumerate(requests) if (request.kind, request.prompt) == (kind, prompt)]
        texts = writer.write([requests[place].source for place in places], kind, prompt)
        written |= dict(zip(places, texts, strict=True))
    return [written[place] for place in range(len(requests))]


def _make_blocks_with_ray(missing: _Missing, load: Loader, execution: Execution, show_progress: bool) -> None:
    """Write the blocks with several workers, each of which holds a model."""
    check_workers(execution.workers)
    lay_out_sources(missing.raw, missing.ledger)
    arguments = (str(missing.ledger.folder.resolve()), load, execution, missing.rows, chosen())
    gpu = device_for().type == "cuda"
    with progress("writing and judging", missing.sources, "sources", show_progress) as advance:
        run_blocks(Worker, arguments, missing.numbers, workers=execution.workers, gpu=gpu, advance=advance)


class Worker(Actor):
    """Holds a model and its judges."""

    def __init__(self, folder: str, load: Loader, runs: Execution, rows: int, choice: Choice = DEFAULT) -> None:
        self.ledger, self.rows = Ledger.open(Path(folder)), rows
        self.texts = pq.ParquetFile(self.ledger.folder / SOURCES)
        with running_on(choice.device, choice.precision):
            model = load().eval()
            if model.sha256 != self.ledger.plan.writer:
                raise RuntimeError("this worker's model is not the one that the ledger was started with")
            self.writer = open_ledgers_writer(self.ledger, model)
            self.judges = open_query_judges(self.ledger.plan, self._all_texts, runs.encoder, runs.teacher)

    def write(self, number: int) -> int:
        """Write one block of the ledger, unless it exists."""
        span = self.ledger.span(number, self.rows)
        if not self.ledger.has(number, self.rows):
            texts = self.texts.read_row_group(number)["text"].slice(0, len(span)).to_pylist()
            self.ledger.write(number, make_block(self.ledger.plan, span, texts, self.writer, self.judges))
        return len(span)

    def _all_texts(self) -> list[str]:
        texts: list[str] = self.texts.read()["text"].to_pylist()
        return texts


def lay_out_sources(raw: Dataset, ledger: Ledger) -> None:
    """Write the raw texts, a row group per block."""
    block = ledger.plan.block

    def texts(start: int) -> pa.Array:
        return raw.column("text").slice(start, block).combine_chunks()

    lay_out(ledger.folder / SOURCES, lambda: map(texts, range(0, len(raw), block)))
