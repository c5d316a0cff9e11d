"""The command `synthesize`."""

from pathlib import Path
from typing import Annotated

import typer

from sentloom.cli.common import ColumnsOption, MaxTokensOption, WriterModelOption, read, resumable, show


def synthesize(
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="LEDGER", help="The folder for everything that is written.")
    ],
    raw: Annotated[
        str | None,
        typer.Argument(
            metavar="RAW",
            help="Texts: a file, a hub name, or embedded. Without it, an existing ledger is filtered again.",
        ),
    ] = None,
    kind: Annotated[
        str | None,
        typer.Option(
            metavar="KIND",
            help="What to write: query, paraphrase, or entailment,contradiction, the default, which gives triplets.",
        ),
    ] = None,
    writer: Annotated[
        str | None,
        typer.Option(
            metavar="MODEL",
            help="The writer: embedded (the default), a folder, a hub name, or https://..., an OpenAI-compatible "
            "endpoint, whose key is read from the variable SENTLOOM_WRITER_KEY.",
        ),
    ] = None,
    writer_model: WriterModelOption = None,
    max_tokens: MaxTokensOption = None,
    shots: Annotated[
        str | None,
        typer.Option(metavar="DATA", help="A few pairs or triplets of your own that show what to write."),
    ] = None,
    filters: Annotated[
        str | None,
        typer.Option(
            metavar="PRESET,NAME=VALUE",
            help="What to drop: a preset (default, paper, official-code), values, or both: official-code,words=3. "
            "Values and their defaults: threshold=0.9, round_trip=1, drop_vague=true, copied=0.8, near_duplicates=0.8, "
            "language=true, finished=true, source_words=0, words=0, most_words=0, substring=false, drop_equal=true, "
            "and cross_encoder=0 with a teacher.",
        ),
    ] = None,
    sampling: Annotated[
        str | None,
        typer.Option(
            metavar="NAME=VALUE,...",
            help="How to sample, with the defaults: top_p=0.9, top_k=0, greedy=false, candidates=1, length=64, seed=1, "
            "temperature=1, and 0.5 for a causal model without training.",
        ),
    ] = None,
    execution: Annotated[
        str | None,
        typer.Option(
            metavar="NAME=VALUE,...",
            help="How to run: rows=N (the first rows; a later call can add more), backend=transformers (or "
            "ctranslate2, ctranslate2-int8), encoder=embedded (finds the sources of queries), teacher=NAME (a "
            "cross-encoder that scores queries: embedded, a folder or a hub name), engine=local (or ray), "
            "workers=1 (of ray), requests=8 (to an endpoint at a time), timeout=120 (seconds for "
            "each of its answers), price_read=0 and price_written=0 (of "
            "a million of its tokens, to see the cost), block=256 (texts per file of the ledger), "
            "device=NAME (by default a GPU if there is one), precision=fp32 (the embedded "
            "writer: bf16 on CPUs that compute in it).",
        ),
    ] = None,
    columns: ColumnsOption = None,
) -> None:
    """Write sentences or queries for each text, score them, and keep the good ones as triplets and pairs.

    Run the same command again to resume. Without RAW, an existing ledger is filtered again, and no model runs.
    """
    from sentloom.api.synthesis import synthesize as run
    from sentloom.report import synthesis_tables

    data = read(raw, None, columns) if raw is not None else None
    with resumable():
        summary = run(
            data,
            output,
            kind=kind,
            writer=writer,
            writer_model=writer_model,
            max_tokens=max_tokens,
            shots=Path(shots) if shots and Path(shots).exists() else shots,
            filters=filters,
            sampling=sampling,
            execution=execution,
            log=show,
            show_progress=True,
        )
    show(*synthesis_tables.synthesis(summary))
    for name in ["triplets.parquet"] * ("contradiction" in summary.kinds) + ["pairs.parquet", "summary.png"]:
        show(f"written: {output / name}")
