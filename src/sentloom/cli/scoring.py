"""The command `evaluate`."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

import typer

from sentloom.cli.common import DeviceOption, PoolingOption, PrecisionOption, load, resumable, show
from sentloom.errors import InputError

MODELS = "[LABEL=]MODEL[,MODEL...]"
NOT_ALL_SCORED = 4  # the exit code


def evaluate(
    models: Annotated[
        list[str],
        typer.Argument(
            metavar=MODELS,
            help="embedded, model folders, hub names, or baselines: tf-idf, words:FILE, whitening:MODEL, wk:MODEL. "
            "Models joined by commas count as seeds of one model.",
        ),
    ],
    suite: Annotated[
        list[str] | None,
        typer.Option(
            help="sts, transfer, sentglue, multilingual, domain or afs; one of their sets, such as STS-B/dev; or a "
            "file: retrieval:FILE, pairs:FILE, classification:FILE. Repeatable. By default sts."
        ),
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(
            help="The folder of the sets (sts/STS12.tsv, senteval/MR.tsv ...), or SentEval's. By default the hub."
        ),
    ] = None,
    aggregation: Annotated[
        str, typer.Option(help="How the parts of an STS set are combined: all, mean or wmean.")
    ] = "all",
    fast: Annotated[
        bool, typer.Option("--fast", help="Five folds instead of ten, and at most 10,000 training rows.")
    ] = False,
    hidden: Annotated[
        int,
        typer.Option(
            help="Hidden units of the classifiers of transfer: 0 is logistic regression; SentEval also has 50."
        ),
    ] = 0,
    unchecked: Annotated[
        bool,
        typer.Option("--unchecked", help="Also score sets whose counts differ from the published ones, with a note."),
    ] = False,
    published: Annotated[bool, typer.Option("--published", help="Also show the published scores.")] = False,
    mteb: Annotated[
        list[str] | None,
        typer.Option(
            help="Run tasks of the mteb package instead, such as STS or STSBenchmark; its result files go to -o."
        ),
    ] = None,
    pooling: PoolingOption = None,
    cache: Annotated[
        Path | None, typer.Option(help="Where vectors and scores are cached. By default ~/.cache/sentloom.")
    ] = None,
    cache_size: Annotated[
        float, typer.Option(min=0, help="The maximum size of the vector cache in GB; 0 turns caching off.")
    ] = 2.0,
    output: Annotated[
        list[Path] | None,
        typer.Option(
            "--output",
            "-o",
            help="A file for the scores: .json, .csv, .md or .png; repeatable. By default scores.json.",
        ),
    ] = None,
    device: DeviceOption = None,
    precision: PrecisionOption = None,
) -> None:
    """Score models side by side on your data or on published sets, with confidence intervals.

    Run the same command again to resume.

    The exit code is 4 if a suite or set that you named could not be scored because its data is not here, or its counts
    differ from the published ones; the others are scored.
    """
    from sentloom.api.scoring import evaluate as run
    from sentloom.evaluation.evaluate import parse_models
    from sentloom.lab.published import with_published
    from sentloom.report import score_tables

    chosen = parse_models(models)
    if mteb:
        _run_mteb(chosen, mteb, pooling, output, device, precision)
        return
    targets = output or [Path("scores.json")]
    with resumable():
        evaluation = run(
            chosen,
            suite or ["sts"],
            data=data,
            pooling=pooling,
            aggregation=aggregation,
            fast=fast,
            hidden=hidden,
            unchecked=unchecked,
            cache=cache,
            cache_size=cache_size,
            output=targets,
            device=device,
            precision=precision,
            log=show,
            show_progress=True,
        )
    for result in evaluation.suites:
        show(score_tables.suite(result, list(chosen)))
        if published:
            show(with_published(result, list(chosen)))
    show(*(f"written: {target}" for target in targets))
    if evaluation.not_scored:
        names = ", ".join(evaluation.not_scored)
        show(f"not scored: {names}, for the reasons above. The files of a folder of data (--data DIR): docs/sets.md.")
        raise typer.Exit(NOT_ALL_SCORED)


def _run_mteb(
    models: Mapping[str, Sequence[str]],
    tasks: list[str],
    pooling: str | None,
    output: list[Path] | None,
    device: str | None,
    precision: str | None,
) -> None:
    """Each model on tasks of mteb, whose result files go to the output folder."""
    from sentloom.lab.mteb_files import run_mteb
    from sentloom.report import score_tables

    folder = output[0] if output else Path("mteb-results")
    if output and (len(output) > 1 or folder.suffix in (".json", ".csv", ".md")):
        problem = f"found {' and '.join(map(str, output))}"
        raise InputError("--output", problem, "one folder, for mteb's own files", "use -o mteb-results")
    scores = {
        name: run_mteb(load(name, pooling, device, precision), tasks, folder, model=name, show_progress=True)
        for names in models.values()
        for name in names
    }
    show(score_tables.mteb(scores), f"written: {folder}")
