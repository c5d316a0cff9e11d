"""The tables of the papers, beside their published scores."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

from sentloom.api.common import silent, training_in
from sentloom.arguments import typed
from sentloom.encoder.device import Device, Precision, running_on
from sentloom.engine.runner import start_accelerator
from sentloom.engine.schema import one_of
from sentloom.errors import InputError, option
from sentloom.fitting.options import as_names
from sentloom.fitting.request import Log
from sentloom.lab.recipe import find_tables, read_recipe
from sentloom.lab.reproduction import (
    DATA_FOLDER,
    Reproduction,
    read_reproduction,
    refuse_foreign_tables,
    run_table,
    scored_in,
    with_earlier,
    write_reproduction,
)
from sentloom.lab.tiny import tiny_recipe

Scale = Literal["paper", "tiny"]


@typed
def reproduce(
    tables: str | Sequence[str],
    output: str | Path | None = None,
    *,
    scale: Scale = "paper",
    row: str | Sequence[str] = (),
    data: str | Path | None = None,
    device: Device | None = None,
    precision: Precision | None = None,
    log: Log = silent,
) -> dict[str, Reproduction]:
    """Run the rows of a paper's table (`bsl/table-1`), or of all tables of a paper (`bsl`), beside published scores.

    A row whose models or data are not here does not run; the result says what it lacks. `row` chooses some rows.
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
    paths = _with_rows(find_tables(names), rows)
    tables_run = {}
    with running_on(device, precision):
        accelerator = start_accelerator((), folder)
        log_here = log if accelerator.is_main_process else silent
        for name, path in paths.items():
            place = folder / name
            with training_in(place, accelerator, ()):
                refuse_foreign_tables(place)
                if tiny:
                    recipe = tiny_recipe(path, folder / "tiny", data_folder)
                else:
                    recipe = scored_in(read_recipe(path, variables=variables), data_folder)
                only = [chosen for chosen in rows if chosen in recipe.variants]
                tables_run[name] = run_table(recipe, place, accelerator, log_here, only=only, tiny=tiny)
                if accelerator.is_main_process:
                    earlier = read_reproduction(place) if rows else None
                    write_reproduction(with_earlier(tables_run[name], earlier, recipe), place)
    return tables_run


def _with_rows(paths: Mapping[str, Path], rows: Sequence[str]) -> dict[str, Path]:
    """The tables that have one of these rows; all of them if none is named."""
    if not rows:
        return dict(paths)
    known = {name: read_recipe(path).variants for name, path in paths.items()}
    for row in rows:
        if not any(row in variants for variants in known.values()):
            every = dict.fromkeys(variant for variants in known.values() for variant in variants)
            raise InputError(option("row"), f'there is no row "{row}"', one_of(row, every), "correct the name")
    return {name: path for name, path in paths.items() if any(row in known[name] for row in rows)}
