"""Which ways the data permit, as recipes without a length, and why; and which they do not, and why not.

Stages stand in the papers' order: raw text first (GenSE, BSL), then translations, then pairs, then triplets and NLI
(Sentence-T5). What was tried here is in docs/fit.md; the settings are those of the measured recipes.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sentloom.data.shapes import Shape

# The share of a route's time by what a stage learns from: raw text prepares, labels decide.
WEIGHTS = {Shape.TEXTS: 1.0, Shape.PARALLEL: 2.0, Shape.PAIRS: 2.0, Shape.TRIPLETS: 2.0, Shape.NLI: 2.0}
EPOCHS = {Shape.TEXTS: 1, Shape.PARALLEL: 10, Shape.PAIRS: 3, Shape.TRIPLETS: 3, Shape.NLI: 3}  # at most
ORDER = tuple(WEIGHTS)
BATCH = 64
LENGTH = 64  # tokens that a sentence is cut to at most, for training alone
WRITTEN = "stage:written"  # as recipes name what a synthesizer wrote
PAIRS = {"method": "contrastive", "learning_rate": 5e-5}
TRIPLETS = {"method": "contrastive", "learning_rate": 2e-5}


@dataclass(frozen=True)
class TrainingSet:
    """The training rows of one shape: how many, where they lie, and the language of each column."""

    shape: Shape
    rows: int
    files: tuple[str, ...]
    language: str | None = None
    length: int = LENGTH


@dataclass(frozen=True)
class Resources:
    """What is at hand beside the data."""

    pooling: str | None  # of the base; None: a raw language model, which gets the preset's
    dropout: float  # of the base
    translator: str | None  # why there is none; None: it is there
    synthesizer: str | None  # a folder
    mined: str  # the file of triplets that mining makes, if a route wants them


@dataclass(frozen=True)
class Route:
    """A recipe without a length. Each stage is as YAML has it, with `shape` and `rows` of what it learns from."""

    name: str
    why: str
    stages: tuple[Mapping[str, Any], ...]
    shapes: tuple[Shape, ...]  # of each stage that learns
    rows: tuple[int, ...]
    views: int = 0  # sentences that are back-translated first
    mined: int = 0  # pairs that negatives are looked for first
    written: int = 0  # sentences that a synthesizer writes others for first


@dataclass(frozen=True)
class SkippedRoute:
    """A way that is not gone."""

    name: str
    why: str


def find_routes(bodies: Sequence[TrainingSet], means: Resources) -> tuple[list[Route], list[SkippedRoute]]:
    """All routes that the data permit, the cheapest first, and those that they do not."""
    by_shape = {body.shape: body for body in sorted(bodies, key=lambda body: ORDER.index(body.shape))}
    raw = by_shape.pop(Shape.TEXTS, None)
    opened, closed = _from_text(raw, means) if raw else ([], [])
    labelled = list(by_shape.values())
    if not labelled:
        return opened, closed
    main = _joined([_learn(body) for body in labelled])
    routes = [main, *(_joined([first, main], because=first.why) for first in opened)]
    routes += _alternatives(labelled, means)
    if len(labelled) > 1:
        routes += [_learn(body) for body in labelled]
    return routes, closed


def _stage(name: str, body: TrainingSet, **settings: Any) -> dict[str, Any]:
    return {"name": name, "data": list(body.files), "batch": _batch(body.rows), "max_length": body.length, **settings}


def _batch(rows: int) -> int:
    """Of few rows a smaller one: an epoch is some steps."""
    return min(BATCH, max(2, rows // 4))


def with_rows(route: Route, rows: int) -> Route:
    """The route with so many rows for its last stage."""
    *before, last = route.stages
    return replace(route, stages=(*before, {**last, "batch": _batch(rows)}), rows=(*route.rows[:-1], rows))


def _route(name: str, why: str, body: TrainingSet, **settings: Any) -> Route:
    return Route(name, why, (_stage(name.replace(" ", "-"), body, **settings),), (body.shape,), (body.rows,))


def _from_text(raw: TrainingSet, means: Resources) -> tuple[list[Route], list[SkippedRoute]]:
    """The ways to learn from raw text alone."""
    ways: list[tuple[str, str | None, Callable[[], Route]]] = [
        ("simcse", _no_dropout(means), lambda: _simcse(raw)),
        ("self-guided", _no_first_token(means), lambda: _self_guided(raw)),
        ("bootstrapped", _no_translator(raw, means), lambda: _bootstrapped(raw)),
        ("synthetic", _no_synthesizer(means), lambda: _synthetic(raw, means.synthesizer or "")),
    ]
    opened = [build() for _, why_not, build in ways if why_not is None]
    closed = [SkippedRoute(name, why_not) for name, why_not, _ in ways if why_not is not None]
    return opened, closed


def _no_dropout(means: Resources) -> str | None:
    return None if means.dropout else "it takes two views of a sentence from dropout, and this base has none"


def _no_first_token(means: Resources) -> str | None:
    wrong = f"it trains the first token's vector, and this base has another pooling ({means.pooling}), which it keeps"
    return None if means.pooling in (None, "first") else wrong


def _no_translator(raw: TrainingSet, means: Resources) -> str | None:
    if raw.language != "en":
        return "it learns from back-translations, and the embedded translator begins with English alone"
    return means.translator


def _no_synthesizer(means: Resources) -> str | None:
    return None if means.synthesizer else "it learns from triplets that a synthesizer writes; --synthesizer names one"


def _simcse(raw: TrainingSet) -> Route:
    why = "a sentence is to be near itself under another dropout, and far from others: needs nothing but text"
    return _route("simcse", why, raw, method="simcse", learning_rate=1e-5)


def _self_guided(raw: TrainingSet) -> Route:
    why = "a frozen copy's layers guide the first token's vector: needs nothing but text"
    return _route("self-guided", why, raw, method="self-guided")


def _bootstrapped(raw: TrainingSet) -> Route:
    why = "a sentence is to predict the vector of its back-translation; there are no negatives that could be wrong"
    stage = _stage("bootstrapped", raw, method="bootstrapped", views={"kind": "back-translation"})
    return Route("bootstrapped", why, (stage,), (raw.shape,), (raw.rows,), views=raw.rows)


def _synthetic(raw: TrainingSet, synthesizer: str) -> Route:
    why = "a synthesizer writes what follows from a sentence and what contradicts it, and judges what it wrote"
    written = {"name": "written", "method": "synthesize", "model": synthesizer, "data": list(raw.files)}
    learnt = _stage("synthetic", raw, **TRIPLETS) | {"data": WRITTEN}
    return Route("synthetic", why, (written, learnt), (Shape.TRIPLETS,), (raw.rows,), written=raw.rows)


def _learn(body: TrainingSet) -> Route:
    """The way of one shape with labels."""
    match body.shape:
        case Shape.PAIRS:
            return _route("pairs", "each text is to find its partner among those of the batch", body, **PAIRS)
        case Shape.TRIPLETS:
            why = "each text is to find its positive, its negative being the hardest"
            return _route("triplets", why, body, **TRIPLETS)
        case Shape.NLI:
            why = "each premise is to find what it entails, what contradicts it being the hardest"
            return _route("nli", why, body, **TRIPLETS)
        case _:
            why = "a translation is to get the vector that the base gives its original, which stays frozen"
            return _route("cross-lingual", why, body, method="cross-lingual", learning_rate=2e-4)


def _alternatives(labelled: Sequence[TrainingSet], means: Resources) -> Iterator[Route]:
    """Another way for the last shape: what is learnt last decides."""
    *_, last = labelled
    before = [_learn(body) for body in labelled[:-1]]
    if last.shape is Shape.PAIRS:
        why = "the same, each pair beside the hardest wrong answer that the base finds for it"
        stage = _stage("mined", last, **TRIPLETS) | {"data": [means.mined]}
        mined = Route("pairs with mined negatives", why, (stage,), (Shape.PAIRS,), (last.rows,), mined=last.rows)
        yield _joined([*before, mined])
    if last.shape is Shape.NLI:
        why = "three classes over both vectors and their difference, as in SBERT"
        yield _joined([*before, _route("nli classification", why, last, method="nli-classification")])
    if last.shape is Shape.PARALLEL:
        why = "a translation's vector is to be the original's, by squared error"
        yield _joined([*before, _route("mse-distillation", why, last, method="mse-distillation")])


def _joined(routes: Sequence[Route], because: str = "") -> Route:
    """Routes one after another as one."""
    if len(routes) == 1:
        return routes[0]
    return Route(
        ", then ".join(route.name for route in routes),
        because or "; then ".join(route.why for route in routes),
        tuple(stage for route in routes for stage in route.stages),
        tuple(shape for route in routes for shape in route.shapes),
        tuple(rows for route in routes for rows in route.rows),
        sum(route.views for route in routes),
        sum(route.mined for route in routes),
        sum(route.written for route in routes),
    )
