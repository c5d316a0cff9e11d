"""Routes: the plans of stages that the data supports, and why; and those that are skipped, and why.

Training stages come in the papers' order: raw text first (GenSE, BSL), then translations, then pairs, then triplets and
NLI (Sentence-T5). What was tried is in docs/fit.md; the settings are those of the measured recipes. What a training
stage needs first (views, mined negatives, written triplets) is a stage before it. Installed packages add routes of
their own through the entry point group `sentloom.routes` (docs/extending.md).
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from typing import Annotated, Any

from pydantic import BeforeValidator, PlainSerializer

from sentloom.data.shapes import Shape
from sentloom.encoder.prompts import Prompt
from sentloom.errors import InputError
from sentloom.fitting.resources import Resources
from sentloom.fitting.training_sets import TrainingSet
from sentloom.pipeline.building import stage
from sentloom.pipeline.plan import Plan, stage_values
from sentloom.pipeline.references import PREFIX
from sentloom.pipeline.schema import Select
from sentloom.pipeline.stages import Stage, Train

ENTRY_POINTS = "sentloom.routes"
ORDER = (Shape.TEXTS, Shape.PARALLEL, Shape.PAIRS, Shape.TRIPLETS, Shape.NLI)
BATCH = 64
PAIRS = {"method": "contrastive", "learning_rate": 5e-5}
TRIPLETS = {"method": "contrastive", "learning_rate": 2e-5}


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

    def plan(self, steps: Sequence[int], base: str, seed: int) -> Plan:
        """The plan with these steps per training stage; without any, with the lengths that its stages have."""
        lengths = iter(steps)
        stages = [_with_length(one, next(lengths)) if steps and isinstance(one, Train) else one for one in self.stages]
        return Plan(
            self.name, base, tuple(stages), select=self.select, seeds=(seed,), prompt=self.prompt, title=self.name
        )


def _with_length(one: Train, steps: int) -> Train:
    """A training stage of this length, which logs about twenty points per curve."""
    length = {"steps": steps, "log_every": max(1, steps // 20)}
    return one.model_copy(update={"settings": one.settings.model_copy(update=length)})


@dataclass(frozen=True)
class SkippedRoute:
    """A route that is not tried, and why."""

    name: str
    why: str
    for_time: bool = False  # a larger budget would have time for it


def find_routes(training_sets: Sequence[TrainingSet], resources: Resources) -> tuple[list[Route], list[SkippedRoute]]:
    """All routes that the data supports, the cheapest first, and those that are skipped."""
    routes, skipped = _own_routes(training_sets, resources)
    found = [*routes, *installed_routes(training_sets, resources)]
    names = [route.name for route in found]
    if twice := [name for name in names if names.count(name) > 1]:
        raise InputError(ENTRY_POINTS, f"two routes are named {twice[0]!r}", "different names", "rename or remove one")
    return found, skipped


def _own_routes(training_sets: Sequence[TrainingSet], resources: Resources) -> tuple[list[Route], list[SkippedRoute]]:
    by_shape = {one.shape: one for one in sorted(training_sets, key=lambda one: ORDER.index(one.shape))}
    raw = by_shape.pop(Shape.TEXTS, None)
    unlabelled, skipped = _from_text(raw, resources) if raw else ([], [])
    labelled = list(by_shape.values())
    if not labelled:
        return unlabelled, skipped
    main = _joined([_from_labels(one) for one in labelled])
    routes = [main, *(_joined([first, main], why=first.why) for first in unlabelled)]
    routes += _alternatives(labelled, resources)
    if len(labelled) > 1:
        routes += [_from_labels(one) for one in labelled]
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


def batch_size(rows: int) -> int:
    """Smaller for few rows, so that an epoch has a few steps."""
    return min(BATCH, max(2, rows // 4))


def _train(name: str, data: TrainingSet, source: str | None = None, **settings: Any) -> Stage:
    """A training stage on a training set, or on what an earlier stage made of it."""
    files = [f"{PREFIX}{source}"] if source else list(data.files)
    return stage(name=name, data=files, batch=batch_size(data.rows), max_length=data.length, **settings)


def _route(name: str, why: str, data: TrainingSet, **settings: Any) -> Route:
    one = _train(name.replace(" ", "-"), data, **settings)
    return Route(name, why, (one,), (TrainsOn(data.shape, data.rows),))


def _from_text(raw: TrainingSet, resources: Resources) -> tuple[list[Route], list[SkippedRoute]]:
    """The routes that need nothing but raw text."""
    candidates: list[tuple[str, str | None, Callable[[], Route]]] = [
        ("simcse", _no_dropout(resources), lambda: _simcse(raw)),
        ("self-guided", _no_first_token(resources), lambda: _self_guided(raw)),
        ("bootstrapped", _no_translator(raw, resources), lambda: _bootstrapped(raw)),
        ("synthetic", _no_synthesizer(resources), lambda: _synthetic(raw, resources.synthesizer or "")),
    ]
    routes = [build() for _, why_not, build in candidates if why_not is None]
    skipped = [SkippedRoute(name, why_not) for name, why_not, _ in candidates if why_not is not None]
    return routes, skipped


def _no_dropout(resources: Resources) -> str | None:
    return None if resources.dropout else "it gets two views of a sentence from dropout, and this base has no dropout"


def _no_first_token(resources: Resources) -> str | None:
    why = f"it trains the vector of the first token, and this base keeps its own pooling ({resources.pooling})"
    return None if resources.pooling in (None, "first") else why


def _no_translator(raw: TrainingSet, resources: Resources) -> str | None:
    if raw.language != "en":
        return "it learns from back-translations, and the embedded translator only reads English"
    return resources.translator


def _no_synthesizer(resources: Resources) -> str | None:
    return (
        None
        if resources.synthesizer
        else "it learns from triplets that a synthesizer writes; name one with --synthesizer"
    )


def _simcse(raw: TrainingSet) -> Route:
    why = "pulls a sentence towards itself under another dropout mask and away from other sentences; needs only text"
    return _route("simcse", why, raw, method="simcse", learning_rate=1e-5)


def _self_guided(raw: TrainingSet) -> Route:
    why = "the layers of a frozen copy guide the vector of the first token; needs only text"
    return _route("self-guided", why, raw, method="self-guided")


def _bootstrapped(raw: TrainingSet) -> Route:
    why = "a sentence predicts the vector of its back-translation; there are no negatives that could be wrong"
    views = stage("views", name="back-translations", kind="back-translation", data=list(raw.files))
    learn = _train("bootstrapped", raw, views.name, method="bootstrapped")
    return Route("bootstrapped", why, (views, learn), (TrainsOn(raw.shape, raw.rows),))


def _synthetic(raw: TrainingSet, synthesizer: str) -> Route:
    why = "a synthesizer writes what follows from a sentence and what contradicts it, and filters what it wrote"
    written = stage("synthesize", name="written", model=synthesizer, data=list(raw.files))
    learn = _train("synthetic", raw, written.name, **TRIPLETS)
    return Route("synthetic", why, (written, learn), (TrainsOn(Shape.TRIPLETS, raw.rows),))


def _from_labels(data: TrainingSet) -> Route:
    """The main route of one labelled shape."""
    match data.shape:
        case Shape.PAIRS:
            return _route("pairs", "each text learns to find its partner among those of the batch", data, **PAIRS)
        case Shape.TRIPLETS:
            why = "each text learns to find its positive, with its own negative as the hardest"
            return _route("triplets", why, data, **TRIPLETS)
        case Shape.NLI:
            why = "each premise learns to find what it entails, with its contradiction as the hardest negative"
            return _route("nli", why, data, **TRIPLETS)
        case _:
            why = "a translation learns the vector that the frozen base gives its original"
            return _route("cross-lingual", why, data, method="cross-lingual", learning_rate=2e-4)


def _alternatives(labelled: Sequence[TrainingSet], resources: Resources) -> Iterator[Route]:
    """Other routes for the last shape, because what is learnt last matters most."""
    *_, last = labelled
    before = [_from_labels(one) for one in labelled[:-1]]
    if last.shape is Shape.PAIRS:
        why = "the same, with the hardest wrong answer that the base finds for each pair"
        mine = stage("mine", name="hard-negatives", model=resources.base, data=list(last.files))
        learn = _train("mined", last, mine.name, **TRIPLETS)
        mined = Route("pairs with mined negatives", why, (mine, learn), (TrainsOn(Shape.PAIRS, last.rows),))
        yield _joined([*before, mined])
    if last.shape is Shape.NLI:
        why = "three classes over both vectors and their difference, as in SBERT"
        yield _joined([*before, _route("nli classification", why, last, method="nli-classification")])
    if last.shape is Shape.PARALLEL:
        why = "the vector of a translation approaches that of its original, by squared error"
        yield _joined([*before, _route("mse-distillation", why, last, method="mse-distillation")])


def _joined(routes: Sequence[Route], why: str = "") -> Route:
    """Several routes, one after another, as one."""
    if len(routes) == 1:
        return routes[0]
    return Route(
        ", then ".join(route.name for route in routes),
        why or "; then ".join(route.why for route in routes),
        tuple(one for route in routes for one in route.stages),
        tuple(one for route in routes for one in route.trains_on),
    )
