"""Recipes side by side under the same seeds, or two fits."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sentloom.api.common import scored_inputs, silent, trackers_of, training_in
from sentloom.arguments import typed
from sentloom.data.in_memory import Inputs
from sentloom.encoder.device import Device, Precision, running_on
from sentloom.encoder.locate import is_model
from sentloom.engine.rows import Changes, recipe_changes
from sentloom.engine.runner import start_accelerator
from sentloom.errors import InputError, option
from sentloom.fitting.compare_fits import FitComparison, compare_fits, is_fit
from sentloom.fitting.options import as_names
from sentloom.fitting.request import Log, Request
from sentloom.lab.comparison import Compared, compare_plans, read_methods
from sentloom.lab.comparison_tables import refuse_foreign_tables, write_comparison, write_fits
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
) -> Compared | FitComparison:
    r"""Train recipes and their variants with the same seeds and score them side by side.

    `on` are sets or data that all of them are scored on, instead of their own; `data` is the folder of the sets.
    compare.json, compare.md and compare.csv go to `output`. The same call resumes.

    Two fits (["old.fit", "new.fit"]) are compared on test rows that neither has seen; that trains nothing and needs no
    output. With one, compare.json and compare.md are written.

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
    for model in filter(is_model, names):
        _refuse_model(Path(model))
    if any(map(is_fit, names)):
        training = {"seeds": seeds != SEEDS, "variant": variant, "set": set, "on": on, "data": data}
        _refuse_for_fits([name for name, value in training.items() if not _is_empty(value)])
        with running_on(device, precision):
            return _compare_fits(names, output)
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
    """Models are compared by their fits, or scored on the same data."""
    fit = Request.folder_of(model)
    by_fit = f"compare the fits, as in {fit}; or " if is_fit(fit) and fit.is_dir() else ""
    fix = f"{by_fit}score models side by side: sentloom evaluate {model} OTHER --suite FILE"
    raise InputError(str(model), "this is a model, which says nothing about its data", "recipes, or two fits", fix)


def _is_empty(value: Any) -> bool:
    """Whether an option was left out; data in memory has no truth value."""
    return value is None or value is False or (isinstance(value, str | Sequence | Mapping) and not value)


def _refuse_for_fits(names: Sequence[str]) -> None:
    """Refuse options about training if two fits are compared, which trains nothing."""
    if names:
        options = " and ".join(map(option, names))
        problem = f"{options} cannot be used with fits, which are compared on their own test rows"
        raise InputError("compare", problem, "", "leave these out, or compare recipes")


def _compare_fits(names: Sequence[str], output: str | Path | None) -> FitComparison:
    """Compare two fits; refuse anything else beside them."""
    if not all(map(is_fit, names)) or len(names) != 2:
        problem = f"{len(names)} names are given, of which {sum(map(is_fit, names))} are fits"
        raise InputError("compare", problem, "two fits, or recipes only", "write OLD.fit NEW.fit")
    comparison = compare_fits(*map(Path, names))
    if output is not None:
        refuse_foreign_tables(Path(output))
        write_fits(comparison, Path(output))
    return comparison
