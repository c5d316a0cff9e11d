"""Recipes: base encoder, stages, selection, evaluation and named variants in one YAML file, checked as a whole.

Reading has three steps: YAML to plain values with their lines (`yaml_source`); variants and overrides (`overrides`);
values to a `Plan` in which every default is filled in (`checking`). All problems are reported together, each with its
line.
"""

from collections.abc import Sequence
from pathlib import Path

from sentloom.pipeline.checking import Check
from sentloom.pipeline.overrides import with_names, with_overrides, with_variants
from sentloom.pipeline.plan import Recipe
from sentloom.pipeline.yaml_source import Faults, read_file, show


def read_recipe(path: Path, overrides: Sequence[str] = ()) -> Recipe:
    """Read a recipe with its variants; an override `KEY=VALUE` applies to all of them, and may name a stage.

    Raises RecipeError with every fault of the file, its variants and the overrides.
    """
    faults = Faults()
    tree = with_names(read_file(path, faults))
    if not isinstance(tree.value, dict):
        faults.refuse(tree.spot(()), f"found {show(tree.value)}", "keys and values")
    forms = with_overrides(with_variants(tree, faults), overrides, faults)
    plans = {name: Check(form, path.parent, faults).plan(name or path.stem) for name, form in forms.items()}
    faults.stop()
    sound = {name: plan for name, plan in plans.items() if plan is not None}
    return Recipe(path, tuple(name for name in sound if name is not None), sound)
