"""Recipes: base encoder, stages, selection, evaluation and named variants in one YAML file, checked as a whole.

Reading has three steps: YAML to plain values with their lines (`yaml_source`); variants and overrides (`overrides`);
values to a `Plan` in which every default is filled in (`checking`). All problems are reported together, each with its
line.
"""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from sentloom.pipeline.checking import Check
from sentloom.pipeline.overrides import with_names, with_overrides, with_variants
from sentloom.pipeline.plan import Recipe
from sentloom.pipeline.schema import Quoted
from sentloom.pipeline.yaml_source import Faults, read_file, show


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
