"""Reproduce a table of a paper: run or resume the rows whose parts are here, and say what the other rows lack.

A table is a recipe: its variants are the rows, `quoted` are rows that cannot be run at all, and `needs` says where the
files behind its environment variables come from.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from accelerate import Accelerator

from sentloom.errors import SentloomError, TrainingStopped
from sentloom.pipeline.needs import Need, needs
from sentloom.pipeline.plan import Plan, Recipe
from sentloom.pipeline.results import Row, file_names, run_plans
from sentloom.pipeline.schema import Quoted

HUB = "https://huggingface.co"


@dataclass(frozen=True)
class Lack:
    """Something that a row needs: what it is, where it comes from, and where to put it."""

    what: str  # "data of nli: nli.tsv"
    origin: str
    place: str


@dataclass(frozen=True)
class NotRun:
    """A row that did not run: its published scores, and what it lacks or why it stopped."""

    published: Mapping[str, float]
    lacks: tuple[Lack, ...] = ()
    why: str = ""


@dataclass(frozen=True)
class Reproduction:
    """The rows of a table in the order of its file: those that ran, and those that did not."""

    title: str
    order: tuple[str, ...]
    rows: Mapping[str, Row] = field(default_factory=dict)
    not_run: Mapping[str, NotRun] = field(default_factory=dict)
    quoted: Mapping[str, Quoted] = field(default_factory=dict)
    tiny: bool = False

    @property
    def sets(self) -> tuple[str, ...]:
        """All sets and means that a row is scored on or published with, those of the first rows first."""
        measured = [name for row in self.rows.values() for name in row.after]
        others = [row.published for row in (*self.rows.values(), *self.not_run.values(), *self.quoted.values())]
        return tuple(dict.fromkeys([*measured, *(name for one in others for name in one)]))


def reproduce(
    recipe: Recipe,
    folder: Path,
    accelerator: Accelerator,
    log: Callable[[str], None],
    *,
    only: Sequence[str] = (),
    tiny: bool = False,
) -> Reproduction:
    """Run or resume all rows, or those named in `only`, one after another; a row that lacks something is left out."""
    chosen = only or recipe.variants
    plans = [recipe.resolve(name) for name in chosen] or [recipe.resolve()]
    files = file_names(list(recipe.variants))
    rows: dict[str, Row] = {}
    not_run: dict[str, NotRun] = {}
    for plan in plans:
        absent = needs(plan)
        lacks = tuple(lack(one, plan, recipe) for one in absent)
        if any(not one.on_hub for one in absent):
            not_run[plan.name] = NotRun(plan.published, lacks)
            continue
        try:
            found = run_plans([plan], [files.get(plan.name)], folder, accelerator, log)
            rows |= {row.name: row for row in found if row.name == plan.name}
        except TrainingStopped as error:
            log(f"{plan.name}: {error}")
            not_run[plan.name] = NotRun(plan.published, why=f"it stopped: {error.where}: {error.problem}")
        except SentloomError as error:
            if not absent:
                raise
            log(f"{plan.name}: {error}")  # what is only on the hub could not be fetched
            not_run[plan.name] = NotRun(plan.published, lacks)
    title = plans[0].title or recipe.path.stem
    return Reproduction(title, tuple(plan.name for plan in plans), rows, not_run, recipe.quoted, tiny)


def scored_in(recipe: Recipe, folder: Path | None) -> Recipe:
    """The recipe with its sets in a data folder; None leaves them where they are."""
    place = {"data": str(folder)}
    if folder is None:
        return recipe
    plans = {
        name: replace(
            plan,
            evaluate=plan.evaluate and plan.evaluate.model_copy(update=place),
            select=plan.select and plan.select.model_copy(update=place),
        )
        for name, plan in recipe.plans.items()
    }
    return replace(recipe, plans=plans)


def lack(need: Need, plan: Plan, recipe: Recipe) -> Lack:
    """What is missing, where it comes from and where to put it."""
    what = f"{need.what}: {need.name}"
    variable = plan.variables.get(need.name)
    if variable:
        origin = recipe.needs.get(variable, "")
        return Lack(what, origin, f"{variable}=FILE, or {need.name} in the working folder")
    if need.what == "set":
        return Lack(what, "the hub, or a data folder (docs/sets.md)", "SENTLOOM_DATA=DIR")
    if need.on_hub:
        kind = "" if need.what.startswith(("base", "model")) else "datasets/"
        return Lack(what, f"{HUB}/{kind}{need.name.partition('@')[0]}", "it is downloaded when the hub can be reached")
    return Lack(what, "", need.name)
