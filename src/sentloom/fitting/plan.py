"""The plan of a fit: which routes, how many rungs, how many steps each; made once, and read again by a later call."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import yaml
from accelerate import Accelerator
from pydantic import TypeAdapter, ValidationError

from sentloom.errors import DamagedFile
from sentloom.files import new_file, read_record, write_record
from sentloom.fitting.budget import Budget, Pace, Rung, affordable, rungs
from sentloom.fitting.routes import BATCH, EPOCHS, WEIGHTS, WRITTEN, Route, SkippedRoute
from sentloom.pipeline.forecast import forecast
from sentloom.pipeline.recipe import read_recipe
from sentloom.pipeline.yaml_source import Dumper
from sentloom.progress import note

REVISION = 3  # raised when the same inputs would be planned otherwise
TIMED_STEPS = 3  # a stage's length while its rate is measured: the forecast runs as many
MADE_SHARE = 0.2  # of a time budget, that back-translations or the search for negatives may take
FEWEST_MADE = 256  # with fewer a route is not worth it


@dataclass(frozen=True)
class Rates:
    """How many are made a second, measured here."""

    views: float  # back-translations
    mined: float  # pairs with a hard negative
    written: float  # sentences that others are written for, and judged


@dataclass(frozen=True)
class FitPlan:
    """What will be done. `inputs` is all that it was made for: with others it is made anew."""

    inputs: Mapping[str, Any]
    routes: tuple[Route, ...]
    closed: tuple[SkippedRoute, ...]
    paces: Mapping[str, Pace]
    scoring: float  # seconds that one model takes to be scored
    rungs: tuple[Rung, ...]

    def route(self, name: str) -> Route:
        """By name."""
        return next(route for route in self.routes if route.name == name)

    def write(self, path: Path) -> None:
        """As JSON."""
        write_record(path, asdict(self))


def read_plan(path: Path, inputs: Mapping[str, Any]) -> FitPlan | None:
    """The plan that was made for these inputs; None if there is none, if it is damaged, or made for others."""
    if not path.is_file():
        return None
    try:
        plan = TypeAdapter(FitPlan).validate_python(read_record(path, ""))
    except (DamagedFile, ValidationError):
        note(f"{path} is not what was written: a new plan is made")
        return None
    return plan if plan.inputs == inputs else None


def make_plan(
    inputs: Mapping[str, Any],
    routes: Sequence[Route],
    closed: Sequence[SkippedRoute],
    paces: Mapping[str, Pace],
    budget: Budget,
    scoring: float,
) -> FitPlan:
    """Fix who runs, in what order and how long: the cheapest goes first, and what is too dear does not go."""
    names = affordable(paces, budget, scoring)
    by_name = {route.name: route for route in routes}
    dear = [
        SkippedRoute(name, "the budget has no time for it beside the cheaper ones")
        for name in paces
        if name not in names
    ]
    field = {name: paces[name] for name in names}
    lengths = tuple(rungs(field, budget, scoring))
    return FitPlan(inputs, tuple(by_name[name] for name in names), (*closed, *dear), field, scoring, lengths)


def bearable_routes(routes: Sequence[Route], budget: Budget, rates: Rates) -> tuple[list[Route], list[SkippedRoute]]:
    """Those that the budget has time for, and those that it has not."""
    found = [bearable(route, budget, rates) for route in routes]
    opened = [route for route, why_not in found if why_not is None]
    return opened, [SkippedRoute(route.name, why_not) for route, why_not in found if why_not is not None]


def bearable(route: Route, budget: Budget, rates: Rates) -> tuple[Route, str | None]:
    """With as much made first as the budget has time for; why not, if that is too little."""
    views, mined = _bearable(route.views, budget, rates.views), _bearable(route.mined, budget, rates.mined)
    written = _bearable(route.written, budget, rates.written)
    for wanted, most, what in (
        (route.views, views, "back-translations"),
        (route.mined, mined, "hard negatives"),
        (route.written, written, "sentences to write for"),
    ):
        if most < min(FEWEST_MADE, wanted):
            return route, f"the budget has time for {most:,} {what}, and {FEWEST_MADE} are wanted"
    share = round(views / route.views, 4) if route.views else 1.0
    stages = tuple(
        {**stage, "data_share": share}
        if "views" in stage
        else {**stage, "rows": written}
        if is_making(stage)
        else stage
        for stage in route.stages
    )
    rows = tuple(
        min(count, views if "views" in stage else written if stage["data"] == WRITTEN else count)
        for stage, count in zip(learning_stages(route), route.rows, strict=True)
    )
    return replace(route, stages=stages, rows=rows, views=views, mined=mined, written=written), None


def _bearable(wanted: int, budget: Budget, rate: float) -> int:
    most = (budget.steps or 0) * BATCH if budget.seconds is None else MADE_SHARE * budget.seconds * rate
    return min(wanted, int(most))


def pace_of(route: Route, seconds: tuple[float, ...], rates: Rates) -> Pace:
    """What a route costs, its time shared among its stages by what they learn from."""
    once = route.views / rates.views + route.mined / rates.mined + route.written / rates.written
    weights = [WEIGHTS[shape] for shape in route.shapes]
    most = [
        max(1, EPOCHS[shape] * rows // stage["batch"])
        for shape, rows, stage in zip(route.shapes, route.rows, learning_stages(route), strict=True)
    ]
    return Pace(seconds, tuple(most), tuple(weight / sum(weights) for weight in weights), once)


def write_recipe(route: Route, steps: Sequence[int], base: str, seed: int, path: Path) -> Path:
    """A run as a recipe, which `sentloom train` takes as well."""
    lengths = iter(steps)
    stages = [dict(stage) if is_making(stage) else {**stage, **_length(next(lengths))} for stage in route.stages]
    recipe = {"title": route.name, "base": base, "stages": stages, "seeds": [seed]}
    with new_file(path) as part:
        part.write_text(yaml.dump(recipe, Dumper=Dumper, sort_keys=False, allow_unicode=True, width=120), "utf-8")
    return path


def _length(steps: int) -> dict[str, int]:
    """A stage's length, and how often it says where it is: curves of about twenty points."""
    return {"steps": steps, "log_every": max(1, steps // 20)}


def seconds_a_step(
    route: Route, base: str, seed: int, folder: Path, accelerator: Accelerator, known: dict[str, float]
) -> tuple[float, ...]:
    """Of each stage that learns, measured on a few steps here and now; a stage that several routes have, once."""
    making = [stage for stage in route.stages if is_making(stage)]
    found = []
    for stage, shape, rows in zip(learning_stages(route), route.shapes, route.rows, strict=True):
        key = json.dumps(stage, sort_keys=True)
        if key not in known:
            alone = replace(route, stages=(*making, stage), shapes=(shape,), rows=(rows,))
            known[key] = _timed(alone, base, seed, folder, accelerator)
        found.append(known[key])
    return tuple(found)


def _timed(route: Route, base: str, seed: int, folder: Path, accelerator: Accelerator) -> float:
    recipe = write_recipe(route, [TIMED_STEPS], base, seed, folder / "recipes" / ".timed.yaml")
    try:
        *_, last = forecast(read_recipe(recipe).resolve(), accelerator)
    finally:
        recipe.unlink()
    return last.seconds / last.steps


def learning_stages(route: Route) -> list[Mapping[str, Any]]:
    """The stages that train the encoder."""
    return [stage for stage in route.stages if not is_making(stage)]


def is_making(stage: Mapping[str, Any]) -> bool:
    """Whether a stage makes data and trains nothing."""
    return bool(stage["method"] == "synthesize")
