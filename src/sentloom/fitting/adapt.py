"""Adapt routes to the base that they start from and to what was asked for.

Pairs and triplets are trained with the base's prompts for queries and documents and with the guide that was named,
large bases by adapters (LoRA), for the dimensions that were asked for, and in batches of one label column. A route of
several stages keeps its stages.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import repeat, zip_longest
from typing import Any

from sentloom.data.shapes import Shape
from sentloom.engine.stages import Train
from sentloom.errors import option
from sentloom.fitting.bases import Base, Teacher, find_resources
from sentloom.fitting.prepare import Prepared
from sentloom.fitting.request import Request
from sentloom.fitting.routes import Route, SkippedRoute, TrainsOn, batch_size, find_routes
from sentloom.methods.settings import Lora

SEARCHED = (Shape.PAIRS, Shape.TRIPLETS, Shape.NLI)  # a query and what it should find
ADAPTERS = Lora(rank=16, alpha=32.0)
# The dimensions of a head that is dropped after training would teach nothing.
NO_HEAD: dict[str, dict[str, Any]] = {"simcse": {"head": False}, "self-guided": {"head_width": None}}
ADAPTER_RATE = 10.0  # times the learning rate of full training (docs/fit.md)


@dataclass(frozen=True)
class Wanted:
    """What the training stages of a route shall have besides their own settings."""

    searched: tuple[Shape, ...] = ()  # shapes whose first text is a query with a prompt of its own
    dimensions: tuple[int, ...] = ()  # that vectors can be truncated to, the largest first
    adapters: bool = False
    guide: str | None = None  # that filters the negatives of a batch
    label_rows: tuple[int, ...] = ()  # of each file of labelled texts, if batches come from one of them


def routes_from(
    bases: Sequence[Base], prepared: Prepared, request: Request, teacher: Teacher | None = None
) -> tuple[list[Route], list[SkippedRoute]]:
    """All routes from every base, and those that are skipped; with several bases their names say which."""
    routes, skipped = list[list[Route]](), list[SkippedRoute]()
    for base in bases:
        own = [one.for_base(base.encoder) for one in prepared.training_sets]
        found, lacking = find_routes(own, find_resources(request, base, teacher))
        wanted = _wanted(base, prepared, request)
        unfit = [SkippedRoute(one.name, why) for one in found if (why := _unfit(one, wanted))]
        fitting = [adapted(one, wanted) for one in found if not _unfit(one, wanted)]
        ending = f" from {base.label}" if len(bases) > 1 else ""
        routes.append([replace(one, name=f"{one.name}{ending}", base=base.path) for one in fitting])
        skipped += [replace(one, name=f"{one.name}{ending}") for one in (*lacking, *unfit)]
    if request.guide and not any(_is_guided(one) for some in routes for one in some):
        nothing = f"{option('guide')} filters the negatives of a batch, and no route on this data has any to filter"
        skipped.append(SkippedRoute("guided training", nothing))
    in_turn = [one for some in zip_longest(*routes) for one in some if one]  # each base's first route, then the second
    return in_turn, skipped


def _wanted(base: Base, prepared: Prepared, request: Request) -> Wanted:
    given = {one.shape for one in prepared.training_sets} | {Shape.PAIRS}  # a writer writes queries for raw text
    labelled = [len(rows) for rows in prepared.training_rows if rows.shape is Shape.CLASSIFICATION]
    return Wanted(
        searched=tuple(shape for shape in SEARCHED if shape in given) if base.is_asymmetric else (),
        dimensions=_with_whole(request.dimensions, base.encoder.dimension),
        adapters=base.is_large,
        guide=request.guide_path,
        label_rows=tuple(labelled) if any(one.label_column for one in prepared.inputs) else (),
    )


def _with_whole(dimensions: Sequence[int], whole: int) -> tuple[int, ...]:
    """With all dimensions among them, because the verdict is about whole vectors."""
    return tuple(sorted({*dimensions, whole}, reverse=True)) if dimensions else ()


def _unfit(route: Route, wanted: Wanted) -> str:
    """Why a route cannot give what was asked for; empty if it can. What is learned last counts."""
    *_, last = route.training
    if wanted.dimensions and "dimensions" not in type(last.options).model_fields:
        return f"{last.method} cannot train vectors that can be truncated ({option('dimensions')})"
    return ""


def _is_guided(route: Route) -> bool:
    return any(getattr(one.options, "guided", False) for one in route.training)


def adapted(route: Route, wanted: Wanted) -> Route:
    """The route with what its training stages shall have."""
    learned: Iterator[TrainsOn | None] = iter(route.trains_on or repeat(None))
    return route.with_training(_adapted(one, next(learned), wanted) for one in route.training)


def _adapted(one: Train, learned: TrainsOn | None, wanted: Wanted) -> Train:
    options, settings = _options(one, learned, wanted), _settings(one, learned, wanted)
    changed = {"options": one.options.model_copy(update=options), "settings": one.settings.model_copy(update=settings)}
    return one.model_copy(update=changed)


def _options(one: Train, learned: TrainsOn | None, wanted: Wanted) -> dict[str, Any]:
    known, found = type(one.options).model_fields, dict[str, Any]()
    if "asymmetric" in known and learned and learned.shape in wanted.searched:
        found["asymmetric"] = True
    if wanted.guide and "guide" in known:
        found |= {"guided": True, "guide": wanted.guide}
    if wanted.dimensions and "dimensions" in known:
        found |= {"dimensions": wanted.dimensions, **NO_HEAD.get(one.method, {})}
    return found


def _settings(one: Train, learned: TrainsOn | None, wanted: Wanted) -> dict[str, Any]:
    found = dict[str, Any]()
    if wanted.adapters:
        found |= {"lora": ADAPTERS, "learning_rate": ADAPTER_RATE * one.settings.learning_rate}
    if wanted.label_rows and learned and learned.shape is Shape.CLASSIFICATION:
        found |= {"mix": 1.0, "batch": min(one.settings.batch, batch_size(min(wanted.label_rows)))}
    return found
