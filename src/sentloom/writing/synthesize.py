"""Raw text in, triplets out: blocks that the ledger lacks are written and judged, then everything is filtered."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal, Self

import numpy as np
import pyarrow as pa
import torch
from pydantic import BaseModel, ConfigDict, Field, model_validator

from sentloom.data.dataset import Dataset
from sentloom.data.shapes import Shape
from sentloom.encoder.device import precision_for
from sentloom.errors import InputError
from sentloom.progress import progress
from sentloom.writing.filters import Filtering
from sentloom.writing.generator import Backend, BackendName, WritingRequest, open_backend
from sentloom.writing.ledger import SCHEMA, Ledger, LedgerPlan
from sentloom.writing.prompts import KINDS
from sentloom.writing.sampling import Sampling
from sentloom.writing.summary import Summary
from sentloom.writing.text_to_text import TextToText
from sentloom.writing.triplets import draw

Engine = Literal["local", "ray"]
Loader = Callable[[], TextToText]
BLOCK = 256  # sources
CONVERTED = "converted"  # the folder, inside the ledger's, for a backend's converted model


class Execution(BaseModel):
    """What runs the model, and how many sources are written at a time."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    backend: BackendName = "transformers"
    engine: Engine = "local"
    workers: int = Field(default=1, ge=1)  # of the engine ray
    block: int = Field(default=BLOCK, ge=1)  # sources

    @model_validator(mode="after")
    def _workers_of_ray(self) -> Self:
        if self.engine == "local" and self.workers > 1:
            raise ValueError(f"{self.workers} workers with the engine local, which is one")
        return self


def synthesize(
    raw: Dataset,
    model: str | Path | Loader,
    out: Path,
    sampling: Sampling | None = None,
    filtering: Filtering | None = None,
    execution: Execution | None = None,
    *,
    rows: int | None = None,
    show_progress: bool = True,
) -> Summary:
    """Write sentences for the first `rows` texts, or for all, judge them, and draw triplets from the ledger.

    `out` is the ledger's folder. What it holds is not written again, so that a killed run resumes, and more rows or
    other filters cost only what they add; another model, text or sampling is refused. `model` is a folder, a hub name,
    or a function that loads one. With the engine `ray`, several workers write blocks at the same time.
    """
    if raw.shape is not Shape.TEXTS:
        raise InputError(raw.files[0], f"{raw.shape}", f"{Shape.TEXTS}", "choose one text column (--column)")
    execution = execution or Execution()
    load = _in_precision(model if callable(model) else _loader(model))
    writer = load().eval()
    plan = LedgerPlan(
        raw=raw.sha256, rows=len(raw), model=writer.sha256, wording=writer.wording, sampling=sampling or Sampling(),
        backend=execution.backend, block=execution.block,
    )  # fmt: skip
    ledger = Ledger.begin(out, plan)
    wanted = len(raw) if rows is None else min(rows, len(raw))
    missing = ledger.missing(wanted)
    if missing and execution.engine == "ray":
        from sentloom.writing.ray_engine import make_blocks

        make_blocks(ledger, raw, load, missing, wanted, execution.workers, show_progress)
    elif missing:
        _make_blocks(ledger, raw, open_ledgers_backend(ledger, writer), missing, wanted, show_progress)
    return draw(ledger, filtering, rows=wanted, show_progress=show_progress)


def _loader(name: str | Path) -> Loader:
    """A folder gets its absolute path, since a worker may run in another folder."""
    full = Path(name).resolve() if Path(name).exists() else name
    return lambda: TextToText.load(full)


def _in_precision(load: Loader) -> Loader:
    """The same in the chosen precision; the weights, and so the model's hash, then differ."""
    return load if precision_for() == "fp32" else lambda: load().to(torch.bfloat16)


def open_ledgers_backend(ledger: Ledger, model: TextToText) -> Backend:
    """The backend that a ledger's plan names."""
    return open_backend(ledger.plan.backend, model, ledger.plan.sampling, ledger.folder / CONVERTED)


def _make_blocks(
    ledger: Ledger, raw: Dataset, backend: Backend, numbers: Sequence[int], rows: int, show_progress: bool
) -> None:
    """Write one block after the other, in this process."""
    total = sum(len(ledger.span(number, rows)) for number in numbers)
    with progress("writing and judging", total, "sources", show_progress) as advance:
        for number in numbers:
            span = ledger.span(number, rows)
            if not ledger.has(number, rows):  # another run on the same ledger may have written it
                texts = raw.column("text").slice(span.start, len(span)).to_pylist()
                ledger.write(number, make_block(ledger.plan, span, texts, backend))
            advance(len(span))


def make_block(plan: LedgerPlan, sources: range, texts: Sequence[str], backend: Backend) -> pa.Table:
    """All candidates of some sources with their scores: per source the kinds, per kind the candidates."""
    requests = [
        WritingRequest(source, text, kind, candidate)
        for source, text in zip(sources, texts, strict=True)
        for kind in KINDS
        for candidate in range(plan.sampling.candidates)
    ]
    written = [text.replace("\0", "") for text in backend.write(requests)]  # which data readers refuse
    true = backend.judge([(one.text, text) for one, text in zip(requests, written, strict=True)])
    entailed = np.array([one.kind == "entailment" for one in requests])
    prompts = {kind: "{}".join(plan.wording.around(kind)) for kind in KINDS}
    columns = {
        "source": [one.source for one in requests],
        "source_text": [one.text for one in requests],
        "kind": [one.kind for one in requests],
        "candidate": [one.candidate for one in requests],
        "prompt": [prompts[one.kind] for one in requests],
        "seed": [plan.sampling.seed] * len(requests),
        "model": [plan.model] * len(requests),
        "text": written,
        "score": np.where(entailed, true, 1 - true),
    }
    return pa.table(columns, schema=SCHEMA)
