"""Reproduce a table of a paper: run or resume the rows whose parts are here, and say what the other rows lack."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from accelerate import Accelerator
from pydantic import TypeAdapter
from rich.console import Group, RenderableType
from rich.text import Text

from sentloom import __version__
from sentloom.engine.needs import Need, needs
from sentloom.engine.plan import Plan, Recipe, file_names
from sentloom.engine.schema import Quoted
from sentloom.errors import MissingPart, ModelError, SentloomError, TrainingStopped
from sentloom.lab.results import Row, refuse_foreign_file, run_plans, score_text, set_notes
from sentloom.markdown import plain, table
from sentloom.report.tables import Wide, json_text, write_text

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


JSON, MARKDOWN = FILES = "table.json", "table.md"
TINY = "tiny: small models, few sentences, few steps. These scores say nothing about the paper."


def refuse_foreign_tables(folder: Path) -> None:
    """Never overwrite a table that was not written by `reproduce`."""
    refuse_foreign_file(folder / MARKDOWN, folder / JSON)


def write_reproduction(found: Reproduction, folder: Path) -> None:
    """Write both files."""
    plain_values = {**asdict(found), "quoted": {name: row.model_dump() for name, row in found.quoted.items()}}
    write_text(folder / JSON, json_text({"sentloom": __version__, **plain_values}))
    write_text(folder / MARKDOWN, reproduction_markdown(found))


def read_reproduction(folder: Path) -> Reproduction | None:
    """What this version wrote there before, if anything."""
    if not (folder / JSON).is_file():
        return None
    values = json.loads((folder / JSON).read_text("utf-8"))
    return TypeAdapter(Reproduction).validate_python(values) if values.pop("sentloom") == __version__ else None


def reproduction_table(found: Reproduction) -> RenderableType:
    """For the terminal."""
    sections = [[(label, cells) for label, cells in lines] for lines in _sections(found)]
    shown = Wide(found.title, list(found.sets), sections, "row")
    return Group(shown, *(Text(line) for line in notes(found)))


def reproduction_markdown(found: Reproduction) -> str:
    """As Markdown."""
    lines = [(label, *cells) for section in _sections(found) for label, cells in section]
    parts = [f"# {plain(found.title)}", table(["row", *found.sets], lines)]
    return "\n\n".join([*parts, *(f"- {plain(line)}" for line in notes(found))]) + "\n"


def _sections(found: Reproduction) -> Iterator[Sequence[tuple[str, Sequence[str]]]]:
    """The lines of each row: measured, published, and their difference, unless it is tiny."""
    for name in found.order:
        if name in found.rows:
            row = found.rows[name]
            yield [*_measured(row, found.sets), *([] if found.tiny else _difference(row, found.sets))]
        else:
            yield [(f"{name}, published", _printed(found.not_run[name].published, found.sets))]
    if found.quoted:
        yield [(f"{name}, published", _printed(row.published, found.sets)) for name, row in found.quoted.items()]


def _measured(row: Row, sets: Sequence[str]) -> Iterator[tuple[str, Sequence[str]]]:
    name = f"{row.name} (transductive)" if row.transductive else row.name
    yield name, [_score(row, one) if one in row.after else "" for one in sets]
    if row.published:
        yield "  published", _printed(row.published, sets)


def _score(row: Row, name: str) -> str:
    return score_text(row.after[name], row.deviation[name], unlike=name in row.not_comparable)


def _difference(row: Row, sets: Sequence[str]) -> Iterator[tuple[str, Sequence[str]]]:
    """Of the scores that are comparable with published ones."""
    both = {one: score for one, score in row.published.items() if one in row.after and one not in row.not_comparable}
    away = {one: row.after[one] - score for one, score in both.items()}
    if away:
        yield "  difference", [f"{away[one]:+.2f}" if one in away else "" for one in sets]


def _printed(published: Mapping[str, float], sets: Sequence[str]) -> list[str]:
    return [f"{published[one]:.2f}" if one in published else "" for one in sets]


def notes(found: Reproduction) -> list[str]:
    """What the scores are not, which rows did not run, and what each of them needs."""
    seeds = sorted({row.seeds for row in found.rows.values()} - {1})
    said = [TINY] if found.tiny else []
    if seeds:
        said.append(f"± is the standard deviation over {' or '.join(map(str, seeds))} seeds")
    said += set_notes(found.rows.values())
    said += [
        f"{name}: {made['result']}, in {made['place']}" for name, row in found.rows.items() for made in _written(row)
    ]
    said += [f"{name}: {row.why}" for name, row in found.not_run.items() if row.why]
    said += _missing(found.not_run)
    return [*said, *(f"{name}: cannot be run: {row.why}" for name, row in found.quoted.items())]


def _written(row: Row) -> Sequence[Mapping[str, Any]]:
    """The last stage of a row that is not scored: the data that it wrote."""
    return () if row.after else row.made[-1:]


def _missing(not_run: Mapping[str, NotRun]) -> list[str]:
    """Every part that is not here, once, with the rows that need it."""
    rows: dict[Lack, list[str]] = {}
    for name, row in not_run.items():
        for one in row.lacks:
            rows.setdefault(one, []).append(name)
    return [
        f"not here: {one.what}{f' (from {one.origin})' if one.origin else ''}; {one.fix}. Needed by: {'; '.join(names)}"
        for one, names in rows.items()
    ]
