"""`sentloom fit recipe.yaml`: the variants of a recipe are the routes that race, with the recipe's own lengths."""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from sentloom.engine.needs import refuse_missing
from sentloom.engine.plan import Plan, to_yaml
from sentloom.errors import InputError, option
from sentloom.fitting.request import Log
from sentloom.fitting.routes import GivenRoutes, Route
from sentloom.lab.recipe import read_recipe


def read_fit_recipe(path: Path, log: Log) -> GivenRoutes:
    """Read a recipe, refuse what cannot race, and say what is not used."""
    recipe = read_recipe(path)
    plans = [recipe.resolve(name) for name in recipe.variants] or [recipe.resolve()]
    _refuse(str(path), plans)
    refuse_missing([replace(plan, evaluate=None) for plan in plans])
    for line in _not_used(plans):
        log(line)
    (base,) = {plan.base for plan in plans}
    assert base is not None
    why = f"a variant of {path}" if recipe.variants else f"the stages of {path}"
    routes = tuple(Route(plan.name, why, plan.stages, (), plan.prompt, plan.select) for plan in plans)
    content = hashlib.sha256("\n".join(map(to_yaml, plans)).encode()).hexdigest()
    return GivenRoutes(base, plans[0].seeds[0], routes, content)


def _refuse(where: str, plans: Sequence[Plan]) -> None:
    if no_encoder := [plan.name for plan in plans if plan.base is None or not plan.training]:
        problem = f"{no_encoder[0]!r} trains no encoder"
        raise InputError(where, problem, "a base and a stage that trains it", "add them, or run `sentloom lab train`")
    bases = list(dict.fromkeys(str(plan.base) for plan in plans))
    if len(bases) > 1:
        problem = f"its variants have different bases ({', '.join(bases)})"
        fix = "fit one of them, or compare recipes with `sentloom lab compare`"
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
