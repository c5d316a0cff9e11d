"""`reproduce`."""

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from sentloom.api.common import silent, strings, training_in
from sentloom.arguments import typed
from sentloom.encoder.device import Device, Precision, running_on
from sentloom.errors import InputError
from sentloom.fitting.request import Log
from sentloom.pipeline import start_accelerator
from sentloom.pipeline.builtin import find_tables
from sentloom.pipeline.recipe import read_recipe
from sentloom.pipeline.reproducing import Reproduction, scored_in
from sentloom.pipeline.reproducing import reproduce as run_table
from sentloom.pipeline.tiny import tiny_recipe
from sentloom.report import reproduction_tables

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
    if not (names := strings(tables)):
        raise InputError("tables", "no table is given", "one or more", "name a table or a paper")
    folder, tiny = Path(output or f"reproduced/{scale}"), scale == "tiny"
    given = Path(data) if data else None
    found = {}
    with running_on(device, precision):
        accelerator = start_accelerator((), folder)
        said = log if accelerator.is_main_process else silent
        for name, path in find_tables(names).items():
            place = folder / name
            with training_in(place, accelerator, ()):
                reproduction_tables.refuse_foreign_tables(place)
                recipe = tiny_recipe(path, folder / "tiny", given) if tiny else scored_in(read_recipe(path), given)
                found[name] = run_table(recipe, place, accelerator, said, only=strings(row), tiny=tiny)
                if accelerator.is_main_process:
                    reproduction_tables.write_reproduction(found[name], place)
    return found
