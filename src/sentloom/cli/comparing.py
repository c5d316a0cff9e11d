"""The commands that set methods against each other: compare."""

from pathlib import Path
from typing import Annotated

import typer

from sentloom.cli.common import show, working_in


def compare(
    recipes: Annotated[
        list[str],
        typer.Argument(metavar="RECIPE", help="YAML files, or names of shipped recipes (sentloom recipes)."),
    ],
    output: Annotated[Path, typer.Option("--output", "-o", metavar="DIR", help="The folder for runs and tables.")],
    seeds: Annotated[int, typer.Option(min=1, help="Every method is trained with the seeds 1 to this.")] = 3,
    variant: Annotated[
        list[str] | None, typer.Option("--variant", help="Only this variant; repeatable. Without it, all of them.")
    ] = None,
    changes: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Over the recipes, as for train; repeatable."),
    ] = None,
    on: Annotated[
        list[str] | None,
        typer.Option("--on", metavar="SET", help="Score all on this set or file, not on their own; repeatable."),
    ] = None,
    data: Annotated[Path | None, typer.Option(help="The data folder of the sets, over that of the recipes.")] = None,
) -> None:
    """Set recipes and their variants against each other: one table of scores over seeds, and cost.

    Stopped or killed, the same command goes on; what is done is not done again.
    """
    from sentloom import pipeline
    from sentloom.pipeline import comparing
    from sentloom.pipeline.comparison import comparison_table
    from sentloom.report import comparison_tables

    plans = comparing.read_methods(
        recipes, seeds=seeds, variants=variant or (), changes=changes or (), on=on or (), data=data
    )
    trackers = dict.fromkeys(name for plan in plans for name in plan.trackers)
    accelerator = pipeline.start_accelerator(tuple(trackers), output)
    log = show if accelerator.is_main_process else lambda *parts: None
    with working_in(output, accelerator, log):
        comparison_tables.refuse_foreign_tables(output)
        found = comparing.compare(
            plans, output, accelerator, log, lambda some: comparison_tables.write_comparison(some, output)
        )
    log("", comparison_tables.methods_table("Comparison", comparison_table(found)))
    for name in comparison_tables.FILES:
        log(f"written: {output / name}")
    for error in found.failed.values():
        raise error
