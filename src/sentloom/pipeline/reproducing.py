"""Reproduce a table of a paper: run or resume the rows whose parts are here, and say what the other rows lack.

A table is a recipe: its variants are the rows, `quoted` are rows that cannot be run at all, and `needs` says where the
files behind its environment variables come from.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from accelerate import Accelerator

from sentloom.errors import MissingPart, SentloomError, TrainingStopped
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
    fetched: bool = False  # from the hub, if it can be reached


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
        printed = [
            *(row.published for row in self.rows.values()),
            *(row.published for row in self.not_run.values()),
            *(row.published for row in self.quoted.values()),
        ]
        measured = [row.after for row in self.rows.values()]
        return tuple(dict.fromkeys(name for some in (*measured, *printed) for name in some))


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
    found = {plan.name: run_row(plan, recipe, files.get(plan.name), folder, accelerator, log) for plan in plans}
    return Reproduction(
        plans[0].title or recipe.path.stem,
        tuple(found),
        {name: row for name, row in found.items() if isinstance(row, Row)},
        {name: row for name, row in found.items() if isinstance(row, NotRun)},
        recipe.quoted,
        tiny,
    )


def run_row(
    plan: Plan, recipe: Recipe, file: str | None, folder: Path, accelerator: Accelerator, log: Callable[[str], None]
) -> Row | NotRun:
    """Run or resume one row; `file` is the name of its files. What is only on the hub is tried."""
    lacks: tuple[Lack, ...] = ()
    try:
        lacks = tuple(lack(one, plan, recipe) for one in needs(plan))
        if not all(one.fetched for one in lacks):
            return NotRun(plan.published, lacks)
        rows = run_plans([plan], [file], folder, accelerator, log)
        return next((row for row in rows if row.name == plan.name), NotRun(plan.published))
    except TrainingStopped as error:
        return NotRun(plan.published, why=f"it stopped: {error.where}: {error.problem}")
    except SentloomError as error:
        log(f"{plan.name}: {error}")
        if lacks:
            return NotRun(plan.published, lacks)
        if isinstance(error, MissingPart):
            return NotRun(plan.published, why=f"not here: {error.where}: {error.problem}; {error.fix}")
        raise


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
        place = f"{variable}=FILE, or {need.name} in the working folder"
        return Lack(what, recipe.needs.get(variable, ""), place, need.on_hub)
    if need.what == "set":
        return Lack(what, "the hub, or a data folder (docs/sets.md)", "--data DIR", need.on_hub)
    if need.on_hub:
        kind = "datasets/" if need.what.startswith("data") else ""
        origin = recipe.needs.get(need.name, f"{HUB}/{kind}{need.name.partition('@')[0]}")
        return Lack(what, origin, "the hub's cache, where it is downloaded to if the hub can be reached", need.on_hub)
    return Lack(what, recipe.needs.get(need.name, ""), need.name)
