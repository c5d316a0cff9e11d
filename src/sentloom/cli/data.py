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
    ModelOption,
    ShapeOption,
    SpreadsheetOption,
    load,
    read,
    show,
    text_column,
)
from sentloom.errors import MissingPart

if TYPE_CHECKING:
    from sentloom.encoder.tokens import Tokens

FOUND_LEAKS = 1  # exit code of `check --against` when there are leaks
SHOWN = 5  # translations


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

    Exit code 2: the data has faults. Exit code 1: with --against, evaluation sentences are in it.
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
    pieces = count_tokens(dataset, tokens.bare, tokens.tokenizer.unk_token_id) if tokens else []
    show(*(f"{model}: {one}" for one in pieces))
    if tokens and any(one.many for one in pieces):
        show(f"! {model} breaks this text to pieces; it may learn more from it with a vocabulary: sentloom vocabulary")
    leaks = find_leaks(dataset, evaluation) if evaluation else None
    if leaks:
        show(data_tables.leaks(leaks))
    if output:
        with new_file(output) as part:
            report = {"file": data, "sha256": dataset.sha256, **asdict(found), "pieces": [*map(asdict, pieces)]}
            if leaks:
                counts = {str(kind): count for kind, count in leaks.counts.items()}
                report["leaks"] = {**counts, "training rows": len(leaks.training_rows)}
            part.write_text(json.dumps(report, indent=2), "utf-8")
    if leaks and leaks.kept:
        raise typer.Exit(FOUND_LEAKS)


def _tokens(model: str) -> "Tokens | None":
    """A model's tokenizer; without the embedded part none, and lengths are in words."""
    try:
        return load(model, None).tokens
    except MissingPart as error:
        show(f"lengths are in words: {error}")
        return None


def _lengths(tokens: "Tokens") -> Callable[[list[str]], list[int]]:
    specials = len(tokens.specials.before) + len(tokens.specials.behind)
    return lambda texts: [len(ids) + specials for ids in tokens.bare(texts)]


def clean(
    data: Data,
    output: Annotated[Path, typer.Option("--output", "-o", help="The file to write: csv, tsv, jsonl, txt, parquet.")],
    shape: ShapeOption = None,
    columns: ColumnsOption = None,
    quoted: Annotated[
        bool | None,
        typer.Option("--quoted/--unquoted", help="tsv: whether cells may be in quotes, as in csv; else recognised."),
    ] = None,
    min_words: Annotated[int | None, typer.Option(help="Drop rows with a shorter sentence.")] = None,
    max_words: Annotated[int | None, typer.Option(help="Drop rows with a longer sentence.")] = None,
    length_ratio: Annotated[
        float | None, typer.Option(help="Two sides: drop rows where one has so many times the words of the other.")
    ] = None,
    scripts: Annotated[
        str | None, typer.Option(help="One a text column: Latin,Kana+Han: drop rows mostly in other letters.")
    ] = None,
    distinct: Annotated[
        str | None, typer.Option(help="A text column: drop rows whose sentence there came before.")
    ] = None,
    near_duplicates: Annotated[
        float | None, typer.Option(help="Drop rows this close to an earlier one, such as 0.8.")
    ] = None,
    spreadsheet_safe: SpreadsheetOption = False,
) -> None:
    """Repair or drop unusable rows, normalise Unicode and white space, drop duplicates, and say what was dropped.

    Exit code 2 if more than half of the rows cannot be used.
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
    write(cleaned, output, spreadsheet_safe)
    show(data_tables.cleaning(report), f"written: {output}")


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
    spreadsheet_safe: SpreadsheetOption = False,
) -> None:
    """Give every sentence a second form, and write the pairs. Stopped or killed, the same command goes on."""
    from sentloom.data.shapes import Shape
    from sentloom.data.writers import check_ending, write
    from sentloom.report import data_tables
    from sentloom.views import make_pairs, view_settings
    from sentloom.views.settings import parse_pivot

    pivots = [parse_pivot(one) for one in pivot] if pivot else None
    given = {"pivots": pivots, "decoding": decoding, "beams": beams, "top_k": top_k, "top_p": top_p, "model": model}
    given |= {"share": share, "file": file, "missing": missing, "seed": seed}
    settings = view_settings({"kind": kind, **{name: value for name, value in given.items() if value is not None}})
    check_ending(output, Shape.PAIRS)  # before the work, which may take hours
    dataset = read(data, shape, columns)
    try:
        pairs = make_pairs(dataset, settings, cache=cache or output.parent / ".sentloom/views")
    except KeyboardInterrupt:
        show("stopped; the same command again goes on from here")
        raise
    write(pairs, output, spreadsheet_safe)
    show(data_tables.views(pairs), f"written: {output} ({len(pairs):,} pairs)")


def translate(
    data: Data,
    output: Annotated[Path, typer.Option("--output", "-o", help="Sources and targets: csv, tsv, jsonl, parquet.")],
    into: Annotated[
        str | None, typer.Option(help="With the embedded translator: pt (from English) or en (from Portuguese).")
    ] = None,
    model: Annotated[
        str | None, typer.Option("--model", "-m", help="A translation model instead, Marian or T5: folder or hub name.")
    ] = None,
    beams: Annotated[int | None, typer.Option(min=1, help="Of the model's search; by default 5.")] = None,
    prefix: Annotated[
        str, typer.Option(help="Put before each text, as T5 wants: 'translate English to German: '.")
    ] = "",
    column: ColumnOption = None,
    cache: Annotated[
        Path | None, typer.Option(help="Where translations are kept; by default .sentloom/views beside the output.")
    ] = None,
    shape: ShapeOption = None,
    columns: ColumnsOption = None,
    spreadsheet_safe: SpreadsheetOption = False,
) -> None:
    """Translate every distinct sentence, and write parallel data. Stopped or killed, the same command goes on."""
    from sentloom.data.columns import only_column
    from sentloom.data.shapes import Shape
    from sentloom.data.writers import check_ending, write
    from sentloom.views.translation import translate as run

    check_ending(output, Shape.PARALLEL)  # before the work, which may take hours
    dataset = read(data, shape, columns)
    texts = only_column(dataset, text_column(dataset, column))
    kept = cache or output.parent / ".sentloom/views"
    try:
        pairs = run(texts, into=into, model=model, beams=beams, prefix=prefix, cache=kept)
    except KeyboardInterrupt:
        show("stopped; the same command again goes on from here")
        raise
    write(pairs, output, spreadsheet_safe)
    first = pairs.take(range(min(SHOWN, len(pairs))))
    show(*(f"{source}  ->  {target}" for source, target in zip(first["source"], first["target"], strict=True)))
    show(*(f"{count:,} {what}" for what, count in pairs.skipped.items()))
    show(f"written: {output} ({len(pairs):,} pairs)")
