"""Adapt routes to the base that they start from and to what was asked for.

Pairs and triplets are trained with the base's prompts for queries and documents and with the guide that was named,
large bases by adapters (LoRA), for the dimensions that were asked for, and in batches of one label column. A route of
several stages keeps its stages.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, repeat, zip_longest
from typing import Any

from sentloom.data.shapes import Shape
from sentloom.engine.stages import Train
from sentloom.errors import option
from sentloom.fitting.bases import Base, Teacher, find_resources
from sentloom.fitting.prepare import Prepared
from sentloom.fitting.request import Request
from sentloom.fitting.routes import Route, SkippedRoute, TrainsOn, batch_size, find_routes
from sentloom.fitting.shapes import handler, handler_of
from sentloom.methods.settings import Lora

ADAPTERS = Lora(rank=16, alpha=32.0)
# The dimensions of a head that is dropped after training would teach nothing.
NO_HEAD: dict[str, dict[str, Any]] = {"simcse": {"head": False}, "self-guided": {"head_width": None}}
ADAPTER_RATE = 10.0  # times the learning rate of full training (docs/fit.md)


@dataclass(frozen=True)
class Adaptation:
    """What training stages get besides their own settings."""

    searched: tuple[Shape, ...] = ()  # shapes whose first text is a query with a prompt of its own
    dimensions: tuple[int, ...] = ()  # that vectors can be truncated to, the largest first
    adapters: bool = False  # trained instead of all weights
    guide: str | None = None  # that filters the negatives of a batch
    label_rows: tuple[int, ...] = ()  # of each file of labelled texts, if batches come from one of them


def routes_from(
    bases: Sequence[Base],
    prepared: Prepared,
    request: Request,
    teacher: Teacher | None = None,
    sources: tuple[str, ...] = (),
) -> tuple[list[Route], list[SkippedRoute]]:
    """All routes from every base, and those that are skipped; with several bases their names say which."""
    routes, skipped = list[list[Route]](), list[SkippedRoute]()
    for base in bases:
        own = [training_set.for_base(base.encoder) for training_set in prepared.training_sets]
        supported, lacking = find_routes(own, find_resources(request, base, teacher, sources))
        adaptation = _adaptation(base, prepared, request)
        unfit = [SkippedRoute(route.name, why) for route in supported if (why := _unfit(route, adaptation))]
        fitting = [adapted(route, adaptation) for route in supported if not _unfit(route, adaptation)]
        ending = f" from {base.label}" if len(bases) > 1 else ""
        routes.append([replace(route, name=f"{route.name}{ending}", base=base.path) for route in fitting])
        skipped += [replace(route, name=f"{route.name}{ending}") for route in (*lacking, *unfit)]
    if request.guide and not any(_is_guided(route) for own in routes for route in own):
        nothing = f"{option('guide')} filters the negatives of a batch, and no route on this data has any to filter"
        skipped.append(SkippedRoute("guided training", nothing))
    in_turn = chain(*zip_longest(*routes))  # the first route from each base, then the second
    return [route for route in in_turn if route], skipped


def _adaptation(base: Base, prepared: Prepared, request: Request) -> Adaptation:
    own = (training_set.shape for training_set in prepared.training_sets)
    shapes = dict.fromkeys([Shape.PAIRS, *own])  # a writer writes queries
    labelled = [len(rows) for rows in prepared.training_rows if handler(rows).has_labels]
    return Adaptation(
        searched=tuple(shape for shape in shapes if handler_of(shape).has_queries) if base.is_asymmetric else (),
        dimensions=_with_whole(request.dimensions, base.encoder.dimension),
        adapters=base.is_large,
        guide=request.guide_path,
        label_rows=tuple(labelled) if any(fit_input.label_column for fit_input in prepared.inputs) else (),
    )


def _with_whole(dimensions: Sequence[int], whole: int) -> tuple[int, ...]:
    """The dimensions, and those of whole vectors, because the verdict is about these."""
    return tuple(sorted({*dimensions, whole}, reverse=True)) if dimensions else ()


def _unfit(route: Route, adaptation: Adaptation) -> str:
    """Why a route cannot give what was asked for; empty if it can. What is learned last counts."""
    *_, last = route.training
    if adaptation.dimensions and "dimensions" not in type(last.options).model_fields:
        return f"{last.method} cannot train vectors that can be truncated ({option('dimensions')})"
    return ""


def _is_guided(route: Route) -> bool:
    return any(getattr(stage.options, "guided", False) for stage in route.training)


def adapted(route: Route, adaptation: Adaptation) -> Route:
    """The route whose training stages are adapted."""
    learned: Iterator[TrainsOn | None] = iter(route.trains_on or repeat(None))
    return route.with_training(_adapted(stage, next(learned), adaptation) for stage in route.training)


def _adapted(stage: Train, learned: TrainsOn | None, adaptation: Adaptation) -> Train:
    options = stage.options.model_copy(update=_options(stage, learned, adaptation))
    settings = stage.settings.model_copy(update=_settings(stage, learned, adaptation))
    return stage.model_copy(update={"options": options, "settings": settings})


def _options(stage: Train, learned: TrainsOn | None, adaptation: Adaptation) -> dict[str, Any]:
    known, options = type(stage.options).model_fields, dict[str, Any]()
    if "asymmetric" in known and learned and learned.shape in adaptation.searched:
        options["asymmetric"] = True
    if adaptation.guide and "guide" in known:
        options |= {"guided": True, "guide": adaptation.guide}
    if adaptation.dimensions and "dimensions" in known:
        options |= {"dimensions": adaptation.dimensions, **NO_HEAD.get(stage.method, {})}
    return options


def _settings(stage: Train, learned: TrainsOn | None, adaptation: Adaptation) -> dict[str, Any]:
    settings = dict[str, Any]()
    if adaptation.adapters:
        settings |= {"lora": ADAPTERS, "learning_rate": ADAPTER_RATE * stage.settings.learning_rate}
    if adaptation.label_rows and learned and handler_of(learned.shape).has_labels:
        settings |= {"mix": 1.0, "batch": min(stage.settings.batch, batch_size(min(adaptation.label_rows)))}
    return settings
