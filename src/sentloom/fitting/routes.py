"""Routes: the plans of stages that the data supports, and why; and those that are skipped, and why.

Training stages come in the papers' order: raw text first (GenSE, BSL), then translations, labelled texts, pairs, scored
pairs, and last triplets and NLI (Sentence-T5). What was tried is in docs/fit.md; the settings are those of the measured
recipes. What a training stage needs first (views, mined negatives, written triplets) is a stage before it. Installed
packages add routes of their own through the entry point group `sentloom.routes` (docs/extending.md).
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from pydantic import BeforeValidator, PlainSerializer

from sentloom.data.shapes import Shape
from sentloom.encoder.tokens import Prompt
from sentloom.engine.artifacts import PREFIX, named_stage
from sentloom.engine.building import stage
from sentloom.engine.plan import Plan, stage_values, training_stages
from sentloom.engine.schema import Select
from sentloom.engine.stages import DataStage, Stage, Train
from sentloom.engine.stages.stage import PREVIOUS
from sentloom.errors import InputError
from sentloom.fitting.bases import Resources
from sentloom.fitting.inputs import InputSource
from sentloom.fitting.shapes import handler_of
from sentloom.fitting.shapes.handler import Training
from sentloom.fitting.shapes.nli import SETTINGS as NLI
from sentloom.fitting.shapes.pairs import SETTINGS as PAIRS
from sentloom.fitting.training_sets import TrainingSet
from sentloom.writing.models import SMOLLM2

ENTRY_POINTS = "sentloom.routes"
MOST_BEFORE = 2  # routes on raw text that are tried before one on labels
BESIDE_LABELS = f"before labels, only the first {MOST_BEFORE} routes on raw text are tried"
FEW_PAIRS = 1_000  # for training: with more, what people wrote teaches more than what a small model writes
FEWEST_NEGATIVES = 100  # pairs with a hard negative, for a route of their own
MOST_WRITTEN = 400  # texts that something is written for
MOST_TEXTS = 10_000  # among which a written query must find its own, and a teacher's candidates are searched
WRITTEN_TOGETHER = 32  # texts: between two such blocks the clock is asked
MINED_NEGATIVES = "pairs with mined negatives"
TEACHER, SENTENCES = "teacher", "teacher of sentences"
TAUGHT, TAUGHT_QUERIES, TAUGHT_NEGATIVES = "pairs with a teacher", "queries with a teacher", 4
RANKED_TOGETHER = 24  # short texts of a step
RANKED: dict[str, Any] = {"negatives": 40, "depth": 60, "margin": -1.0}  # what the teacher ranks for a short text

BATCH = 64  # rows of a step, at most
TOKENS = 16_384  # of a step, at most: rows with long texts make smaller batches
FEWEST_TOGETHER = 8  # rows of a step, however long they are
# A longer round continues a shorter one where its decay began; as good as a linear schedule (docs/fit.md).
SCHEDULE: dict[str, Any] = {"schedule": "warmup-stable-decay", "warmup_steps": 5, "decay": 0.1}
PASSAGES: dict[str, Any] = {"method": "contrastive", "learning_rate": 2e-5, "directions": "both"}
# The share of the positive's cosine is NV-Retriever's (Moreira et al., 2024). Pairs without a negative are kept.
MINED: dict[str, Any] = {"margin": 0.0, "at_most": 0.95, "keep_all": True}


def _read_stage(value: Any) -> Any:
    return stage(**value) if isinstance(value, dict) else value


StoredStage = Annotated[Stage, BeforeValidator(_read_stage), PlainSerializer(stage_values)]


@dataclass(frozen=True)
class TrainsOn:
    """What a training stage learns from, which bounds its length."""

    shape: Shape
    rows: int


@dataclass(frozen=True)
class Route:
    """A plan of stages that may be tried, and why. The budget sets the lengths of its training stages."""

    name: str
    why: str
    stages: tuple[StoredStage, ...]
    trains_on: tuple[TrainsOn, ...] = ()  # per training stage; if empty, what the forecast finds
    prompt: Prompt | None = None
    select: Select | None = None
    base: str | None = None  # that it starts from; None: the only one

    @property
    def training(self) -> tuple[Train, ...]:
        """The stages that train an encoder."""
        return training_stages(self.stages)

    @property
    def makers(self) -> tuple[Stage, ...]:
        """The stages that make data without a model that another stage trains: they run before the race."""
        makers = list[Stage]()
        for candidate in self.stages:
            fixed = PREVIOUS not in candidate.models() and {*candidate.references()} <= {maker.name for maker in makers}
            if fixed and candidate.PRODUCES == "dataset":
                makers.append(candidate)
        return tuple(makers)

    def plan(self, steps: Sequence[int], base: str, seed: int) -> Plan:
        """The plan with these steps per training stage; without any, with the lengths that its stages have."""
        longer = map(_with_length, self.training, steps) if steps else ()
        start, stages = self.base or base, self.with_training(longer).stages
        return Plan(self.name, start, stages, select=self.select, seeds=(seed,), prompt=self.prompt, title=self.name)

    def with_training(self, changed: Iterable[Train]) -> "Route":
        """The route with other training stages, each in place of the one of its name."""
        by_name = {train.name: train for train in changed}
        return replace(self, stages=tuple(by_name.get(train.name, train) for train in self.stages))


def _with_length(train: Train, steps: int) -> Train:
    """A training stage of this length, which logs about twenty points per curve."""
    length = {"steps": steps, "log_every": max(1, steps // 20)}
    return train.model_copy(update={"settings": train.settings.model_copy(update=length)})


@dataclass(frozen=True)
class SkippedRoute:
    """A route that is not tried, and why."""

    name: str
    why: str
    for_time: bool = False  # a larger budget would have time for it


@dataclass(frozen=True)
class GivenRoutes:
    """Routes that the user gives, with the base and the seed of all of them."""

    base: str
    seed: int
    routes: tuple[Route, ...]
    sha256: str  # of everything that is run

    @property
    def sources(self) -> tuple[InputSource, ...]:
        """Every file that a stage reads."""
        by_key = {_key(source): source for route in self.routes for stage in route.stages for source in _files(stage)}
        return tuple(by_key.values())

    def reading(self, files: Sequence[Path]) -> "GivenRoutes":
        """The routes with the files of training rows instead of their sources, in the same order."""
        instead = dict(zip(map(_key, self.sources), map(str, (file.resolve() for file in files)), strict=True))
        routes = [
            replace(route, stages=tuple(_reading(stage, instead) for stage in route.stages)) for route in self.routes
        ]
        return replace(self, routes=tuple(routes))


def _files(stage: Stage) -> list[InputSource]:
    """The files that a stage reads."""
    if not isinstance(stage, DataStage):
        return []
    return [InputSource(name, stage.shape, stage.columns) for name in stage.data if not named_stage(name)]


def _key(source: InputSource) -> tuple[object, ...]:
    return source.name, source.shape, tuple(sorted((source.columns or {}).items()))


def _reading(stage: Stage, instead: dict[tuple[object, ...], str]) -> Stage:
    """A stage that reads training rows instead of whole files."""
    if not isinstance(stage, DataStage) or not _files(stage):
        return stage
    names = {source.name: instead[_key(source)] for source in _files(stage)}
    data = tuple(names.get(name, name) for name in stage.data)
    return stage.model_copy(update={"data": data, "shape": None, "columns": None})


def find_routes(training_sets: Sequence[TrainingSet], resources: Resources) -> tuple[list[Route], list[SkippedRoute]]:
    """All routes that the data supports, the cheapest first, and those that are skipped."""
    routes, skipped = _own_routes(training_sets, resources)
    every_route = [*routes, *installed_routes(training_sets, resources)]
    names = [route.name for route in every_route]
    if twice := [name for name in names if names.count(name) > 1]:
        raise InputError(ENTRY_POINTS, f"two routes are named {twice[0]!r}", "different names", "rename or remove one")
    return every_route, skipped


def _own_routes(training_sets: Sequence[TrainingSet], resources: Resources) -> tuple[list[Route], list[SkippedRoute]]:
    in_order = sorted(training_sets, key=lambda training_set: handler_of(training_set.shape).place)
    by_shape = {training_set.shape: training_set for training_set in in_order}
    raw, pairs = by_shape.pop(Shape.TEXTS, None), by_shape.get(Shape.PAIRS)
    candidates = [*_from_teacher(raw or pairs, resources), *_without_labels(raw, pairs, resources)]
    unlabelled = [candidate.build() for candidate in candidates if candidate.why_not is None]
    skipped = [SkippedRoute(name, why_not) for name, why_not, _ in candidates if why_not is not None]
    labelled = list(by_shape.values())
    if not labelled:
        return unlabelled, skipped
    main = _joined([_main(training_set) for training_set in labelled])
    routes = [main, *(_joined([first, main], why=first.why) for first in unlabelled[:MOST_BEFORE])]
    skipped += [SkippedRoute(route.name, BESIDE_LABELS) for route in unlabelled[MOST_BEFORE:]]
    routes += _alternatives(labelled, resources)
    lacks_negatives = handler_of(labelled[-1].shape).lacks_negatives
    if lacks_negatives and resources.teacher and resources.teacher.why_not:
        skipped = [*skipped, SkippedRoute(TAUGHT, resources.teacher.why_not)]
    if lacks_negatives and labelled[-1].rows < FEWEST_NEGATIVES:
        few = f"there are {labelled[-1].rows:,} training pairs, and it needs {FEWEST_NEGATIVES}"
        skipped = [*skipped, SkippedRoute(MINED_NEGATIVES, few)]
    if len(labelled) > 1:
        routes += [_main(training_set) for training_set in labelled]
    return routes, skipped


def installed_routes(training_sets: Sequence[TrainingSet], resources: Resources) -> list[Route]:
    """The routes of installed packages: each entry point is a callable (training_sets, resources) -> routes."""
    points = sorted(entry_points(group=ENTRY_POINTS), key=lambda point: point.name)
    return [route for point in points for route in _routes_of(point, training_sets, resources)]


def _routes_of(point: EntryPoint, training_sets: Sequence[TrainingSet], resources: Resources) -> Iterable[Route]:
    try:
        return list(point.load()(training_sets, resources))
    except Exception as error:  # whatever a package does wrong, its name and its words reach the user
        where = f"entry point {point.name} of {point.dist.name if point.dist else point.value}"
        fix = "correct the package, or uninstall it"
        raise InputError(where, f"{type(error).__name__}: {error}", "routes", fix) from error


class _Candidate(NamedTuple):
    """A route that learns from no labels, and why it is skipped; None: it is tried."""

    name: str
    why_not: str | None
    build: Callable[[], Route]


def _without_labels(raw: TrainingSet | None, pairs: TrainingSet | None, resources: Resources) -> list[_Candidate]:
    """What the user asked for, then by what has won (docs/fit.md); without raw text, what a named writer writes."""
    if raw is None:
        return _from_writer(pairs, pairs, resources) if pairs and resources.writer.named else []
    first = [
        _Candidate("spans", _no_documents(raw), lambda: _spans(raw)),
        _Candidate("simcse", _no_dropout(resources), lambda: _main(raw)),
    ]
    last = [
        _Candidate("self-guided", _no_layers(resources), lambda: _self_guided(raw, resources)),
        _Candidate("bootstrapped", _no_translator(raw, resources), lambda: _bootstrapped(raw)),
    ]
    written = _from_writer(raw, pairs, resources)
    return [*written, *first, *last] if resources.writer.named else [*first, *written, *last]


def _from_teacher(texts: TrainingSet | None, resources: Resources) -> list[_Candidate]:
    """The routes on what encoders that teach find near texts, and near single sentences of texts that have several."""
    if texts is None or (texts.shape is not Shape.TEXTS and not resources.sources):
        return []
    none = None if resources.sources else "it learns the neighbourhoods of a better encoder; name one with --teacher"
    short = _no_documents(texts) if texts.shape is Shape.TEXTS else "there is no raw text"
    long = None if short else "on texts of several sentences it lost where that was measured"
    return [
        _Candidate(TEACHER, none or long, lambda: _teacher(texts, resources)),
        _Candidate(SENTENCES, none or short, lambda: _teacher_of_sentences(texts, resources)),
    ]


def _from_writer(texts: TrainingSet, pairs: TrainingSet | None, resources: Resources) -> list[_Candidate]:
    """The routes on what a writer writes for texts, or for the answers of pairs, of which some are its examples."""
    no_writer = _no_writer(pairs, resources)
    no_teacher = no_writer or (None if resources.sources else _no_teacher(resources))
    return [
        _Candidate("queries", no_writer, lambda: _queries(texts, pairs, resources)),
        _Candidate(TAUGHT_QUERIES, no_teacher, lambda: _taught_queries(texts, pairs, resources)),
        _Candidate("synthetic", no_writer or _no_english(texts, resources), lambda: _synthetic(texts, resources)),
    ]


def _no_documents(raw: TrainingSet) -> str | None:
    return None if raw.passages else "it learns from passages of documents, and few texts have more than two sentences"


def _no_layers(resources: Resources) -> str | None:
    return "it compares pooled states with layers, and this base projects them" if resources.projection else None


def _no_dropout(resources: Resources) -> str | None:
    return None if resources.dropout else "it gets two views of a sentence from dropout, and this base has no dropout"


def _no_translator(raw: TrainingSet, resources: Resources) -> str | None:
    if raw.language != "en":
        return "it learns from back-translations, and the embedded translator only reads English"
    return resources.translator


def _no_writer(pairs: TrainingSet | None, resources: Resources) -> str | None:
    if resources.writer.why_not:
        return f"it learns from what a writer writes: {resources.writer.why_not}"
    if pairs and pairs.rows >= FEW_PAIRS:
        return f"there are {pairs.rows:,} training pairs, and something is written only beside fewer than {FEW_PAIRS:,}"
    return None


def _no_english(texts: TrainingSet, resources: Resources) -> str | None:
    if resources.writer.name != SMOLLM2 or texts.language == "en":
        return None
    return "smollm2 has learned to write entailments and contradictions in English; name one with --writer"


def _no_teacher(resources: Resources) -> str | None:
    if resources.teacher is None:
        return "it learns from a cross-encoder, if that ranks validation queries better; name one with --teacher"
    return resources.teacher.why_not


def _self_guided(raw: TrainingSet, resources: Resources) -> Route:
    first = resources.pooling in (None, "first")
    what = "the vector of the first token" if first else "the pooled vector"
    why = f"the layers of a frozen copy guide {what}; needs only text"
    return _route("self-guided", why, raw, method="self-guided", vector="first" if first else "pooled")


def _teacher(texts: TrainingSet, resources: Resources) -> Route:
    why = f"what {_named(resources)} finds near a text, the base learns to find near it"
    return _route(TEACHER, why, texts, method="teacher", sources=resources.sources)


def _teacher_of_sentences(raw: TrainingSet, resources: Resources) -> Route:
    why = f"the base learns to rank texts for single sentences as {_named(resources)} does"
    short = stage("views", name="sentences", kind="sentences", data=list(raw.files))
    stages = _ranking(raw, [f"{PREFIX}{short.name}"], resources)
    return Route(SENTENCES, why, (short, *stages), (TrainsOn(Shape.TEXTS, raw.rows),))


def _ranking(data: TrainingSet, pairs: Sequence[str], resources: Resources) -> tuple[Stage, Stage]:
    """Candidates that the base finds for short texts, and how encoders rank them."""
    mine = stage("mine", name="ranked", model=resources.base, data=list(pairs), **RANKED)
    how: dict[str, Any] = {
        "method": "teacher",
        "preset": "ranking",
        "batch": RANKED_TOGETHER,
        "sources": resources.sources,
    }
    return mine, _train("ranking", data, mine.name, **how)


def _named(resources: Resources) -> str:
    return " and ".join(Path(name).name for name in resources.sources)


def _spans(raw: TrainingSet) -> Route:
    """Pairs of passages, and training on them. The pairs are raw text, and are seen once."""
    why = "two random stretches of a document learn to find each other"
    made = stage("views", name="spans-pairs", data=list(raw.files), kind="spans")
    learn = _train("spans", raw, made.name, **PASSAGES)
    return Route("spans", why, (made, learn), (TrainsOn(Shape.TEXTS, raw.rows),))


def _bootstrapped(raw: TrainingSet) -> Route:
    why = "a sentence predicts the vector of its back-translation; there are no negatives that could be wrong"
    views = stage("views", name="back-translations", kind="back-translation", data=list(raw.files))
    learn = _train("bootstrapped", raw, views.name, method="bootstrapped")
    return Route("bootstrapped", why, (views, learn), (TrainsOn(raw.shape, raw.rows),))


def _queries(texts: TrainingSet, pairs: TrainingSet | None, resources: Resources) -> Route:
    why = "a writer writes queries for a sample of the texts; those that find their text again learn to find it"
    written = _written_queries(texts, pairs, resources)
    learn = _train("queries", texts, written.name, **PAIRS)
    return Route("queries", why, (written, learn), (TrainsOn(Shape.PAIRS, texts.rows),))


def _taught_queries(texts: TrainingSet, pairs: TrainingSet | None, resources: Resources) -> Route:
    written = _written_queries(texts, pairs, resources)
    if resources.sources:
        why = f"the same queries; the base learns to rank texts for them as {_named(resources)} does"
        ranking = _ranking(texts, [f"{PREFIX}{written.name}"], resources)
        return Route(TAUGHT_QUERIES, why, (written, *ranking), (TrainsOn(Shape.PAIRS, texts.rows),))
    why = "the same queries; a cross-encoder, which ranks better than the base here, says how close the answers are"
    is_raw = not handler_of(texts.shape).labelled
    searched = list(texts.files) if is_raw and texts.rows <= MOST_TEXTS else []
    stages = _teaching(texts, [f"{PREFIX}{written.name}"], resources, corpus=searched)
    return Route(TAUGHT_QUERIES, why, (written, *stages), (TrainsOn(Shape.PAIRS, texts.rows),))


def _written_queries(texts: TrainingSet, pairs: TrainingSet | None, resources: Resources) -> Stage:
    """The user's own training pairs, if there are any, show the writer what queries look like."""
    shots = {"shots": pairs.files[0]} if pairs else {}
    return _written("written-queries", texts, resources, kinds=["query"], encoder=resources.base, **shots)


