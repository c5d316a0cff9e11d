"""The commands about data: check, clean, views."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from sentloom.cli.common import ColumnsOption, Data, ModelOption, ShapeOption, read, show, token_counter

FOUND_LEAKS = 1  # exit code of `check --against` when there are leaks


def check(
    data: Data,
    against: Annotated[
        list[str] | None, typer.Option("--against", help="Evaluation data to look for; repeatable.")
    ] = None,
    shape: ShapeOption = None,
    columns: ColumnsOption = None,
    model: ModelOption = "embedded",
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Also write the findings as JSON.")] = None,
) -> None:
    """Say what a data file holds, what is wrong with it, and whether evaluation sentences leak into it.

    Exit code 2: the data has faults. Exit code 1: with --against, evaluation sentences stand in it.
    """
    from sentloom.data.inspection import inspect
    from sentloom.data.leaks import find_leaks
    from sentloom.files import new_file
    from sentloom.report import tables

    dataset = read(data, shape, columns)
    evaluation = [read(name, None, None) for name in against or ()]
    found = inspect(dataset, *token_counter(model))
    show(tables.inspection(found))
    leaks = find_leaks(dataset, evaluation) if evaluation else None
    if leaks:
        show(tables.leaks(leaks))
    if output:
        with new_file(output) as part:
            report = {"file": data, "sha256": dataset.sha256, **asdict(found)}
            if leaks:
                counts = {str(kind): count for kind, count in leaks.counts.items()}
                report["leaks"] = {**counts, "training rows": len(leaks.training_rows)}
            part.write_text(json.dumps(report, indent=2), "utf-8")
    if leaks and leaks.kept:
        raise typer.Exit(FOUND_LEAKS)


def clean(
    data: Data,
    output: Annotated[Path, typer.Option("--output", "-o", help="The file to write: csv, tsv, jsonl, txt, parquet.")],
    shape: ShapeOption = None,
    columns: ColumnsOption = None,
    min_words: Annotated[int | None, typer.Option(help="Drop rows with a shorter sentence.")] = None,
    max_words: Annotated[int | None, typer.Option(help="Drop rows with a longer sentence.")] = None,
    near_duplicates: Annotated[
        float | None, typer.Option(help="Drop rows this close to an earlier one, such as 0.8.")
    ] = None,
) -> None:
    """Normalise Unicode and white space, drop duplicates and what is too short or long, and say what was dropped."""
    from sentloom.data.clean import CleanSettings
    from sentloom.data.clean import clean as run
    from sentloom.data.writers import write
    from sentloom.report import tables

    settings = CleanSettings(min_words=min_words, max_words=max_words, near_duplicates=near_duplicates)
    cleaned, report = run(read(data, shape, columns), settings)
    write(cleaned, output)
    show(tables.cleaning(report), f"written: {output}")


def views(
    data: Data,
    output: Annotated[Path, typer.Option("--output", "-o", help="The file of pairs: csv, tsv, jsonl, parquet.")],
    kind: Annotated[
        str, typer.Option(help="back-translation, synonyms, mask-fill, file or entailment.")
    ] = "back-translation",
    pivot: Annotated[
        list[str] | None,
        typer.Option(help="forward,backward: two translation models, folders or hub names; once or twice."),
    ] = None,
    decoding: Annotated[str | None, typer.Option(help="Of translation models: beam or sampling.")] = None,
    beams: Annotated[int | None, typer.Option(help="How many beams.")] = None,
    top_k: Annotated[int | None, typer.Option(help="Sample among so many words; 0: all.")] = None,
    top_p: Annotated[float | None, typer.Option(help="Sample among the likeliest words of this share.")] = None,
    model: Annotated[str | None, typer.Option(help="A masked language model: folder or hub name.")] = None,
    share: Annotated[float | None, typer.Option(help="Of words (synonyms) or tokens (mask-fill).")] = None,
    file: Annotated[str | None, typer.Option(help="Ready pairs: originals and their views.")] = None,
    missing: Annotated[str | None, typer.Option(help="Originals not in that file: refuse or skip.")] = None,
    seed: Annotated[int | None, typer.Option(help="Of sampling, synonyms and mask-fill.")] = None,
    cache: Annotated[
        Path | None, typer.Option(help="Where views are kept; by default .sentloom/views beside the output.")
    ] = None,
    shape: ShapeOption = None,
    columns: ColumnsOption = None,
) -> None:
    """Give every sentence a second form, and write the pairs. Stopped or killed, the same command goes on."""
    from sentloom.data.writers import write
    from sentloom.report import tables
    from sentloom.views import make_pairs, view_settings
    from sentloom.views.settings import parse_pivot

    pivots = [parse_pivot(one) for one in pivot] if pivot else None
    given = {"pivots": pivots, "decoding": decoding, "beams": beams, "top_k": top_k, "top_p": top_p, "model": model}
    given |= {"share": share, "file": file, "missing": missing, "seed": seed}
    settings = view_settings({"kind": kind, **{name: value for name, value in given.items() if value is not None}})
    dataset = read(data, shape, columns)
    try:
        pairs = make_pairs(dataset, settings, cache=cache or output.parent / ".sentloom/views")
    except KeyboardInterrupt:
        show("stopped; the same command again goes on from here")
        raise
    write(pairs, output)
    show(tables.views(pairs), f"written: {output} ({len(pairs):,} pairs)")
