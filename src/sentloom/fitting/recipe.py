"""`sentloom fit recipe.yaml`: the variants of a recipe are the routes that race, with the recipe's own lengths.

Every file that a stage reads is an input of the fit: some of its rows are held out, and the stages train on the rest.
"""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from sentloom.errors import InputError, option
from sentloom.fitting.inputs import InputSource
from sentloom.fitting.request import Log, Request
from sentloom.fitting.routes import Route
from sentloom.pipeline.needs import refuse_missing
from sentloom.pipeline.plan import Plan, to_yaml
from sentloom.pipeline.recipe import read_recipe
from sentloom.pipeline.references import named_stage
from sentloom.pipeline.stages import DataStage, Stage


@dataclass(frozen=True)
class FitRecipe:
    """What a recipe comes to in a fit."""

    base: str
    seed: int
    sources: tuple[InputSource, ...]  # every file that a stage reads
    routes: tuple[Route, ...]
    sha256: str  # of everything that is run

    def reading(self, files: Sequence[Path]) -> "FitRecipe":
        """The recipe with the files of training rows instead of its sources, in the same order."""
        instead = dict(zip(map(_key, self.sources), map(str, (file.resolve() for file in files)), strict=True))
        routes = [
            Route(one.name, one.why, tuple(_reading(each, instead) for each in one.stages), (), one.prompt, one.select)
            for one in self.routes
        ]
        return FitRecipe(self.base, self.seed, self.sources, tuple(routes), self.sha256)


def read_fit_recipe(request: Request, log: Log) -> FitRecipe:
    """Read the recipe of a request, refuse what cannot race, and say what is not used."""
    assert request.recipe is not None
    recipe = read_recipe(request.recipe)
    plans = [recipe.resolve(name) for name in recipe.variants] or [recipe.resolve()]
    _refuse(str(request.recipe), plans)
    refuse_missing([replace(plan, evaluate=None) for plan in plans])
    for line in _not_used(plans):
        log(line)
    (base,) = {plan.base for plan in plans}
    assert base is not None
    why = f"a variant of {request.recipe}" if recipe.variants else f"the stages of {request.recipe}"
    routes = tuple(Route(plan.name, why, plan.stages, (), plan.prompt, plan.select) for plan in plans)
    content = hashlib.sha256("\n".join(map(to_yaml, plans)).encode()).hexdigest()
    return FitRecipe(base, plans[0].seeds[0], tuple(_sources(plans)), routes, content)


def _refuse(where: str, plans: Sequence[Plan]) -> None:
    if no_encoder := [plan.name for plan in plans if plan.base is None or not plan.training]:
        problem = f"{no_encoder[0]!r} trains no encoder"
        raise InputError(where, problem, "a base and a stage that trains it", "add them, or run `sentloom train`")
    bases = list(dict.fromkeys(str(plan.base) for plan in plans))
    if len(bases) > 1:
        problem = f"its variants have different bases ({', '.join(bases)})"
        fix = "fit one of them, or compare recipes with `sentloom compare`"
        raise InputError(where, problem, "one base, which every variant has to beat", fix)


def _not_used(plans: Sequence[Plan]) -> Iterator[str]:
    seed = plans[0].seeds[0]
    if any(plan.seeds != (seed,) for plan in plans):
        yield f"Only the first seed of the recipe, {seed}, is used."
    if any(plan.evaluate for plan in plans):
        yield f"The recipe's `evaluate` is not used: held-out rows decide, or the sets of {option('against', 'SET')}."
    if any(plan.trackers for plan in plans):
        yield "The recipe's trackers are not used."
    if any(plan.published for plan in plans):
        yield "The published scores in the recipe are not used."


def _sources(plans: Iterable[Plan]) -> Iterator[InputSource]:
    found = {_key(source): source for plan in plans for one in plan.stages for source in _files(one)}
    return iter(found.values())


def _files(one: Stage) -> list[InputSource]:
    """The files that a stage reads."""
    if not isinstance(one, DataStage):
        return []
    return [InputSource(name, one.shape, one.columns) for name in one.data if not named_stage(name)]


def _key(source: InputSource) -> tuple[object, ...]:
    return source.name, source.shape, tuple(sorted((source.columns or {}).items()))


def _reading(one: Stage, instead: dict[tuple[object, ...], str]) -> Stage:
    """A stage that reads training rows instead of whole files."""
    if not isinstance(one, DataStage) or not _files(one):
        return one
    names = {source.name: instead[_key(source)] for source in _files(one)}
    data = tuple(names.get(name, name) for name in one.data)
    return one.model_copy(update={"data": data, "shape": None, "columns": None})
