"""The lab's commands that make data: mine, synthesize, views, translate, corpus."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from sentloom.cli.common import (
    ColumnOption,
    ColumnsOption,
    Data,
    DeviceOption,
    MaxTokensOption,
    ModelOption,
    PoolingOption,
    PrecisionOption,
    ShapeOption,
    SpreadsheetOption,
    WriterModelOption,
    read,
    resumable,
    show,
)

SHOWN = 5  # translations


def mine(
    data: Data,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="The file of triplets: .csv, .tsv, .jsonl or .parquet.")
    ],
    model: ModelOption = "embedded",
    corpus: Annotated[
        str | None, typer.Option(help="A file of texts to search for negatives. By default the positives of the pairs.")
    ] = None,
    negatives: Annotated[int, typer.Option(min=1, help="How many negatives per pair.")] = 1,
    margin: Annotated[
        float,
        typer.Option(
            help="How far below the positive's cosine a negative's must be; closer ones may be right answers."
        ),
    ] = 0.05,
    at_most: Annotated[
        float | None,
        typer.Option(help="A negative's cosine is also at most this share of the positive's, such as 0.95."),
    ] = None,
    guide: Annotated[
        str | None,
        typer.Option(help="A second model; what it finds too close to the anchor is not used as a negative either."),
    ] = None,
    teacher: Annotated[
        str | None,
        typer.Option(
            help="A cross-encoder: reranker, a model folder, or a hub name. What it scores nearly as high as the "
            "positive is not used as a negative either."
        ),
    ] = None,
    teacher_margin: Annotated[
        float, typer.Option(help="How far below the positive's score a negative's must be, by the teacher.")
    ] = 1.0,
    skip: Annotated[int, typer.Option(min=0, help="How many of the nearest candidates to skip.")] = 0,
    depth: Annotated[int, typer.Option(min=1, help="How many candidates to look at.")] = 50,
    search: Annotated[
        Literal["exact", "faiss"],
        typer.Option(help="exact, or faiss for corpora of several hundred thousand texts or more."),
    ] = "exact",
    pooling: PoolingOption = None,
    shape: ShapeOption = None,
    columns: ColumnsOption = None,
    spreadsheet_safe: SpreadsheetOption = False,
    device: DeviceOption = None,
    precision: PrecisionOption = None,
) -> None:
    """Find hard negatives for pairs: texts that rank close to the anchor but are not known to be right.

    Pairs for which none is found are not in the output.
    """
    from sentloom.lab.making import mine as run
    from sentloom.report import data_tables

    _, report = run(
        read(data, shape, columns),
        output,
        model=model,
        corpus=read(corpus, None, None) if corpus else None,
        negatives=negatives,
        margin=margin,
        at_most=at_most,
        guide=guide,
        teacher=teacher,
        teacher_margin=teacher_margin,
        skip=skip,
        depth=depth,
        search=search,
        pooling=pooling,
        spreadsheet_safe=spreadsheet_safe,
        device=device,
        precision=precision,
        show_progress=True,
    )
    show(data_tables.mining(report), f"written: {output}")


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
            help="The writer: smollm2 (the default), a folder, a hub name, or https://..., an OpenAI-compatible "
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
            "cross-encoder that scores queries: reranker, a folder or a hub name), engine=local (or ray), "
            "workers=1 (of ray), requests=8 (to an endpoint at a time), timeout=120 (seconds for "
            "each of its answers), price_read=0 and price_written=0 (of "
            "a million of its tokens, to see the cost), block=256 (texts per file of the ledger), "
            "device=NAME (by default a GPU if there is one), precision=fp32 (smollm2: bf16 on "
            "CPUs that compute in it).",
        ),
    ] = None,
    columns: ColumnsOption = None,
) -> None:
    """Write sentences or queries for each text, score them, and keep the good ones as triplets and pairs.

    Run the same command again to resume. Without RAW, an existing ledger is filtered again, and no model runs.
    """
    from sentloom.lab import synthesis_tables
    from sentloom.lab.making import synthesize as run

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


def views(
    data: Data,
    output: Annotated[Path, typer.Option("--output", "-o", help="The file of pairs: .csv, .tsv, .jsonl or .parquet.")],
    kind: Annotated[
        str, typer.Option(help="How to rewrite: back-translation, synonyms, mask-fill, file or entailment.")
    ] = "back-translation",
    pivot: Annotated[
        list[str] | None,
        typer.Option(
            help="FORWARD,BACKWARD: two models for back-translation, folders or hub names. Give it once or twice."
        ),
    ] = None,
    decoding: Annotated[str | None, typer.Option(help="How translation models decode: beam or sampling.")] = None,
    beams: Annotated[int | None, typer.Option(help="The number of beams.")] = None,
    top_k: Annotated[int | None, typer.Option(help="Sample from this many tokens; 0 for all.")] = None,
    top_p: Annotated[
        float | None, typer.Option(help="Sample from the most likely tokens with this total probability.")
    ] = None,
    model: Annotated[
        str | None, typer.Option(help="For mask-fill: a masked language model, a folder or a hub name.")
    ] = None,
    share: Annotated[
        float | None, typer.Option(help="The share of words (synonyms) or tokens (mask-fill) to replace.")
    ] = None,
    file: Annotated[str | None, typer.Option(help="For file: pairs of originals and their views.")] = None,
    missing: Annotated[
        str | None, typer.Option(help="For originals that are not in that file: refuse or skip.")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="The seed of sampling, synonyms and mask-fill.")] = None,
    cache: Annotated[
        Path | None, typer.Option(help="Where views are cached. By default .sentloom/views beside the output.")
    ] = None,
    shape: ShapeOption = None,
    columns: ColumnsOption = None,
    spreadsheet_safe: SpreadsheetOption = False,
    device: DeviceOption = None,
    precision: PrecisionOption = None,
) -> None:
    """Rewrite every sentence in a second form, and write the pairs. Run the same command again to resume."""
    from sentloom.data.shapes import Shape
    from sentloom.data.writers import check_ending, write
    from sentloom.encoder.device import running_on
    from sentloom.report import data_tables
    from sentloom.writing.views.pairs import make_pairs
    from sentloom.writing.views.settings import parse_pivot, view_settings

    pivots = [parse_pivot(models) for models in pivot] if pivot else None
    choices = {"pivots": pivots, "decoding": decoding, "beams": beams, "top_k": top_k, "top_p": top_p, "model": model}
    choices |= {"share": share, "file": file, "missing": missing, "seed": seed}
    settings = view_settings({"kind": kind, **{name: value for name, value in choices.items() if value is not None}})
    check_ending(output, Shape.PAIRS)  # before the work, which may take hours
    dataset = read(data, shape, columns)
    with resumable(), running_on(device, precision):
        pairs = make_pairs(dataset, settings, cache=cache or output.parent / ".sentloom/views")
    write(pairs, output, spreadsheet_safe)
    show(data_tables.views(pairs), f"written: {output} ({len(pairs):,} pairs)")


def translate(
    data: Data,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="The file of sources and targets: .csv, .tsv, .jsonl or .parquet.")
    ],
    into: Annotated[
        str | None,
        typer.Option(help="The language of the embedded translator: pt (from English) or en (from Portuguese)."),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option("--model", "-m", help="Another translation model, Marian or T5: a folder or a hub name."),
    ] = None,
    beams: Annotated[int | None, typer.Option(min=1, help="The number of beams. By default 5.")] = None,
    prefix: Annotated[
        str, typer.Option(help="Put before each text, as T5 expects: 'translate English to German: '.")
    ] = "",
    column: ColumnOption = None,
    cache: Annotated[
        Path | None, typer.Option(help="Where translations are cached. By default .sentloom/views beside the output.")
    ] = None,
    shape: ShapeOption = None,
    columns: ColumnsOption = None,
    spreadsheet_safe: SpreadsheetOption = False,
    device: DeviceOption = None,
    precision: PrecisionOption = None,
) -> None:
    """Translate every distinct sentence, and write parallel data. Run the same command again to resume."""
    from sentloom.data.columns import only_column, text_column
    from sentloom.data.shapes import Shape
    from sentloom.data.writers import check_ending, write
    from sentloom.encoder.device import running_on
    from sentloom.writing.views.translation import translate as run

    check_ending(output, Shape.PARALLEL)  # before the work, which may take hours
    dataset = read(data, shape, columns, column=column)
    texts = only_column(dataset, text_column(dataset, column))
    views = cache or output.parent / ".sentloom/views"
    with resumable(), running_on(device, precision):
        pairs = run(texts, into=into, model=model, beams=beams, prefix=prefix, cache=views)
    write(pairs, output, spreadsheet_safe)
    first = pairs.take(range(min(SHOWN, len(pairs))))
    show(*(f"{source}  ->  {target}" for source, target in zip(first["source"], first["target"], strict=True)))
    show(*(f"{count:,} {what}" for what, count in pairs.skipped.items()))
    show(f"written: {output} ({len(pairs):,} pairs)")


def corpus(
    step: Annotated[
        Literal["sentences", "translations", "broken-translations"],
        typer.Argument(
            metavar="STEP",
            help="One of sentences (of web pages, such as C4's), translations (English-Chinese pairs, cleaned) and "
            "broken-translations (250 pairs and 750 broken ones, to plot alignment and uniformity).",
        ),
    ],
    data: Data,
    output: Annotated[Path, typer.Option("--output", "-o", help="The file: .txt, .csv, .tsv, .jsonl or .parquet.")],
    columns: ColumnsOption = None,
) -> None:
    """Make the papers' data from public corpora: what lies between a download and a recipe."""
    from sentloom.data.shapes import COLUMNS, Shape
    from sentloom.data.writers import check_ending, write
    from sentloom.lab import corpora
    from sentloom.report import data_tables

    takes, gives = {
        "sentences": (Shape.TEXTS, Shape.TEXTS),
        "translations": (Shape.PARALLEL, Shape.PARALLEL),
        "broken-translations": (Shape.PARALLEL, Shape.SCORED_PAIRS),
    }[step]
    check_ending(output, gives, COLUMNS[gives])
    rows = read(data, takes, columns)
    if step == "sentences":
        made = corpora.sentences(rows)
    elif step == "translations":
        made, unusable, report = corpora.translations(rows)
        show(f"{unusable:,} rows with a tag or too long a word", data_tables.cleaning(report))
    else:
        made = corpora.broken_translations(rows)
    write(made, output)
    show(f"written: {output} ({len(made):,} rows)")
