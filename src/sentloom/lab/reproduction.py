"""Reproduce a table of a paper: run or resume the rows whose parts are here, and say what the other rows lack."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from accelerate import Accelerator

from sentloom.errors import MissingPart, ModelError, SentloomError, TrainingStopped
from sentloom.lab.results import Row, run_plans
from sentloom.pipeline.needs import Need, needs
from sentloom.pipeline.plan import Plan, Recipe, file_names
from sentloom.pipeline.schema import Quoted

HUB = "https://huggingface.co"
DOWNLOADED = "it is downloaded if the hub can be reached"
DATA_FOLDER, FOLDER = "SENTLOOM_DATA", "--data DIR"  # a variable of recipes, and the option that sets it


@dataclass(frozen=True)
class Lack:
    """Something that a row needs: what it is, where it comes from, and what to do."""

    what: str  # "data of nli: nli.tsv"
    origin: str
    fix: str
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


def run_table(
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
        if lacks and isinstance(error, MissingPart | ModelError):  # the hub cannot be reached, which `lacks` say
            return NotRun(plan.published, lacks)
        log(f"{plan.name}: {error}")
        if lacks:
            return NotRun(plan.published, lacks)
        if isinstance(error, MissingPart):
            return NotRun(plan.published, why=f"not here: {error.where}: {error.problem}; {error.fix}")
        raise


def with_earlier(found: Reproduction, earlier: Reproduction | None, recipe: Recipe) -> Reproduction:
    """The rows of this run, and those of an earlier one that this one left out, in the order of the file."""
    if earlier is None or earlier.tiny != found.tiny:
        return found
    rows, not_run = {**earlier.rows, **found.rows}, {**earlier.not_run, **found.not_run}
    order = tuple(name for name in recipe.variants if name in {*earlier.order, *found.order})
    return replace(
        found,
        order=order,
        rows={name: row for name, row in rows.items() if name in order and name not in found.not_run},
        not_run={name: row for name, row in not_run.items() if name in order and name not in found.rows},
    )


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
    """What is missing, where it comes from and what to do."""
    what = f"{need.what}: {need.name}"
    variable = plan.variables.get(need.name)
    if variable:
        path = f"{variable}={'DIR' if variable == DATA_FOLDER else 'FILE'}"
        fix = f"{DOWNLOADED}, or set {path}" if need.on_hub else f"set {path}, or put it at {need.name}"
        return Lack(what, recipe.needs.get(variable, ""), fix, need.on_hub)
    if need.what == "set":
        return Lack(what, "the hub, or a data folder (docs/sets.md)", f"{DOWNLOADED}, or give {FOLDER}", need.on_hub)
    if need.on_hub:
        kind = "datasets/" if need.what.startswith("data") else ""
        origin = f"{HUB}/{kind}{need.name.partition('@')[0]}"
        return Lack(what, origin, recipe.needs.get(need.name, DOWNLOADED), need.on_hub)
    return Lack(what, recipe.needs.get(need.name, ""), f"put it at {need.name}")
