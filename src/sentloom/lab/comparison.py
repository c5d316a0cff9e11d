"""Compare methods: every recipe and variant under the same seeds, in one table.

First the plans that the recipes and variants stand for, then their runs, then the table of their scores and costs.
Finished stages and scores in the folder are used again (see `engine.runner`).
"""

import json
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import mean
from typing import Literal

from accelerate import Accelerator

from sentloom.engine.plan import Plan, Recipe
from sentloom.engine.runner import PlanResult, Runner, prepare
from sentloom.engine.schema import TOP, one_of
from sentloom.errors import InputError, SentloomError, TrainingStopped, option
from sentloom.lab.recipe import find_recipe, read_recipe, with_names, with_variants
from sentloom.lab.recipe_yaml import Faults, read_file
from sentloom.lab.results import Row, change, set_notes, summarise, unlike_at, untouched

MEAN = "mean"
MARK = "≈"
Standing = Literal["best", "near", ""]


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
    first = {change: change.partition("=")[0].strip().partition(".")[0] for change in changes}
    return {
        path: [change for change, key in first.items() if key in TOP or key in names or key not in every]
        for path, names in stages.items()
    }


def _stage_names(path: Path) -> set[str]:
    """The names of a recipe's stages, over all variants; faults in the file are reported when it is read."""
    tree = with_names(read_file(path, Faults()))
    if not isinstance(tree.value, dict):
        return set()
    lists = [form.value.get("stages") for form in with_variants(tree, Faults()).values()]
    stages = [stage for listed in lists if isinstance(listed, list) for stage in listed if isinstance(stage, dict)]
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
            expected = one_of(name, known) if known else "none: the recipes have no variants"
            raise InputError(option("variant"), f"there is no variant {name!r}", expected, "correct the name")
    for recipe in recipes:
        if not _chosen(recipe, variants):
            problem = f"it has none of the variants {', '.join(variants)}"
            expected = f"one of {', '.join(recipe.variants)}"
            raise InputError(str(recipe.path), problem, expected, "name one of them too, or leave the recipe out")


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
    names = [name if count[name] == 1 else path for name, path in zip(short, long, strict=True)]
    twice = [name for name, number in Counter(names).items() if number > 1]
    if twice:
        raise InputError("recipes", f"{twice[0]} is given twice", "each recipe once", "leave one out")
    return [replace(recipe.resolve(variant), name=name) for (recipe, variant), name in zip(chosen, names, strict=True)]


def _refuse_unscored(plan: Plan) -> None:
    if plan.base is None:
        fix = "leave it out, or add a stage that trains an encoder"
        raise InputError(plan.name, "its stages produce no encoder", "an encoder to score", fix)
    if plan.evaluate is None:
        problem, fix = "the recipe does not say what it is scored on", f"name them: {option('on', 'SET')}"
        raise InputError(plan.name, problem, "sets or files", fix)


def compare_plans(
    plans: Sequence[Plan],
    folder: Path,
    accelerator: Accelerator,
    log: Callable[[str], None],
    report: Callable[[Compared], None],
) -> Compared:
    """Run plans one after another; `report` is called with the results so far after every plan (on the main process).

    Problems in any plan are reported before the first one trains. A plan whose training diverges is left out.
    """
    runners = prepare(plans, folder, accelerator, log)
    refuse_other_sets(runners)
    compared = Compared((), (), {})
    for runner in runners:
        try:
            results = runner.run()
            rows = (*compared.rows, summarise(runner.plan, results))
            compared = replace(compared, rows=rows, results=(*compared.results, *results))
        except TrainingStopped as error:  # the others may do better
            log(f"{runner.plan.name}: {error}")
            compared = replace(compared, failed={**compared.failed, runner.plan.name: error})
        if compared.rows and accelerator.is_main_process:
            report(compared)
    if not compared.rows:
        raise next(iter(compared.failed.values()))
    return compared


def refuse_other_sets(runners: Iterable[Runner]) -> None:
    """Refuse sets with the same name but other sentences or another score: they cannot share a column."""
    meant: dict[str, tuple[str, str, str]] = {}
    for runner in runners:
        for evaluation_set in runner.evaluation_sets:
            own = (runner.plan.name, evaluation_set.data.sha256, evaluation_set.metric)
            other = meant.setdefault(evaluation_set.name, own)
            if other[1:] != own[1:]:
                problem = f"it has other sentences or another score in {other[0]} than in {own[0]}"
                fix = f"give all of them the same data: {option('data', 'DIR')}"
                raise InputError(f"set {evaluation_set.name}", problem, "one meaning", fix)


