"""The command `fit`."""

import time
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from sentloom.cli.common import (
    DeviceOption,
    MaxTokensOption,
    ShapeOption,
    WriterModelOption,
    resumable,
    show,
    unwrapped,
)
from sentloom.fitting.clock import STARTED

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
        list[str] | None,
        typer.Option(
            metavar="MODEL",
            help="The encoder to start from: a model folder or a hub name; repeatable, then all of them race. By "
            "default embedded.",
        ),
    ] = None,
    budget: Annotated[
        str | None,
        typer.Option(
            metavar="AMOUNT",
            help="For all routes together: a time (90s, 10m, 1.5h) or a number of steps (400steps). By default 10m.",
        ),
    ] = None,
    against: Annotated[
        list[str] | None,
        typer.Option(metavar="SET", help="A set or file that decides, instead of held-out rows; repeatable."),
    ] = None,
    labels: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE",
            help="Answers of `sentloom tick` about this fit, which decide where no other labels do. Nothing is trained "
            "on them; repeatable.",
        ),
    ] = None,
    general: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="A data folder with sts/STSB.test.tsv, on which to watch general ability."),
    ] = None,
    group: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN",
            help="A column whose values connect rows, such as a customer or a thread: rows with the same value are not "
            "divided between training and test, unless that would put more than 5% of the file into one cluster (the "
            "output then says so); repeatable.",
        ),
    ] = None,
    corpus: Annotated[
        list[str] | None,
        typer.Option(metavar="FILE", help="More texts that held-out queries search among; repeatable."),
    ] = None,
    dimensions: Annotated[
        str | None,
        typer.Option(
            metavar="N,N,...",
            help="Train vectors that can be truncated to their first dimensions: 384,256,128,64 (Matryoshka).",
        ),
    ] = None,
    writer: Annotated[
        str | None,
        typer.Option(
            metavar="MODEL",
            help="What writes queries and sentences to learn from: a folder, a hub name, embedded, none, or "
            "https://..., an OpenAI-compatible endpoint, whose key is read from the variable SENTLOOM_WRITER_KEY. By "
            "default embedded, if it is installed and the budget is 5 minutes or more.",
        ),
    ] = None,
    writer_model: WriterModelOption = None,
    max_tokens: MaxTokensOption = None,
    guide: Annotated[
        str | None,
        typer.Option(
            metavar="MODEL",
            help="An encoder that finds false negatives: a model folder, a hub name or embedded-bge. By default none.",
        ),
    ] = None,
    teacher: Annotated[
        str | None,
        typer.Option(
            metavar="MODEL",
            help="A cross-encoder to learn from, if it ranks the validation rows better than the base: embedded, a "
            "model folder or a hub name.",
        ),
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Write the model even if it is not better than its base.")
    ] = False,
    seed: Annotated[int | None, typer.Option(min=0, help="The seed of training. By default 1.")] = None,
    shape: ShapeOption = None,
    columns: Annotated[
        str | None,
        typer.Option(
            metavar="ROLE=NAME,...",
            help="Which column is which: 'anchor=title, positive=body', 'text=message, label=intent', or "
            "'label=intent+team' for two label columns. Use column numbers (anchor=1) if there is no header.",
        ),
    ] = None,
    strict: Annotated[
        bool,
        typer.Option("--strict", help="Refuse data with any unusable row. By default up to 5% of them are left out."),
    ] = False,
    examples: Annotated[
        bool,
        typer.Option(
            " /--no-examples",
            show_default=False,
            help="Write report and model card without texts of your rows. By default they show some.",
        ),
    ] = True,
    device: DeviceOption = None,
    precision: Annotated[
        Literal["fp32", "bf16"] | None,
        typer.Option(
            help="Use fp32 or bf16, which is less exact, and faster where the hardware computes in it. By default "
            "training uses bf16 on CPUs with instructions for it, and everything else is in fp32."
        ),
    ] = None,
) -> None:
    """Fit an encoder to your data: try the methods it supports, and write the best one if it beats its base.

    The exit code is 3 if nothing beats the base. Run the same command again to resume; finished work is reused.
    """
    show(f"Fitting an encoder to {', '.join(data)}. Everything besides the model goes to {output}.fit")

    from sentloom.data.limits import FITTING, STRICT
    from sentloom.data.shapes import as_shape, parse_columns
    from sentloom.fitting.inputs import first_look  # like the next, without PyTorch, which takes seconds
    from sentloom.fitting.request import make_request, parse_dimensions, refuse_bad_request

    STARTED.set(time.monotonic())
    column_names, allow = parse_columns(columns) if columns else None, STRICT if strict else FITTING
    options: dict[str, Any] = {
        "base": base or None,
        "budget": budget,
        "against": [*map(Path, against or ())],
        "labels": labels or (),
        "general": general,
        "group": group or (),
        "corpus": [*map(Path, corpus or ())],
        "dimensions": parse_dimensions(dimensions) if dimensions is not None else None,
        "force": force,
        "writer": writer,
        "writer_model": writer_model,
        "max_tokens": max_tokens,
        "guide": guide,
        "teacher": teacher,
        "seed": seed,
        "shape": as_shape(shape),
        "columns": column_names,
        "strict": strict,
        "examples": examples,
        "device": device,
        "precision": precision,
    }
    refuse_bad_request(make_request(data, output, **options))
    for name in data:
        if line := first_look(name, as_shape(shape), column_names, allow, (group or ()) if len(data) == 1 else ()):
            show(line)
    show("Loading PyTorch and Transformers ...")

    from sentloom.api.fitting import fit as run
    from sentloom.report.fit_tables import fit_summary
    from sentloom.report.formatting import caution, next_steps

    with resumable():
        done = run([Path(name) for name in data], output, **options, log=show, show_progress=True)
    show("", fit_summary(done.result), "")
    if done.model:
        show(
            f"written: {done.model}",
            f'  use it:  SentenceTransformer("{done.model}")',
            *filter(None, [caution(done.result)]),
            *(unwrapped(f"  {what}:  {command}") for what, command in next_steps(done.result).items()),
        )
    show(f"report:  {done.report}")
    if done.model is None:
        show("No model was written. Use --force to write it anyway.")
        if output.exists():
            show(f"{output} is still the model of an earlier call.")
    show(done.result.verdict_line)
    if done.model is None:
        raise typer.Exit(NOT_BETTER)
