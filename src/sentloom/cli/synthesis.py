"""The command `synthesize`."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from sentloom.cli.common import (
    ColumnOption,
    ColumnsOption,
    DeviceOption,
    PrecisionOption,
    ShapeOption,
    read,
    resumable,
    show,
)


def synthesize(
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="LEDGER", help="The folder for everything that is written.")
    ],
    raw: Annotated[
        str | None,
        typer.Argument(
            metavar="RAW",
            help="Sentences: a file, a hub name, or embedded. Without it, an existing ledger is filtered again.",
        ),
    ] = None,
    synthesizer: Annotated[
        str | None, typer.Option(help="The model that writes and scores: a folder or a hub name.")
    ] = None,
    threshold: Annotated[
        float | None, typer.Option(min=0, max=1, help="The lowest score that is kept. By default 0.9.")
    ] = None,
    preset: Annotated[
        str,
        typer.Option(help="The filters: default, paper (the score only), official-code (also words and substrings)."),
    ] = "default",
    words: Annotated[int | None, typer.Option(min=0, help="The fewest words of a written sentence.")] = None,
    source_words: Annotated[int | None, typer.Option(min=0, help="The fewest words of a source sentence.")] = None,
    substring: Annotated[
        bool | None,
        typer.Option("--substring/--no-substring", help="Drop a sentence that contains its source, or is part of it."),
    ] = None,
    drop_equal: Annotated[
        bool | None, typer.Option("--drop-equal/--keep-equal", help="Drop a sentence that equals its source.")
    ] = None,
    top_p: Annotated[
        float | None, typer.Option(help="Sample from the most likely tokens with this total probability. Default 0.9.")
    ] = None,
    top_k: Annotated[
        int | None, typer.Option(help="Sample from this many tokens; 0 for all. The official code has 50.")
    ] = None,
    temperature: Annotated[float | None, typer.Option(help="The temperature of sampling. By default 1.0.")] = None,
    greedy: Annotated[bool, typer.Option("--greedy", help="Always take the most likely token.")] = False,
    candidates: Annotated[
        int | None, typer.Option(min=1, help="Sentences of each kind per source. By default 1.")
    ] = None,
    max_tokens: Annotated[
        int | None, typer.Option(min=1, help="The most tokens of a written sentence. By default 64.")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="The seed of sampling. By default 1.")] = None,
    rows: Annotated[
        int | None, typer.Option(min=1, help="Only the first rows of RAW; a later call can add more.")
    ] = None,
    backend: Annotated[str | None, typer.Option(help="transformers, ctranslate2 or ctranslate2-int8.")] = None,
    engine: Annotated[Literal["local", "ray"] | None, typer.Option(help="local, or ray for several workers.")] = None,
    workers: Annotated[int | None, typer.Option(min=1, help="How many workers --engine ray starts.")] = None,
    block: Annotated[int | None, typer.Option(min=1, help="Sources per file of the ledger. By default 256.")] = None,
    column: ColumnOption = None,
    shape: ShapeOption = None,
    columns: ColumnsOption = None,
    device: DeviceOption = None,
    precision: PrecisionOption = None,
) -> None:
    """Write an entailed and a contradicting sentence for each source, score them, and keep the good ones as triplets.

    Run the same command again to resume. Without RAW, an existing ledger is filtered again, and no model runs.
    """
    from sentloom.api import synthesize as run
    from sentloom.report import synthesis_tables

    data = read(raw, shape, columns) if raw is not None else None
    with resumable():
        summary = run(
            data,
            output,
            synthesizer=synthesizer,
            threshold=threshold,
            preset=preset,
            words=words,
            source_words=source_words,
            substring=substring,
            drop_equal=drop_equal,
            top_p=top_p,
            top_k=top_k,
            temperature=temperature,
            greedy=greedy,
            candidates=candidates,
            max_tokens=max_tokens,
            seed=seed,
            rows=rows,
            backend=backend,
            engine=engine,
            workers=workers,
            block=block,
            column=column,
            device=device,
            precision=precision,
            show_progress=True,
        )
    show(*synthesis_tables.synthesis(summary))
    show(f"written: {output / 'triplets.parquet'} ({summary.triplets:,} triplets)")
    show(f"         {output / 'pairs.parquet'} ({summary.pairs:,} pairs), reasons.parquet, summary.json, summary.png")
