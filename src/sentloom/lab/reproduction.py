"""Reproduce a table of a paper: run or resume the rows whose parts are here, and say what the other rows lack.

The table goes to table.json, table.md and the terminal: each row as measured, as published, and their difference.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
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
from sentloom.lab.domains import by_domain, joined
from sentloom.lab.partial_sets import marked, missing_sets, without_sets
from sentloom.lab.results import Row, refuse_foreign_file, run_plans, score_text, set_notes
from sentloom.lab.row_costs import describe, row_cost
from sentloom.markdown import plain, table
from sentloom.report.tables import Wide, write_text
from sentloom.terminal import json_text

HUB = "https://huggingface.co"
DOWNLOADED = "it is downloaded if the hub can be reached"
DATA_FOLDER, FOLDER = "SENTLOOM_DATA", "--data DIR"  # a variable of recipes, and the option that sets it
JSON, MARKDOWN = FILES = "table.json", "table.md"
TINY = "tiny: small models, few sentences, few steps. These scores say nothing about the paper."


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
    deviation: Mapping[str, float] = field(default_factory=dict)  # of the published scores, over seeds


@dataclass(frozen=True)
class Reproduction:
    """The rows of a table in the order of its file: those that ran, and those that did not."""

    title: str
    order: tuple[str, ...]
    rows: Mapping[str, Row] = field(default_factory=dict)
    not_run: Mapping[str, NotRun] = field(default_factory=dict)
    quoted: Mapping[str, Quoted] = field(default_factory=dict)
    tiny: bool = False
    changes: tuple[str, ...] = ()  # to the recipe, KEY=VALUE: these rows are not the paper's

    @property
    def sets(self) -> tuple[str, ...]:
        """All sets and means that a row is scored on or published with, those of the first rows first."""
        printed = [
            *(row.published for row in self.rows.values()),
            *(row.published for row in self.not_run.values()),
            *(row.published for row in self.quoted.values()),
        ]
        measured = [row.after for row in self.rows.values()]
        return tuple(dict.fromkeys(name for scores in (*measured, *printed) for name in scores))


@dataclass(frozen=True)
class Table:
    """A table to run: its recipe, and where."""

    recipe: Recipe
    folder: Path
    accelerator: Accelerator
    log: Callable[[str], None]
    tiny: bool = False
    changes: tuple[str, ...] = ()  # to the recipe, KEY=VALUE


def run_table(table: Table, only: Sequence[str] = ()) -> Reproduction:
    """Run or resume all rows, or those named in `only`, one after another; a row that lacks something is left out."""
    recipe = table.recipe
    plans = [recipe.resolve(name) for name in only or recipe.variants] or [recipe.resolve()]
    files = file_names(list(recipe.variants))
    rows = {plan.name: run_row(table, plan, files.get(plan.name)) for plan in plans}
    return Reproduction(
        plans[0].title or recipe.path.stem,
        tuple(rows),
        {name: row for name, row in rows.items() if isinstance(row, Row)},
        {name: row for name, row in rows.items() if isinstance(row, NotRun)},
        recipe.quoted,
        table.tiny,
        table.changes,
    )


def run_row(table: Table, plan: Plan, file: str | None) -> Row | NotRun:
    """Run or resume one row, after saying what it costs; `file` is the name of its files.

    What is only on the hub is tried. A row that adapts to domains runs once for each.
    """
    if plans := by_domain(plan):
        return _joined(plan, {name: run_row(table, plans[name], f"{file}-{name}") for name in plans})
    recipe, log = table.recipe, table.log
    lacks: tuple[Lack, ...] = ()
    try:
        lacks = tuple(lack(need, plan, recipe) for need in needs(plan))
        if not all(part.fetched for part in lacks):
            return not_run(plan, lacks)
        if not table.tiny:
            log("\n".join(describe(row_cost(plan, table_name(recipe)))))
        return run_on_sets_here(plan, file, table.folder, table.accelerator, log) or not_run(plan)
    except TrainingStopped as error:
        return not_run(plan, why=f"it stopped: {error.where}: {error.problem}")
    except SentloomError as error:
        if lacks and isinstance(error, MissingPart | ModelError):  # the hub cannot be reached, which `lacks` say
            return not_run(plan, lacks)
        log(f"{plan.name}: {error}")
        if lacks:
            return not_run(plan, lacks)
        if isinstance(error, MissingPart):
            return not_run(plan, why=f"not here: {error.where}: {error.problem}; {error.fix}")
        raise


def _joined(plan: Plan, parts: Mapping[str, Row | NotRun]) -> Row | NotRun:
    """The row of all domains; what any of them lacks, if one did not run."""
    ran = {name: part for name, part in parts.items() if isinstance(part, Row)}
    if len(ran) == len(parts):
        return joined(plan, ran)
    others = [part for part in parts.values() if isinstance(part, NotRun)]
    lacks = dict.fromkeys(lack for part in others for lack in part.lacks)
    return not_run(plan, tuple(lacks), "; ".join(dict.fromkeys(part.why for part in others if part.why)))


def not_run(plan: Plan, lacks: tuple[Lack, ...] = (), why: str = "") -> NotRun:
    """A plan that did not run."""
    return NotRun(plan.published, lacks, why, plan.published_deviation)


def run_on_sets_here(
    plan: Plan, file: str | None, folder: Path, accelerator: Accelerator, log: Callable[[str], None]
) -> Row | None:
    """The row on those of its sets that are here; if none is, the run says what is missing."""
    missing = missing_sets(plan)
    if not plan.evaluate or len(missing) == len(plan.evaluate.sets):
        missing = {}
    for name, problem in missing.items():
        log(f"{plan.name}: {name} is left out: {problem}")
    rows = run_plans([without_sets(plan, missing) if missing else plan], [file], folder, accelerator, log)
    row = next((row for row in rows if row.name == plan.name), None)
    return marked(row, plan.evaluate, missing) if row and plan.evaluate else row


def table_name(recipe: Recipe) -> str:
    """PAPER/TABLE, as `reproduce` takes it."""
    return f"{recipe.path.parent.name}/{recipe.path.stem}"


def with_earlier(current: Reproduction, earlier: Reproduction | None, recipe: Recipe) -> Reproduction:
    """The rows of this run, and those of an earlier one that this one left out, in the order of the file."""
    if earlier is None or (earlier.tiny, earlier.changes) != (current.tiny, current.changes):
        return current
    rows, not_run = {**earlier.rows, **current.rows}, {**earlier.not_run, **current.not_run}
    order = tuple(name for name in recipe.variants if name in {*earlier.order, *current.order})
    return replace(
        current,
        order=order,
        rows={name: row for name, row in rows.items() if name in order and name not in current.not_run},
        not_run={name: row for name, row in not_run.items() if name in order and name not in current.rows},
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


def refuse_foreign_tables(folder: Path) -> None:
    """Never overwrite a table that was not written by `reproduce`."""
    refuse_foreign_file(folder / MARKDOWN, folder / JSON)


def write_reproduction(reproduction: Reproduction, folder: Path) -> None:
    """Write both files."""
    quoted = {name: row.model_dump() for name, row in reproduction.quoted.items()}
    write_text(folder / JSON, json_text({"sentloom": __version__, **asdict(reproduction), "quoted": quoted}))
    write_text(folder / MARKDOWN, reproduction_markdown(reproduction))


def read_reproduction(folder: Path) -> Reproduction | None:
    """What this version wrote there before, if anything."""
    if not (folder / JSON).is_file():
        return None
    values = json.loads((folder / JSON).read_text("utf-8"))
    return TypeAdapter(Reproduction).validate_python(values) if values.pop("sentloom") == __version__ else None


def reproduction_table(reproduction: Reproduction) -> RenderableType:
    """For the terminal."""
    sections = [[(label, cells) for label, cells in lines] for lines in _sections(reproduction)]
    shown = Wide(reproduction.title, list(reproduction.sets), sections, "row")
    return Group(shown, *(Text(line) for line in notes(reproduction)))


def reproduction_markdown(reproduction: Reproduction) -> str:
    """As Markdown."""
    lines = [(label, *cells) for section in _sections(reproduction) for label, cells in section]
    parts = [f"# {plain(reproduction.title)}", table(["row", *reproduction.sets], lines)]
    return "\n\n".join([*parts, *(f"- {plain(line)}" for line in notes(reproduction))]) + "\n"


def _sections(reproduction: Reproduction) -> Iterator[Sequence[tuple[str, Sequence[str]]]]:
    """The lines of each row: measured, published, and their difference, unless it is tiny."""
    sets, quoted = reproduction.sets, reproduction.quoted
    for name in reproduction.order:
        if name in reproduction.rows:
            row = reproduction.rows[name]
            yield [*_measured(row, sets), *([] if reproduction.tiny else _difference(row, sets))]
        else:
            row_not_run = reproduction.not_run[name]
            yield [(f"{name}, published", _printed(row_not_run.published, sets, row_not_run.deviation))]
    if quoted:
        yield [(f"{name}, published", _printed(row.published, sets)) for name, row in quoted.items()]


def _measured(row: Row, sets: Sequence[str]) -> Iterator[tuple[str, Sequence[str]]]:
    label = f"{row.name} (transductive)" if row.transductive else row.name
    yield label, [_score(row, name) if name in row.after else "" for name in sets]
    if row.published:
        yield "  published", _printed(row.published, sets, row.published_deviation)


def _score(row: Row, name: str) -> str:
    return score_text(row.after[name], row.deviation[name], unlike=name in row.not_comparable)


def _difference(row: Row, sets: Sequence[str]) -> Iterator[tuple[str, Sequence[str]]]:
    """How far the scores that are comparable with published ones are from them."""
    compared = [name for name in row.published if name in row.after and name not in row.not_comparable]
    away = {name: row.after[name] - row.published[name] for name in compared}
    if away:
        yield "  difference", [f"{away[name]:+.2f}" if name in away else "" for name in sets]


def _printed(
    published: Mapping[str, float], sets: Sequence[str], deviation: Mapping[str, float] = MappingProxyType({})
) -> list[str]:
    return [score_text(published[name], deviation.get(name)) if name in published else "" for name in sets]


def notes(reproduction: Reproduction) -> list[str]:
    """What the scores are not, which rows did not run, and what each of them needs."""
    rows, not_run = reproduction.rows, reproduction.not_run
    seeds = sorted({row.seeds for row in rows.values()} - {1})
    lines = [TINY] if reproduction.tiny else []
    if reproduction.changes:
        lines.append(f"not the paper's settings: {', '.join(reproduction.changes)}")
    if seeds:
        lines.append(f"± is the standard deviation over {' or '.join(map(str, seeds))} seeds")
    lines += set_notes(rows.values())
    lines += [f"{name}: {made['result']}, in {made['place']}" for name, row in rows.items() for made in _written(row)]
    lines += [f"{name}: {row.why}" for name, row in not_run.items() if row.why]
    lines += _missing(not_run)
    return [*lines, *(f"{name}: cannot be run: {row.why}" for name, row in reproduction.quoted.items())]


def _written(row: Row) -> Sequence[Mapping[str, Any]]:
    """The last stage of a row that is not scored: the data that it wrote."""
    return () if row.after else row.made[-1:]


def _missing(not_run: Mapping[str, NotRun]) -> list[str]:
    """Every part that is not here, once, with the rows that need it."""
    rows: dict[Lack, list[str]] = {}
    for name, row in not_run.items():
        for lack in row.lacks:
            rows.setdefault(lack, []).append(name)
    return [
        f"not here: {lack.what}{f' (from {lack.origin})' if lack.origin else ''}; {lack.fix}. "
        f"Needed by: {'; '.join(names)}"
        for lack, names in rows.items()
    ]