def _synthetic(texts: TrainingSet, resources: Resources) -> Route:
    why = "a writer writes what follows from a sentence and what contradicts it, and filters what it wrote"
    written = _written("written", texts, resources)
    learn = _train("synthetic", texts, written.name, **NLI)
    return Route("synthetic", why, (written, learn), (TrainsOn(Shape.TRIPLETS, texts.rows),))


def _written(name: str, texts: TrainingSet, resources: Resources, **options: Any) -> Stage:
    """A stage that writes for texts, or for the answers of pairs, in random order: the budget decides for how many."""
    own = handler_of(texts.shape)
    answers = {"columns": {"text": own.searched_column}} if own.form.answers else {}
    share = min(1.0, round(MOST_TEXTS / texts.rows, 4))
    source = {"model": resources.writer.name, "data": list(texts.files), "data_share": share, "shuffle": True}
    limits = {"block": WRITTEN_TOGETHER, "rows": MOST_WRITTEN, **resources.writer.options}
    return stage("synthesize", name=name, **source, **answers, **limits, **options)


def _main(data: TrainingSet) -> Route:
    """The main route of one shape."""
    return _trained(handler_of(data.shape).main(data), data)


def _trained(training: Training, data: TrainingSet) -> Route:
    return _route(training.name, training.why, training.data or data, **training.settings)


