"""Recipes: base encoder, stages, selection, evaluation and named variants in one YAML file, checked as a whole.

Reading has three steps: YAML to plain values with their lines (`recipe_yaml`); variants and overrides (here); values
to a `Plan` in which every default is filled in (`recipe_checks`). All problems are reported together, each with its
line.
"""

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.resources import files
from pathlib import Path

from sentloom.engine.plan import Recipe
from sentloom.engine.schema import TOP, Keys, Quoted, one_of, show
from sentloom.engine.stages import STAGES
from sentloom.errors import InputError, RecipeError, option
from sentloom.lab.recipe_checks import Check
from sentloom.lab.recipe_yaml import Faults, Spot, Tree, parse, read_file, without

SPEED = ("self-guided/table-6", "sentence-t5/figure-5")  # tables of seconds, not of scores
MEASURED_BY = "python -m benchmarks.paper_speed"


def shipped() -> dict[str, Path]:
    """Every recipe in the lab's folder `recipes`, by its path there without the ending; table 2 before table 10."""
    folder = Path(str(files("sentloom.lab"))) / "recipes"
    paths = {path.relative_to(folder).with_suffix("").as_posix(): path for path in folder.rglob("*.yaml")}
    return {name: paths[name] for name in sorted(paths, key=_by_number)}


def _by_number(name: str) -> list[tuple[str, int]]:
    return [(text, int(number or 0)) for text, number in re.findall(r"(\D+)(\d*)", name)]


def find_recipe(name: str) -> Path:
    """A recipe's file: a path, or the name of one that is shipped."""
    if Path(name).is_file():
        return Path(name)
    known = shipped()
    if name not in known:
        problem = "there is no such file, and no built-in recipe of that name"
        fix = "list the built-in recipes with `sentloom lab recipes`"
        raise InputError(name, problem, one_of(name, known, "a file, or "), fix)
    return known[name]


def find_tables(names: Sequence[str]) -> dict[str, Path]:
    """Tables and figures by their names `PAPER/TABLE`; the name of a paper stands for all of its own."""
    known = {table: path for table, path in shipped().items() if "/" in table}
    tables: dict[str, Path] = {}
    for name in names:
        chosen = {table: path for table, path in known.items() if name in (table, table.partition("/")[0])}
        if name in SPEED:
            problem, fix = "it shows speed, which depends on the machine", f"measure yours: `{MEASURED_BY}`"
            raise InputError(name, problem, "a table of scores", fix)
        if name in shipped() and not chosen:
            fix = f"run it with `sentloom lab train {name}`"
            raise InputError(name, "it is no table of a paper", "PAPER/TABLE", fix)
        if not chosen:
            papers = dict.fromkeys(table.partition("/")[0] for table in known)
            expected = one_of(name, known, f"a paper ({', '.join(papers)}) or a table, ")
            raise InputError(name, "there is no such table", expected, "list the tables with `sentloom lab recipes`")
        tables |= chosen
    return tables


def read_recipe(path: Path, overrides: Sequence[str] = (), variables: Mapping[str, str] = os.environ) -> Recipe:
    """Read a recipe with its variants; an override `KEY=VALUE` applies to all of them, and may name a stage.

    `variables` are the values of ${NAME}.
    Raises RecipeError with every fault of the file, its variants and the overrides.
    """
    faults = Faults()
    tree = with_names(read_file(path, faults))
    if not isinstance(tree.value, dict):
        faults.refuse(tree.spot(()), f"found {show(tree.value)}", "keys and values")
    forms = with_overrides(with_variants(tree, faults), overrides, faults)
    plans = {name: Check(form, path.parent, faults, variables).plan(name or path.stem) for name, form in forms.items()}
    faults.stop()
    sound = {name: plan for name, plan in plans.items() if plan is not None}
    variants = tuple(name for name in sound if name is not None)
    quoted = {name: Quoted(**row) for name, row in tree.value.get("quoted", {}).items()}
    return Recipe(path, variants, sound, quoted, tree.value.get("needs", {}))


