"""The command `compare`."""

from pathlib import Path
from typing import Annotated

import typer

from sentloom.cli.common import DeviceOption, PrecisionOption, is_main_process, resumable, show


def compare(
    recipes: Annotated[
        list[str],
        typer.Argument(
            metavar="RECIPE",
            help="YAML files, or names of recipes that come with sentloom. Or two fits: OLD.fit NEW.fit.",
        ),
    ],
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="DIR", help="The folder for models and tables; two fits do not need one."
        ),
    ] = None,
    seeds: Annotated[int, typer.Option(min=1, help="How many seeds to train every method with.")] = 3,
    variant: Annotated[
        list[str] | None, typer.Option("--variant", help="Only this variant; repeatable. By default all variants.")
    ] = None,
    changes: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Change a value of the recipes, as for train; repeatable."),
    ] = None,
    on: Annotated[
        list[str] | None,
        typer.Option(
            "--on", metavar="SET", help="Score all methods on this set or file, instead of their own; repeatable."
        ),
    ] = None,
    data: Annotated[
        Path | None, typer.Option(help="The folder of the evaluation sets, instead of the recipes' own.")
    ] = None,
    device: DeviceOption = None,
    precision: PrecisionOption = None,
) -> None:
    """Train recipes and their variants with the same seeds, and compare scores and cost in one table.

    Run the same command again to resume; finished runs are reused. Two fits (OLD.fit NEW.fit) are compared on test rows
    that neither has seen, without training.
    """
    from sentloom.api.comparing import compare as run
    from sentloom.fitting.compare_fits import FitComparison
    from sentloom.pipeline.comparison import comparison_table
    from sentloom.report import comparison_tables

    with resumable():
        found = run(
            recipes,
            output,
            seeds=seeds,
            variant=variant or (),
            set=changes or (),
            on=[Path(name) for name in on or ()],
            data=data,
            device=device,
            precision=precision,
            log=show,
        )
    if isinstance(found, FitComparison):
        show(comparison_tables.fits_table(found), found.verdict_line)
        return
    if not is_main_process():
        return
    show("", comparison_tables.methods_table("Comparison", comparison_table(found)))
    for name in comparison_tables.FILES:
        show(f"written: {(output or Path()) / name}")
    for error in found.failed.values():
        raise error