def _alternatives(labelled: Sequence[TrainingSet], resources: Resources) -> Iterator[Route]:
    """Other routes for the last shape, because what is learned last matters most."""
    *_, last = labelled
    before, own = [_main(training_set) for training_set in labelled[:-1]], handler_of(last.shape)
    if own.lacks_negatives and last.rows >= FEWEST_NEGATIVES:
        yield _joined([*before, _mined(last, resources)])
    if own.lacks_negatives and resources.teacher and not resources.teacher.why_not:
        yield _joined([*before, _taught(last, resources)])
    for training in own.others(last):
        yield _joined([*before, _trained(training, last)])
    if last.by_language:
        yield _joined([*before, _by_language(last)])


def _mined(data: TrainingSet, resources: Resources) -> Route:
    why = "the same, with the hardest wrong answer that the base finds for each pair"
    how = {**MINED, "guide": resources.guide}
    mine = stage("mine", name="hard-negatives", model=resources.base, data=list(data.files), **how)
    learn = _train("mined", data, mine.name, **PAIRS)
    return Route(MINED_NEGATIVES, why, (mine, learn), (TrainsOn(Shape.PAIRS, data.rows),))


def _by_language(data: TrainingSet) -> Route:
    """The main route with batches of one language each: negatives are harder, and the language itself is no clue."""
    files = data.by_language
    main = _main(replace(data, files=tuple(part.file for part in files)))
    name, (learn,) = f"{main.name} by language", main.training
    batch = min(learn.settings.batch, batch_size(min(part.examples for part in files)))
    settings = learn.settings.model_copy(update={"mix": 1.0, "batch": batch})
    train = learn.model_copy(update={"name": name.replace(" ", "-"), "settings": settings})
    return Route(name, f"{main.why}; the texts of a batch are in one language", (train,), main.trains_on)