@dataclass(frozen=True)
class Cost:
    """Training time and steps per seed, and the time for what is made once for all seeds."""

    seeds: int
    seconds: float
    steps: float
    made_seconds: float


@dataclass(frozen=True)
class ComparisonCell:
    """A score, and whether it is the best of its column or so near that the deviations overlap."""

    score: float
    deviation: float | None = None  # over seeds
    change: float | None = None  # from the untouched base
    standing: Standing = ""
    comparable: bool = True  # with published scores


@dataclass(frozen=True)
class Line:
    """A method, or an untouched base."""

    name: str
    cells: Mapping[str, ComparisonCell]  # by set
    cost: Cost | None  # None: nothing was trained
    is_base: bool = False


@dataclass(frozen=True)
class ComparisonTable:
    """Untouched bases first, then methods in the given order; notes explain the signs and what is missing."""

    sets: tuple[str, ...]
    lines: tuple[Line, ...]
    notes: tuple[str, ...]


def comparison_table(compared: Compared) -> ComparisonTable:
    """The table, with a note per plan that is missing."""
    steps = {row.name: mean(_steps(run) for run in compared.results if run.plan == row.name) for row in compared.rows}
    table = comparison(compared.rows, steps)
    stopped = [
        f"not in the table: {name}, which stopped ({error.where}: {error.problem})"
        for name, error in compared.failed.items()
    ]
    return replace(table, notes=(*table.notes, *stopped))


def _steps(result: PlanResult) -> int:
    return sum(int(stage["outcome"]["steps"]) for stage in result.stages if "outcome" in stage and not stage["once"])


def comparison(rows: Sequence[Row], steps: Mapping[str, float]) -> ComparisonTable:
    """The table of some rows; `steps` are the steps per seed, by the row's name."""
    names = list(dict.fromkeys(name for row in rows for name in row.after))
    whole = _one_mean(rows)
    sets = tuple(sorted((name for name in names if whole or name != MEAN), key=MEAN.__eq__))  # the mean comes last
    lines = [_base(label, scores, sets, unlike_at(rows, label)) for label, scores in untouched(rows).items()]
    lines += [_method(row, steps.get(row.name, 0.0), sets) for row in rows]
    standing = tuple(_with_standings(lines, sets))
    notes = [] if whole else ["no mean: the methods are not all scored on the same sets"]
    return ComparisonTable(sets, standing, (*_legend(standing), *notes, *set_notes(rows)))


def _one_mean(rows: Sequence[Row]) -> bool:
    """Whether all means are over the same sets."""
    return len({frozenset(row.after) for row in rows if MEAN in row.after}) <= 1


def _base(label: str, scores: Mapping[str, float], sets: Sequence[str], unlike: Collection[str]) -> Line:
    cells = {name: ComparisonCell(scores[name], comparable=name not in unlike) for name in sets if name in scores}
    return Line(f"{label}, untouched", cells, None, is_base=True)


def _method(row: Row, steps: float, sets: Sequence[str]) -> Line:
    cells = {
        name: ComparisonCell(
            row.after[name], row.deviation[name], change(row, name), comparable=name not in row.not_comparable
        )
        for name in sets
        if name in row.after
    }
    cost = Cost(row.seeds, row.seconds, steps, sum(stage["seconds"] for stage in row.made))
    name = f"{row.name} (transductive)" if row.transductive else row.name
    return Line(name, cells, cost if row.trained else None)


def _with_standings(lines: Sequence[Line], sets: Sequence[str]) -> list[Line]:
    best = {
        name: max((line.cells[name] for line in lines if name in line.cells), key=lambda cell: cell.score)
        for name in sets
    }
    return [
        replace(line, cells={name: _standing(cell, best[name]) for name, cell in line.cells.items()}) for line in lines
    ]


def _standing(cell: ComparisonCell, best: ComparisonCell) -> ComparisonCell:
    """An untouched base has no deviation: it does not depend on a seed."""
    low, high = best.score - (best.deviation or 0.0), cell.score + (cell.deviation or 0.0)
    return replace(cell, standing="best" if cell.score == best.score else "near" if high >= low else "")


def _legend(lines: Sequence[Line]) -> list[str]:
    """What the signs in the table mean."""
    cells = [cell for line in lines for cell in line.cells.values()]
    costs = [line.cost for line in lines if line.cost]
    notes = ["bold: the best of its column"]
    if any(cell.standing == "near" for cell in cells):
        notes.append(f"{MARK}: not clearly worse, its deviation over seeds overlaps with the best one's")
    if any(cell.change is not None for cell in cells):
        notes.append("in brackets: difference from the untouched base")
    if any(cost.seeds == 1 for cost in costs):
        notes.append("one seed: it is unknown how much of a difference is due to chance")
    return notes
