"""Data made by models: hard negatives that a search finds, and sentences that a writer writes."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from sentloom.api.common import refuse_options_in_memory, silent
from sentloom.arguments import typed
from sentloom.data.columns import only_column
from sentloom.data.corpus.opening import open_data
from sentloom.data.dataset import Dataset
from sentloom.data.in_memory import Data
from sentloom.data.layout import Columns, as_columns
from sentloom.data.sentences import distinct_sentences
from sentloom.data.shapes import Shape, as_shape, text_columns
from sentloom.data.writers import check_ending, write
from sentloom.encoder import Encoder
from sentloom.encoder.device import Device, Precision, running_on
from sentloom.errors import InputError, checked, option
from sentloom.fitting.request import Log
from sentloom.lab.synthesis_plots import synthesis_figure
from sentloom.report import plots
from sentloom.search.cross_encoder import CrossEncoder
from sentloom.search.mining import MineReport, MineSettings
from sentloom.search.mining import mine as find_negatives
from sentloom.writing.filters import PRESETS, Filtering
from sentloom.writing.ledger import Ledger
from sentloom.writing.sampling import Sampling
from sentloom.writing.synthesize import Execution, WritingTask
from sentloom.writing.synthesize import synthesize as write_sentences
from sentloom.writing.triplets import Summary, draw
from sentloom.writing.writer import KINDS, NLI_KINDS, Kind

OptionValues = str | Mapping[str, Any] | None  # as a user writes them: `top_p=0.9,seed=2`, or a mapping


@typed
def mine(
    data: Data,
    output: str | Path | None = None,
    *,
    model: str | Path | Encoder = "embedded",
    corpus: Data | None = None,
    negatives: int = 1,
    margin: float = 0.05,
    at_most: float | None = None,
    guide: str | Path | Encoder | None = None,
    teacher: str | Path | CrossEncoder | None = None,
    teacher_margin: float = 1.0,
    skip: int = 0,
    depth: int = 50,
    search: Literal["exact", "faiss"] = "exact",
    pooling: str | None = None,
    shape: Shape | str | None = None,
    columns: Columns = None,
    spreadsheet_safe: bool = False,
    device: Device | None = None,
    precision: Precision | None = None,
    show_progress: bool = False,
) -> tuple[Dataset, MineReport]:
    """Find hard negatives for pairs: texts that rank close to the anchor but are not known to be right.

    Each pair gets up to `negatives` texts from `corpus` (by default the positives of the pairs) whose cosine with the
    anchor is at least `margin` below its positive's, and at most the share `at_most` of it; with a `guide`, a
    second model, by its cosines too. With a `teacher`, a cross-encoder, a negative's score must also be at least
    `teacher_margin` below the positive's. The search looks at `depth` candidates and skips the first `skip`. Returns
    the triplets, without the pairs for which none is found, and a report; `output` is a file for the triplets.

    >>> pairs = [(f"What does key {n} open?", f"Key {n} opens door {n}.") for n in range(20)]
    >>> triplets, report = mine(pairs, margin=0.0)
    >>> triplets.shape.value, report.rows
    ('triplets', 20)
    """
    limits = {"negatives": negatives, "margin": margin, "skip": skip, "depth": depth, "at_most": at_most}
    settings = checked(MineSettings, "mine", {**limits, "search": search, "teacher_margin": teacher_margin})
    refuse_options_in_memory([model], pooling=pooling)
    refuse_options_in_memory([model, guide, teacher], device=device, precision=precision)
    if output is not None:
        check_ending(Path(output), Shape.TRIPLETS)  # before the work
    pairs = open_data(data, shape=as_shape(shape), columns=as_columns(columns))
    texts = None if corpus is None else distinct_sentences(open_data(corpus)).column("text").to_pylist()
    with running_on(device, precision):
        encoder = model if isinstance(model, Encoder) else Encoder.load(model, pooling=pooling, precision=precision)
        guiding = Encoder.load(guide) if isinstance(guide, str | Path) else guide
        judge = CrossEncoder.load(teacher) if isinstance(teacher, str | Path) else teacher
    triplets, report = find_negatives(encoder, pairs, texts, settings, show_progress, guiding, judge)
    if output is not None:
        write(triplets, Path(output), spreadsheet_safe, own_names=True)
    return triplets, report


class Running(Execution):
    """How a single call runs; a recipe says these for all of its stages."""

    rows: int | None = Field(default=None, ge=1)  # of the raw text, from the first
    device: str | None = None
    precision: Literal["fp32", "bf16"] | None = None


@typed
def synthesize(
    raw: Data | None,
    output: str | Path,
    *,
    kind: str | Sequence[str] | None = None,
    writer: str | Path | None = None,
    writer_model: str | None = None,
    max_tokens: int | None = None,
    shots: Data | None = None,
    filters: str | Mapping[str, Any] | None = None,
    sampling: str | Mapping[str, Any] | None = None,
    execution: str | Mapping[str, Any] | None = None,
    columns: Columns = None,
    log: Log = silent,
    show_progress: bool = False,
) -> Summary:
    """Write sentences or queries for each text, score them, and keep the good ones as triplets and pairs.

    `kind` is entailment, contradiction, query or paraphrase, or several; by default the first two, which give triplets.
    `writer` is the model: smollm2, a folder, a hub name, or the address of an OpenAI-compatible endpoint with its
    `writer_model` and at most `max_tokens` tokens. Everything it writes goes to the ledger in `output`, with
    triplets.parquet and pairs.parquet of what passes the `filters`, a preset (default, paper, official-code) or values
    (threshold, round_trip, drop_vague, cross_encoder, copied, near_duplicates, language, finished, source_words, words,
    most_words, substring, drop_equal). `shots` are a few pairs or triplets of your own that show what to write.
    `sampling` has top_p, top_k, temperature, greedy, candidates, length and seed; `execution` has rows (the first rows
    only), backend (transformers, ctranslate2, ctranslate2-int8), encoder, teacher (a cross-encoder that scores
    queries), engine (local, ray), workers, requests, timeout (seconds for an answer of an endpoint), price_read and
    price_written (of a million of its tokens), block, device and precision. These are mappings, or texts as the command
    takes them: "top_p=0.9,seed=2". If `raw` has several text columns, choose one: columns={"text": "body"}. Without
    `raw`, an existing ledger is filtered again, and no model runs. The same call resumes.

    >>> synthesize(["A dog sleeps.", "It rains."], "ledger", writer=small_t5, sampling={"length": 4}).sources
    2
    >>> synthesize(None, "ledger", filters="threshold=0,drop_equal=false").sources
    2
    """
    folder, by = Path(output), chosen_filters(filters)
    if raw is None:
        writing: dict[str, Any] = {"kind": kind, "writer": writer, "writer_model": writer_model, "shots": shots}
        writing |= {"max_tokens": max_tokens, "sampling": sampling, "execution": execution, "columns": columns}
        _refuse_idle([name for name, value in writing.items() if value is not None])
        summary = draw(Ledger.open(folder), by, show_progress=show_progress)
    else:
        texts = _raw_texts(open_data(raw, columns=as_columns(columns)))
        how = checked(Sampling, "sampling", parsed("sampling", sampling))
        runs = checked(Running, "execution", parsed("execution", execution))
        shown = None if shots is None else open_data(shots)
        task = WritingTask(chosen_kinds(kind or NLI_KINDS), shown, writer_model, max_tokens)
        with running_on(runs.device, runs.precision):
            summary = write_sentences(
                texts, writer or "smollm2", folder, how, by, runs,
                task=task, rows=runs.rows, show_progress=show_progress, log=log,
            )  # fmt: skip
    plots.write(synthesis_figure(summary), folder / "summary.png")
    return summary


def _raw_texts(data: Dataset) -> Dataset:
    """The only text column of the data."""
    first, *others = text_columns(data.shape)
    if others:
        named = [data.used.get(name, name) for name in (first, *others)]
        problem = f"it has several text columns: {', '.join(named)}"
        fix = f"choose one: {option('columns', f'text={named[0]}')}"
        raise InputError(data.files[0], problem, "one", fix)
    return data if first == "text" else only_column(data, first)


def _refuse_idle(names: Sequence[str]) -> None:
    """Refuse options about writing if there is no raw text to write for."""
    if names:
        problem = f"{' and '.join(names)} cannot be used without raw text to write for"
        fix = "name the raw text too, or leave these out to filter the ledger again"
        raise InputError("synthesize", problem, "", fix)


def chosen_kinds(kinds: str | Sequence[str]) -> tuple[Kind, ...]:
    """One kind or several: `query`, or `entailment,contradiction`."""
    names = [name.strip() for name in kinds.split(",")] if isinstance(kinds, str) else list(kinds)
    if wrong := [name for name in names if name not in KINDS] or ([] if names else [""]):
        raise InputError("kind", f"there is no kind {wrong[0]!r}", f"one of {', '.join(KINDS)}", "choose one of these")
    return tuple(kind for kind in KINDS if kind in names)


def chosen_filters(filters: OptionValues) -> Filtering:
    """The filters: the name of a preset, changes to one (`official-code,words=2`), or changes to the default."""
    preset, rest = ("default", filters)
    if isinstance(filters, str) and "=" not in filters.partition(",")[0]:
        preset, _, rest = (part.strip() for part in filters.partition(","))
        preset = preset or "default"
    if preset not in PRESETS:
        problem = f"there is no preset {preset!r}"
        raise InputError("filters", problem, f"one of {', '.join(PRESETS)}", "choose one of these")
    return checked(Filtering, "filters", {**PRESETS[preset].model_dump(), **parsed("filters", rest)})


def parsed(where: str, options: OptionValues) -> dict[str, Any]:
    """The names and values of `top_p=0.9,seed=2`; a mapping as it is."""
    if not isinstance(options, str):
        return dict(options or {})
    items = [item.partition("=") for item in options.split(",") if item.strip()]
    if wrong := [name for name, equals, _ in items if not equals]:
        raise InputError(where, f"found {wrong[0].strip()!r}", "NAME=VALUE,NAME=VALUE", "give every name a value")
    return {name.strip(): value.strip() for name, _, value in items}
