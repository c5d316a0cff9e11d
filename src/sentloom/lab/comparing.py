"""Recipes side by side under the same seeds."""

from collections.abc import Sequence
from pathlib import Path

from sentloom.api.common import scored_inputs, silent, trackers_of, training_in
from sentloom.arguments import typed
from sentloom.data.in_memory import Inputs
from sentloom.encoder.device import Device, Precision, running_on
from sentloom.encoder.locate import is_model
from sentloom.engine.rows import Changes, recipe_changes
from sentloom.engine.runner import start_accelerator
from sentloom.errors import InputError, option
from sentloom.fitting.options import as_names
from sentloom.fitting.request import Log
from sentloom.fitting.stored import is_fit
from sentloom.lab.comparison import Compared, compare_plans, read_methods
from sentloom.lab.comparison_tables import refuse_foreign_tables, write_comparison
from sentloom.lab.recipe import find_recipe

SEEDS = 3  # of `compare`


@typed
def compare(
    recipes: str | Path | Sequence[str | Path],
    output: str | Path | None = None,
    *,
    seeds: int = SEEDS,
    variant: str | Sequence[str] = (),
    set: Changes = (),  # noqa: A002
    on: Inputs = (),
    data: str | Path | None = None,
    device: Device | None = None,
    precision: Precision | None = None,
    log: Log = silent,
) -> Compared:
    r"""Train recipes and their variants with the same seeds and score them side by side.

    `on` are sets or data that all of them are scored on, instead of their own; `data` is the folder of the sets.
    compare.json, compare.md and compare.csv go to `output`. The same call resumes.

    >>> from pathlib import Path
    >>> _ = Path("r.yaml").write_text(
    ...     "base: embedded\nstages: [{name: learn, method: simcse, data: none.txt, batch: 4, steps: 2}]\n"
    ... )
    >>> import sentloom
    >>> texts = {"learn.data": [f"Sentence number {n}." for n in range(20)]}
    >>> faq = sentloom.read([("Where is the canteen?", "On the ground floor."), ("Is it open?", "From noon on.")])
    >>> compared = compare("r.yaml", "compared", seeds=1, set=texts, on=faq)
    >>> len(compared.rows), Path("compared/compare.md").exists()
    (1, True)
    """
    names = as_names(recipes)
    if not names:
        raise InputError("recipes", "no recipe is given", "one or more", "name a file or a recipe of sentloom")
    for model in (name for name in names if is_model(name) or is_fit(name)):
        _refuse_model(Path(model))
    if output is None:
        fix = f"name one: {option('output', 'DIR')}"
        raise InputError("compare", "there is no output folder", "a folder for models and tables", fix)
    folder = Path(output)
    changes, saved = recipe_changes(set, find_recipe(names[0]), folder)
    scored = scored_inputs(on, folder.resolve(), log)
    plans = read_methods(
        names,
        seeds=seeds,
        variants=as_names(variant),
        changes=changes,
        on=[file.name for file in scored],
        data=Path(data) if data else None,
    )
    with running_on(device, precision):
        accelerator = start_accelerator(trackers_of(plans), folder)
        with training_in(folder, accelerator, [*saved, *scored]):
            refuse_foreign_tables(folder)
            return compare_plans(
                plans,
                folder,
                accelerator,
                log if accelerator.is_main_process else silent,
                lambda compared: write_comparison(compared, folder),
            )


def _refuse_model(model: Path) -> None:
    """Models are gated, or scored on the same data."""
    fix = f"compare models: sentloom gate {model} OTHER FILE, or sentloom evaluate {model} OTHER --suite FILE"
    raise InputError(str(model), "this is a model, which says nothing about how it is trained", "recipes", fix)