def _taught(data: TrainingSet, resources: Resources) -> Route:
    why = "a cross-encoder, which ranks better than the base here, says how close the base's first answers are"
    return Route(TAUGHT, why, _teaching(data, data.files, resources), (TrainsOn(Shape.PAIRS, data.rows),))


def _teaching(data: TrainingSet, pairs: Sequence[str], resources: Resources, **options: Any) -> tuple[Stage, Stage]:
    """Candidates that the base finds for pairs, and what the teacher thinks of them: it knows which are right."""
    assert resources.teacher is not None
    candidates = {"name": "candidates", "model": resources.base, "data": list(pairs), "negatives": TAUGHT_NEGATIVES}
    mine = stage("mine", **candidates, margin=-1.0, **options)
    named: dict[str, Any] = {"teacher": resources.teacher.name, "negatives": TAUGHT_NEGATIVES}
    return mine, _train("taught", data, mine.name, method="distill", **named)


def _joined(routes: Sequence[Route], why: str = "") -> Route:
    """Several routes, one after another, as one."""
    if len(routes) == 1:
        return routes[0]
    return Route(
        ", then ".join(route.name for route in routes),
        why or "; then ".join(route.why for route in routes),
        tuple(stage for route in routes for stage in route.stages),
        tuple(learned for route in routes for learned in route.trains_on),
    )