def with_names(tree: Tree) -> Tree:
    """Every stage with a name: its own, otherwise its method's, numbered if that is taken."""
    stages = tree.value.get("stages") if isinstance(tree.value, dict) else None
    if not isinstance(stages, list):
        return tree
    taken = {stage["name"] for stage in stages if isinstance(stage, dict) and isinstance(stage.get("name"), str)}
    named = []
    for at, stage in enumerate(stages):
        if isinstance(stage, dict) and stage.get("name") is None:
            method = stage.get("method")
            stem = method if isinstance(method, str) and method in STAGES else f"stage-{at + 1}"
            name = next(name for name in _numbered(stem) if name not in taken)
            taken.add(name)
            stage = {**stage, "name": name}
        named.append(stage)
    return Tree({**tree.value, "stages": named}, tree.spots)


def _numbered(stem: str) -> Iterator[str]:
    yield stem
    number = 2
    while True:
        yield f"{stem}-{number}"
        number += 1


def with_variants(tree: Tree, faults: Faults) -> dict[str | None, Tree]:
    """The common part (None), and every variant, which overrides it."""
    common = Tree(without(tree.value, "variants"), tree.spots)
    forms: dict[str | None, Tree] = {None: common}
    variants = tree.value.get("variants")
    if not isinstance(variants, dict | None):
        faults.add(tree.spot(("variants",)), f"found {show(variants)}", "names, each with overrides")
        return forms
    for name, row in (variants or {}).items():
        if not name or not isinstance(row, dict | None):
            faults.add(
                tree.spot(("variants", name)), f"found {show({name: row})}", "a name with overrides: keys and values"
            )
            continue
        forms[name] = Tree(without(common.value, "name", "published", "published_deviation"), common.spots)
        for key in row or {}:
            forms[name] = _overridden(forms[name], key, tree.below(("variants", name, key)), faults)
    return forms


def with_overrides(forms: dict[str | None, Tree], overrides: Sequence[str], faults: Faults) -> dict[str | None, Tree]:
    """The forms with the command's overrides; one that names a stage does not apply to forms without that stage."""
    for override in overrides:
        key, equals, text = override.partition("=")
        key, spot = key.strip(), Spot(f"{option('set')} {key.strip()}", "")
        if not (key and equals):
            faults.add(Spot(option("set"), ""), f"found {show(override)}", "KEY=VALUE, as in sg.temperature=0.05")
            continue
        try:
            new = Tree(parse(text, spot.file, faults).value, {(): spot})
        except RecipeError:
            continue  # the fault is recorded
        first, stages = key.partition(".")[0], [stage for form in forms.values() for stage in _stage_places(form)]
        if first not in (*TOP, *stages):
            faults.add(spot, f"unknown key {show(key)}", _key_or_stage(first, stages))
        having = [name for name, form in forms.items() if first in (*TOP, *_stage_places(form))]
        forms |= {name: _overridden(forms[name], key, new, faults) for name in having}
    return forms


def _stage_places(tree: Tree) -> dict[str, int]:
    stages = tree.value.get("stages")
    listed = stages if isinstance(stages, list) else []
    return {str(stage.get("name")): at for at, stage in enumerate(listed) if isinstance(stage, dict)}


def _key_or_stage(name: str, stages: Iterable[str]) -> str:
    return one_of(name, [*TOP, *stages], "a key or a stage, ")


def _overridden(tree: Tree, key: str, new: Tree, faults: Faults) -> Tree:
    """A form with one override."""
    first, *rest = key.split(".")
    places = _stage_places(tree)
    if first not in TOP and first not in places:
        faults.add(new.spots[()], f"unknown key {show(key)}", _key_or_stage(first, places))
        return tree
    if first not in TOP and not rest:
        faults.add(new.spots[()], f"found the stage {show(first)} alone", f"one of its keys, as in {first}.batch")
        return tree
    start: Keys = (first,) if first in TOP else ("stages", places[first])
    try:
        return with_names(tree.put((*start, *rest), new))
    except KeyError:
        faults.add(new.spots[()], f"the key {show(key)} is below a value that has no keys", "")
        return tree
