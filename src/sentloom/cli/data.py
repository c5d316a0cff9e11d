"""The commands about data: check, clean, views, translate."""

import json
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sentloom.cli.common import (
    ColumnOption,
    ColumnsOption,
    Data,
    DeviceOption,
    ModelOption,
    PrecisionOption,
    ShapeOption,
    SpreadsheetOption,
    load,
    read,
    resumable,
    show,
)
from sentloom.errors import MissingPart

if TYPE_CHECKING:
    from sentloom.encoder.tokens import Tokens

FOUND_LEAKS = 1  # the exit code of `check --against` if there are leaks
SHOWN = 5  # translations


def check(
    data: Data,
    against: Annotated[
        list[str] | None,
        typer.Option("--against", help="Evaluation data whose sentences must not be in DATA; repeatable."),
    ] = None,
    shape: ShapeOption = None,
    columns: ColumnsOption = None,
    model: ModelOption = "embedded",
    output: Annotated[Path | None, typer.Option("--output", "-o", help="A JSON file for the findings.")] = None,
) -> None:
    """Report what a data file holds, what is wrong with it, and whether evaluation sentences leak into it.

    The exit code is 2 if the data has errors, and 1 if --against finds evaluation sentences in it.
    """
    from sentloom.files import new_file
    from sentloom.hygiene.inspection import inspect
    from sentloom.hygiene.leaks import find_leaks
    from sentloom.hygiene.token_stats import count_tokens
    from sentloom.report import data_tables

    dataset = read(data, shape, columns)
    evaluation = [read(name, None, None) for name in against or ()]
    tokens = _tokens(model)
    found = inspect(dataset, _lengths(tokens), tokens.max_length) if tokens else inspect(dataset)
    show(data_tables.inspection(found))
    tokenized = count_tokens(dataset, tokens.bare, tokens.tokenizer.unk_token_id) if tokens else []
    show(*(f"{model}: {one}" for one in tokenized))
    if tokens and any(one.many for one in tokenized):
        show(f"! {model} splits this text into many tokens. A larger vocabulary may help: sentloom vocabulary")
    leaks = find_leaks(dataset, evaluation) if evaluation else None
    if leaks:
        show(data_tables.leaks(leaks))
    if output:
        report = {"file": data, "sha256": dataset.sha256, **asdict(found), "tokens": [*map(asdict, tokenized)]}
        if leaks:
            counts = {str(kind): count for kind, count in leaks.counts.items()}
            report["leaks"] = {**counts, "training_rows": len(leaks.training_rows)}
        with new_file(output) as part:
            part.write_text(json.dumps(report, indent=2), "utf-8")
    if leaks and leaks.first:
        raise typer.Exit(FOUND_LEAKS)


def _tokens(model: str) -> "Tokens | None":
    """A model's tokenizer; None if the embedded encoder is not installed, and lengths are in words."""
    try:
        return load(model, None).tokens
    except MissingPart as error:
        show(f"lengths are counted in words: {error}")
        return None


def _lengths(tokens: "Tokens") -> Callable[[list[str]], list[int]]:
    specials = len(tokens.specials.before) + len(tokens.specials.after)
    return lambda texts: [len(ids) + specials for ids in tokens.bare(texts)]


def clean(
    data: Data,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="The file to write: .csv, .tsv, .jsonl, .txt or .parquet.")
    ],
    shape: ShapeOption = None,
    columns: ColumnsOption = None,
    quoted: Annotated[
        bool | None,
        typer.Option(
            "--quoted/--unquoted", help="Whether cells of a tsv file may be in quotes, as in csv. By default detected."
        ),
    ] = None,
    min_words: Annotated[int | None, typer.Option(help="Drop rows with a sentence of fewer words.")] = None,
    max_words: Annotated[int | None, typer.Option(help="Drop rows with a sentence of more words.")] = None,
    length_ratio: Annotated[
        float | None,
        typer.Option(help="Drop rows in which one side has more than this many times the words of the other."),
    ] = None,
    scripts: Annotated[
        str | None,
        typer.Option(help="The script of each text column, as in Latin,Kana+Han. Drop rows mostly in other scripts."),
    ] = None,
    distinct: Annotated[
        str | None, typer.Option(help="A text column in which no sentence may repeat. Drop later rows.")
    ] = None,
    near_duplicates: Annotated[
        float | None, typer.Option(help="Drop rows at least this similar to an earlier one (Jaccard); 0.8 is usual.")
    ] = None,
    spreadsheet_safe: SpreadsheetOption = False,
) -> None:
    """Repair or drop unusable rows, normalise Unicode and white space, drop duplicates, and report what was dropped.

    The exit code is 2 if more than half of the rows are unusable.
    """
    from sentloom.data.limits import CLEANING
    from sentloom.data.writers import write
    from sentloom.hygiene.cleaning import CleanSettings
    from sentloom.hygiene.cleaning import clean as run
    from sentloom.report import data_tables

    settings = CleanSettings(
        min_words=min_words,
        max_words=max_words,
        length_ratio=length_ratio,
        scripts=tuple(scripts.split(",")) if scripts else (),
        distinct=distinct,
        near_duplicates=near_duplicates,
    )
    cleaned, report = run(read(data, shape, columns, CLEANING, quoted), settings)
    write(cleaned, output, spreadsheet_safe, own_names=True)
    show(data_tables.cleaning(report), f"written: {output}")


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
    from sentloom.views.pairs import make_pairs
    from sentloom.views.settings import parse_pivot, view_settings

    pivots = [parse_pivot(one) for one in pivot] if pivot else None
    given = {"pivots": pivots, "decoding": decoding, "beams": beams, "top_k": top_k, "top_p": top_p, "model": model}
    given |= {"share": share, "file": file, "missing": missing, "seed": seed}
    settings = view_settings({"kind": kind, **{name: value for name, value in given.items() if value is not None}})
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
    from sentloom.views.translation import translate as run

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
