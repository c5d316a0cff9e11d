"""The command `reproduce`."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from sentloom.cli.common import DeviceOption, PrecisionOption, is_main_process, resumable, show


def reproduce(
    tables: Annotated[
        list[str],
        typer.Argument(
            metavar="PAPER/TABLE", help="Tables as `sentloom recipes` lists them, or a paper: all its tables."
        ),
    ],
    scale: Annotated[
        Literal["paper", "tiny"],
        typer.Option(help="With tiny, the same rows run on small models, few sentences and few steps: a test."),
    ] = "paper",
    row: Annotated[
        list[str] | None, typer.Option("--row", help="Only this row, of the tables that have it; repeatable.")
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(
            envvar="SENTLOOM_DATA", help="The folder of sets and training files (docs/sets.md). By default the hub."
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="DIR", help="The folder for models and tables. By default reproduced/SCALE."
        ),
    ] = None,
    device: DeviceOption = None,
    precision: PrecisionOption = None,
) -> None:
    """Run tables of the papers, and print measured beside published scores. Run it again to resume.

    Rows whose models or data are not here are named with what they lack, where it comes from and what to do. If no row
    ran, or at the scale tiny not every one, the exit code is 1.
    """
    from sentloom.api.reproducing import reproduce as run
    from sentloom.report import reproduction_tables

    folder = output or Path("reproduced") / scale
    with resumable():
        found = run(
            tables,
            folder,
            scale=scale,
            row=row or (),
            data=data,
            device=device,
            precision=precision,
            log=show,
        )
    if is_main_process():
        for table, one in found.items():
            show("", reproduction_tables.reproduction_table(one))
            show(*(f"written: {folder / table / file}" for file in reproduction_tables.FILES))
    not_run, ran = (any(getattr(one, rows) for one in found.values()) for rows in ("not_run", "rows"))
    if not_run and (scale == "tiny" or not ran):
        raise typer.Exit(1)
