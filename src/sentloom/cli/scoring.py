"""The commands about scores: evaluate."""

import json
from pathlib import Path
from typing import Annotated

import typer

from sentloom import __version__
from sentloom.cli.common import PoolingOption, load, show
from sentloom.errors import InputError


def evaluate(
    model: Annotated[str, typer.Argument(help="embedded, a model folder, or a hub name.")],
    suite: Annotated[str, typer.Option(help="Which sets: sts.")] = "sts",
    data: Annotated[Path | None, typer.Option(help="A data folder (sts/STS12.tsv ...); without it, the hub.")] = None,
    aggregation: Annotated[str, typer.Option(help="How sub-sets are joined: all, mean or wmean.")] = "all",
    pooling: PoolingOption = None,
    output: Annotated[Path, typer.Option("--output", "-o", help="Where the scores go as JSON.")] = Path("scores.json"),
) -> None:
    """Score a model on the sets of a suite: a table here, every number in a JSON file."""
    from sentloom.evaluation import Aggregation, evaluate_sts, load_suite
    from sentloom.files import new_file
    from sentloom.report import tables

    if suite != "sts" or aggregation not in list(Aggregation):
        found = f"--suite {suite} --aggregation {aggregation}"
        raise InputError("evaluate", found, "suite sts; aggregation all, mean or wmean", "correct the option")
    sets = load_suite(data)
    encoder = load(model, pooling)
    result = evaluate_sts(lambda texts: encoder.encode(texts, show_progress=True), sets)
    show(tables.sts(model, result, Aggregation(aggregation)))
    with new_file(output) as part:
        settings = {"model": model, "pooling": str(encoder.pooling), "suite": suite, "sentloom": __version__}
        part.write_text(json.dumps({**settings, **result.to_dict()}, indent=2) + "\n", "utf-8")
    show(f"written: {output}")
