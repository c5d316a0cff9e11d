"""Variants and `--set`: overrides of a recipe by dotted keys, whose first part may be the name of a stage."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from sentloom.errors import RecipeError, option
from sentloom.pipeline.schema import TOP
from sentloom.pipeline.stages import STAGES
from sentloom.pipeline.yaml_source import Faults, Keys, Spot, Tree, one_of, parse, show


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
        forms[name] = Tree(without(common.value, "name", "published"), common.spots)
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


def without(values: Mapping[str, Any] | None, *keys: str) -> dict[str, Any]:
    """A mapping, or None, without some keys."""
    return {key: value for key, value in (values or {}).items() if key not in keys}
