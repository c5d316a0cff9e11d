"""The command of the main job: fit."""

import shlex
from pathlib import Path
from typing import Annotated

import typer

from sentloom.cli.common import ColumnsOption, ShapeOption, show
from sentloom.data.shapes import parse_columns

NOT_BETTER = 3  # the exit code of a fit whose model does not beat its base


def fit(
    data: Annotated[
        list[str],
        typer.Argument(
            metavar="DATA",
            help="Files of any shape, together: raw or labelled text, (scored) pairs, triplets, NLI, translations.",
        ),
    ],
    output: Annotated[
        Path,
        typer.Option("--output", "-o", metavar="MODEL", help="The model folder to write; MODEL.fit takes the rest."),
    ],
    base: Annotated[
        str, typer.Option(help="What to start from: embedded, a model folder, or a hub name.")
    ] = "embedded",
    budget: Annotated[
        str, typer.Option(help="For all routes together: a time (90s, 10m, 1.5h) or steps (400steps).")
    ] = "10m",
    against: Annotated[
        list[str] | None,
        typer.Option(metavar="EVAL", help="A set or file that decides, in place of held-out rows; repeatable."),
    ] = None,
    general: Annotated[
        Path | None,
        typer.Option(
            "--data", metavar="DIR", help="A data folder with sts/STSB.test.tsv, to watch general ability on."
        ),
    ] = None,
    synthesizer: Annotated[
        str | None, typer.Option(metavar="DIR", help="A trained synthesizer: opens the route of synthetic triplets.")
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Write the model even if it is not better than its base.")
    ] = False,
    seed: Annotated[int, typer.Option(min=0, help="Of training.")] = 1,
    shape: ShapeOption = None,
    columns: ColumnsOption = None,
    strict: Annotated[
        bool,
        typer.Option("--strict", help="Refuse data with any unusable row; else up to 5% of them are left out."),
    ] = False,
) -> None:
    """Fit an encoder to your data: try the routes that it permits, compare, and write the winner if it beats its base.

    Exit code 3 if it does not. Stopped or killed, the same command goes on; what is done is not done again.
    """
    from sentloom.api import fit as run
    from sentloom.report.fit_tables import fit_summary

    try:
        done = run(
            data,
            output,
            base=base,
            budget=budget,
            against=against or (),
            general=general,
            force=force,
            synthesizer=synthesizer,
            seed=seed,
            shape=shape,
            columns=parse_columns(columns) if columns else None,
            strict=strict,
            log=show,
        )
    except KeyboardInterrupt:
        show("stopped; the same command again goes on from here")
        raise
    show("", fit_summary(done.result), "")
    if done.model:
        show(
            f"written: {done.model}",
            f'  use it:  SentenceTransformer("{done.model}")',
            f"  try it:  sentloom search {shlex.quote(str(done.model))}",
        )
    show(f"report:  {done.report}")
    if done.model is None:
        show("No model was written (--force writes it all the same).")
        if output.exists():
            show(f"{output} is still the model of an earlier call.")
        raise typer.Exit(NOT_BETTER)
