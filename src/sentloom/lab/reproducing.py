"""The tables of the papers, beside their published scores."""

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal

from sentloom.api.common import silent, training_in
from sentloom.arguments import typed
from sentloom.encoder.device import Device, Precision, running_on
from sentloom.engine.needs import needs
from sentloom.engine.rows import Changes, recipe_changes
from sentloom.engine.runner import start_accelerator
from sentloom.engine.schema import one_of
from sentloom.errors import InputError, option
from sentloom.fitting.options import as_names
from sentloom.fitting.request import Log
from sentloom.lab.domains import by_domain
from sentloom.lab.recipe import find_tables, read_recipe
from sentloom.lab.reproduction import (
    DATA_FOLDER,
    Lack,
    Reproduction,
    Table,
    lack,
    read_reproduction,
    refuse_foreign_tables,
    run_table,
    scored_in,
    with_earlier,
    write_reproduction,
)
from sentloom.lab.row_costs import RowCost, row_cost
from sentloom.lab.tiny import tiny_recipe

Scale = Literal["paper", "tiny"]


@typed
def reproduce(
    tables: str | Sequence[str],
    output: str | Path | None = None,
    *,
    scale: Scale = "paper",
    row: str | Sequence[str] = (),
    set: Changes = (),  # noqa: A002 - the command's name for it
    data: str | Path | None = None,
    device: Device | None = None,
    precision: Precision | None = None,
    log: Log = silent,
) -> dict[str, Reproduction]:
    """Run the rows of a paper's table (`bsl/table-1`), or of all tables of a paper (`bsl`), beside published scores.

    A row whose models or data are not here does not run; the result says what it lacks. One of whose sets some are
    here is scored on these. `row` chooses some rows, `set` changes values of the recipe as for `train`.
    With the scale tiny, the same rows run on small models and a few sentences, from the folder `data` as far as it has
    them. Models, table.md and table.json go to `output/PAPER/TABLE`. The same call resumes.

    >>> tables = reproduce("self-guided/figure-1", "tables", scale="tiny", row="max, layer 2")
    >>> tables["self-guided/figure-1"].rows["max, layer 2"].published
    {'STS-B': 63.19}
    """
    if not (names := as_names(tables)):
        raise InputError("tables", "no table is given", "one or more", "name a table or a paper")
    folder, tiny, rows = Path(output or f"reproduced/{scale}"), scale == "tiny", as_names(row)
    data_folder = Path(data) if data else None
    if data_folder and not data_folder.is_dir():
        raise InputError(option("data"), f"there is no folder {data_folder}", "a folder of sets", "correct the path")
    variables = {**os.environ, DATA_FOLDER: str(data_folder)} if data_folder else os.environ
    paths = with_rows(find_tables(names), rows)
    tables_run = {}
    with running_on(device, precision):
        accelerator = start_accelerator((), folder)
        log_here = log if accelerator.is_main_process else silent
        for name, path in paths.items():
            place = folder / name
            changes, inputs = recipe_changes(set, path, place)
            with training_in(place, accelerator, inputs):
                refuse_foreign_tables(place)
                if tiny:
                    recipe = tiny_recipe(path, folder / "tiny", data_folder, changes)
                else:
                    recipe = scored_in(read_recipe(path, changes, variables), data_folder)
                only = [chosen for chosen in rows if chosen in recipe.variants]
                table = Table(recipe, place, accelerator, log_here, tiny, tuple(changes))
                tables_run[name] = run_table(table, only)
                if accelerator.is_main_process:
                    earlier = read_reproduction(place) if rows else None
                    write_reproduction(with_earlier(tables_run[name], earlier, recipe), place)
    return tables_run


def look_ahead(
    tables: str | Sequence[str],
    *,
    row: str | Sequence[str] = (),
    set: Changes = (),  # noqa: A002
    data: str | Path | None = None,
) -> Iterator[tuple[RowCost, tuple[Lack, ...]]]:
    """What each row would cost, and what is not here; nothing is downloaded or trained."""
    rows, data_folder = as_names(row), Path(data) if data else None
    variables = {**os.environ, DATA_FOLDER: str(data_folder)} if data_folder else os.environ
    for name, path in with_rows(find_tables(as_names(tables)), rows).items():
        changes, _ = recipe_changes(set, path, Path())
        recipe = scored_in(read_recipe(path, changes, variables), data_folder)
        for variant in recipe.variants:
            if not rows or variant in rows:
                whole = recipe.resolve(variant)
                for plan in by_domain(whole).values() or [whole]:
                    yield row_cost(plan, name, variant), tuple(lack(need, plan, recipe) for need in needs(plan))


def with_rows(paths: Mapping[str, Path], rows: Sequence[str]) -> dict[str, Path]:
    """The tables that have one of these rows; all of them if none is named."""
    if not rows:
        return dict(paths)
    known = {name: read_recipe(path).variants for name, path in paths.items()}
    for row in rows:
        if not any(row in variants for variants in known.values()):
            every = dict.fromkeys(variant for variants in known.values() for variant in variants)
            raise InputError(option("row"), f'there is no row "{row}"', one_of(row, every), "correct the name")
    return {name: path for name, path in paths.items() if any(row in known[name] for row in rows)}
