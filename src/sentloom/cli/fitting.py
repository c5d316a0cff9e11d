"""The command `fit`."""

import shlex
from pathlib import Path
from typing import Annotated

import typer

from sentloom.cli.common import ColumnsOption, DeviceOption, PrecisionOption, ShapeOption, resumable, show
from sentloom.data.shapes import parse_columns
from sentloom.errors import InputError

NOT_BETTER = 3  # the exit code of a fit whose model does not beat its base


def fit(
    data: Annotated[
        list[str],
        typer.Argument(
            metavar="DATA",
            help="One or more files or hub names, of any shape: raw text, labelled text, pairs, scored pairs, "
            "triplets, NLI, translations. Or one recipe (.yaml), whose variants race.",
        ),
    ],
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", metavar="MODEL", help="The model folder to write. Everything else goes to MODEL.fit."
        ),
    ],
    base: Annotated[
        str, typer.Option(help="The encoder to start from: embedded, a model folder, or a hub name.")
    ] = "embedded",
    budget: Annotated[
        str, typer.Option(help="For all routes together: a time (90s, 10m, 1.5h) or a number of steps (400steps).")
    ] = "10m",
    against: Annotated[
        list[str] | None,
        typer.Option(metavar="SET", help="A set or file that decides, instead of held-out rows; repeatable."),
    ] = None,
    general: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="A data folder with sts/STSB.test.tsv, on which to watch general ability."),
    ] = None,
    synthesizer: Annotated[
        str | None,
        typer.Option(metavar="DIR", help="A trained synthesizer, which adds the route of synthetic triplets."),
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Write the model even if it is not better than its base.")
    ] = False,
    seed: Annotated[int, typer.Option(min=0, help="The seed of training.")] = 1,
    shape: ShapeOption = None,
    columns: ColumnsOption = None,
    strict: Annotated[
        bool,
        typer.Option("--strict", help="Refuse data with any unusable row. By default up to 5% of them are left out."),
    ] = False,
    device: DeviceOption = None,
    precision: PrecisionOption = None,
) -> None:
    """Fit an encoder to your data: try the methods it supports, and write the best one if it beats its base.

    The exit code is 3 if nothing beats the base. Run the same command again to resume; finished work is reused.
    """
    from sentloom.api import fit as run
    from sentloom.report.fit_tables import fit_summary

    if not all(data):
        raise InputError("data", "an empty name", "", "name a file, a folder or a hub name")
    with resumable():
        done = run(
            [Path(name) for name in data],
            output,
            base=base,
            budget=budget,
            against=[Path(name) for name in against or ()],
            general=general,
            force=force,
            synthesizer=synthesizer,
            seed=seed,
            shape=shape,
            columns=parse_columns(columns) if columns else None,
            strict=strict,
            device=device,
            precision=precision,
            log=show,
        )
    show("", fit_summary(done.result), "")
    if done.model:
        show(
            f"written: {done.model}",
            f'  use it:  SentenceTransformer("{done.model}")',
            f"  try it:  sentloom search {shlex.quote(str(done.model))}",
        )
    show(f"report:  {done.report}")
    if done.model is None:
        show("No model was written. Use --force to write it anyway.")
        if output.exists():
            show(f"{output} is still the model of an earlier call.")
        raise typer.Exit(NOT_BETTER)