def _route(name: str, why: str, data: TrainingSet, most: int = TOKENS, **settings: Any) -> Route:
    train = _train(name.replace(" ", "-"), data, most=most, **settings)
    return Route(name, why, (train,), (TrainsOn(data.shape, data.rows),))


def _train(name: str, data: TrainingSet, source: str | None = None, most: int = TOKENS, **settings: Any) -> Stage:
    """A training stage on a training set, or on what an earlier stage made of it."""
    files = [f"{PREFIX}{source}"] if source else list(data.files)
    batch = batch_size(data.rows, data.tokens, most, settings.get("batch", BATCH))
    chunk = None if batch * data.tokens <= data.fitting else max(1, int(data.fitting / data.tokens))
    common = {**SCHEDULE, **settings, "batch": batch, "chunk": chunk}
    if data.tokens > data.fitting:  # a single row is too long
        common["activation_checkpointing"] = True
    return stage(name=name, data=files, max_length=data.length, **common)


def batch_size(rows: int, tokens: float = 1.0, most: int = TOKENS, batch: int = BATCH) -> int:
    """Smaller for few rows, so that an epoch has a few steps, and for rows of many tokens."""
    return min(batch, max(2, rows // 4), max(FEWEST_TOGETHER, int(most / max(tokens, 1.0))))
