"""Compare methods: every recipe and variant under the same seeds, in one table.

The table itself is in `comparison`. Finished stages and scores are reused from DIR (see `runner`).
"""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from accelerate import Accelerator

from sentloom.errors import InputError, SentloomError, TrainingStopped, option
from sentloom.pipeline.builtin import find_recipe
from sentloom.pipeline.overrides import with_names, with_variants
from sentloom.pipeline.plan import Plan, Recipe
from sentloom.pipeline.recipe import read_recipe
from sentloom.pipeline.results import Row, summarise
from sentloom.pipeline.runner import PlanResult, Runner, prepare
from sentloom.pipeline.schema import TOP
from sentloom.pipeline.yaml_source import Faults, one_of, read_file


@dataclass(frozen=True)
class Compared:
    """The results of a comparison so far: a row per plan, every run, and why a plan is missing."""

    rows: tuple[Row, ...]
    results: tuple[PlanResult, ...]
    failed: Mapping[str, SentloomError]


def read_methods(
    names: Sequence[str],
    *,
    seeds: int = 3,
    variants: Sequence[str] = (),
    changes: Sequence[str] = (),
    on: Sequence[str] = (),
    data: Path | None = None,
) -> list[Plan]:
    """The plans of recipes, all variants or those of the given names, each under a name of its own.

    Seeds are 1 to `seeds`. `on` are sets that all plans are scored on, and `data` is the folder of the sets.
    A change that names a stage applies to the recipes that have such a stage.
    """
    paths = [find_recipe(name) for name in names]
    common = [f"seeds={list(range(1, seeds + 1))}", *_scored_on(on, data)]
    own = _own_changes(paths, changes)
    recipes = [read_recipe(path, [*common, *own[path]]) for path in paths]
    _refuse_unknown(variants, recipes)
    plans = _labelled([(recipe, variant) for recipe in recipes for variant in _chosen(recipe, variants)])
    for plan in plans:
        _refuse_unscored(plan)
    return plans


def _scored_on(on: Sequence[str], data: Path | None) -> list[str]:
    """The sets and their folder as changes of a recipe. Existing paths are relative to the working folder."""
    places = [str(Path(name).absolute()) if Path(name).exists() else name for name in on]
    changed = [f"evaluate.sets={json.dumps(places)}", "evaluate.means={}", f"evaluate.mean={json.dumps(len(on) > 1)}"]
    sets = changed if on else []
    return [*sets, *([f"evaluate.data={json.dumps(str(data.absolute()))}"] if data else [])]


def _own_changes(paths: Sequence[Path], changes: Sequence[str]) -> dict[Path, list[str]]:
    """For each recipe the changes that apply to it, and those that apply to none, which reading it then reports."""
    stages = {path: _stage_names(path) for path in paths}
    every = {name for names in stages.values() for name in names}
    first = {one: one.partition("=")[0].strip().partition(".")[0] for one in changes}
    return {
        path: [one for one, key in first.items() if key in TOP or key in names or key not in every]
        for path, names in stages.items()
    }


def _stage_names(path: Path) -> set[str]:
    """The names of a recipe's stages, over all variants; faults in the file are reported when it is read."""
    tree = with_names(read_file(path, Faults()))
    if not isinstance(tree.value, dict):
        return set()
    lists = [form.value.get("stages") for form in with_variants(tree, Faults()).values()]
    stages = [stage for some in lists if isinstance(some, list) for stage in some if isinstance(stage, dict)]
    return {str(stage.get("name")) for stage in stages}


def _chosen(recipe: Recipe, variants: Sequence[str]) -> Sequence[str | None]:
    """The chosen variants of a recipe; None for a recipe without variants."""
    if not recipe.variants:
        return [None]
    return [name for name in recipe.variants if not variants or name in variants]


def _refuse_unknown(variants: Sequence[str], recipes: Sequence[Recipe]) -> None:
    """Refuse a name that no recipe has as a variant, and a recipe that has none of the named variants."""
    known = list(dict.fromkeys(name for recipe in recipes for name in recipe.variants))
    for name in variants:
        if name not in known:
            wanted = one_of(name, known) if known else "none: the recipes have no variants"
            raise InputError(option("variant"), f"there is no variant {name!r}", wanted, "correct the name")
    for recipe in recipes:
        if not _chosen(recipe, variants):
            found = f"it has none of the variants {', '.join(variants)}"
            wanted = f"one of {', '.join(recipe.variants)}"
            raise InputError(str(recipe.path), found, wanted, "name one of them too, or leave the recipe out")


def _labelled(chosen: Sequence[tuple[Recipe, str | None]]) -> list[Plan]:
    """Plans with distinct names: if there are several recipes, the recipe's name precedes the variant's."""
    paths = list(dict.fromkeys(recipe.path.resolve() for recipe, _ in chosen))
    several = len(paths) > 1
    short, long = [], []
    for recipe, variant in chosen:
        own = f": {variant}" if variant else ""
        short.append(f"{recipe.path.stem}{own}" if own and several else recipe.resolve(variant).name)
        long.append(f"{recipe.path}{own}")
    count = Counter(short)
    names = [one if count[one] == 1 else other for one, other in zip(short, long, strict=True)]
    twice = [name for name, number in Counter(names).items() if number > 1]
    if twice:
        raise InputError("recipes", f"{twice[0]} is given twice", "each recipe once", "leave one out")
    return [replace(recipe.resolve(variant), name=name) for (recipe, variant), name in zip(chosen, names, strict=True)]


def _refuse_unscored(plan: Plan) -> None:
    if plan.base is None:
        found = "its stages produce no encoder"
        raise InputError(plan.name, found, "an encoder to score", "leave it out, or add a stage that trains an encoder")
    if plan.evaluate is None:
        raise InputError(
            plan.name,
            "the recipe does not say what it is scored on",
            "sets or files",
            f"name them: {option('on', 'SET')}",
        )


def compare(
    plans: Sequence[Plan],
    folder: Path,
    accelerator: Accelerator,
    log: Callable[[str], None],
    each: Callable[[Compared], None],
) -> Compared:
    """Run plans one after another; `each` is called with the results so far after every plan (on the main process).

    Problems in any plan are reported before the first one trains. A plan whose training diverges is left out.
    """
    runners = prepare(plans, folder, accelerator, log)
    refuse_other_sets(runners)
    found = Compared((), (), {})
    for runner in runners:
        try:
            results = runner.run()
            rows = (*found.rows, summarise(runner.plan, results))
            found = replace(found, rows=rows, results=(*found.results, *results))
        except TrainingStopped as error:  # the others may do better
            log(f"{runner.plan.name}: {error}")
            found = replace(found, failed={**found.failed, runner.plan.name: error})
        if found.rows and accelerator.is_main_process:
            each(found)
    if not found.rows:
        raise next(iter(found.failed.values()))
    return found


def refuse_other_sets(runners: Iterable[Runner]) -> None:
    """Refuse sets with the same name but other sentences or another score: they cannot share a column."""
    meant: dict[str, tuple[str, str, str]] = {}
    for runner in runners:
        for evaluation_set in runner.evaluation_sets:
            own = (runner.plan.name, evaluation_set.data.sha256, evaluation_set.metric)
            other = meant.setdefault(evaluation_set.name, own)
            if other[1:] != own[1:]:
                found = f"it has other sentences or another score in {other[0]} than in {own[0]}"
                raise InputError(
                    f"set {evaluation_set.name}",
                    found,
                    "one meaning",
                    f"give all of them the same data: {option('data', 'DIR')}",
                )
