"""The command `check`."""

import json
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sentloom.cli.common import (
    ColumnsOption,
    Data,
    EncodingOption,
    MaxUnusableOption,
    MinCountOption,
    ModelOption,
    ShapeOption,
    SheetOption,
    SpreadsheetOption,
    load,
    read,
    show,
)
from sentloom.errors import InputError, MissingPart

if TYPE_CHECKING:
    from sentloom.data import Dataset
    from sentloom.data.hygiene.cleaning import CleanSettings
    from sentloom.data.hygiene.leaks import Leaks
    from sentloom.encoder.tokens import Tokens

FOUND_LEAKS = 1  # the exit code if there are leaks
REPAIRS = "What is repaired or dropped in FIXED"


def check(
    data: Data,
    against: Annotated[
        list[str] | None,
        typer.Option("--against", help="Evaluation data whose sentences must not be in DATA; repeatable."),
    ] = None,
    shape: ShapeOption = None,
    columns: ColumnsOption = None,
    quoted: Annotated[
        bool | None,
        typer.Option(
            "--quoted/--unquoted", help="Whether cells of a tsv file may be in quotes, as in csv. By default detected."
        ),
    ] = None,
    model: ModelOption = "embedded",
    findings: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", help="A JSON file for the findings.")
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FIXED",
            help="Write a repaired copy: .csv, .tsv, .jsonl, .txt or .parquet. Unusable rows are repaired or dropped, "
            "Unicode and white space normalised, duplicates dropped; then the copy is checked.",
        ),
    ] = None,
    min_words: Annotated[
        int | None, typer.Option(help="Drop rows with a sentence of fewer words.", rich_help_panel=REPAIRS)
    ] = None,
    max_words: Annotated[
        int | None, typer.Option(help="Drop rows with a sentence of more words.", rich_help_panel=REPAIRS)
    ] = None,
    length_ratio: Annotated[
        float | None,
        typer.Option(
            help="Drop rows in which one side has more than this many times the words of the other.",
            rich_help_panel=REPAIRS,
        ),
    ] = None,
    scripts: Annotated[
        str | None,
        typer.Option(
            help="The script of each text column, as in Latin,Kana+Han. Drop rows mostly in other scripts.",
            rich_help_panel=REPAIRS,
        ),
    ] = None,
    distinct: Annotated[
        str | None,
        typer.Option(help="A text column in which no sentence may repeat. Drop later rows.", rich_help_panel=REPAIRS),
    ] = None,
    near_duplicates: Annotated[
        float | None,
        typer.Option(
            help="Drop rows at least this similar to an earlier one (Jaccard); 0.8 is usual.", rich_help_panel=REPAIRS
        ),
    ] = None,
    spreadsheet_safe: SpreadsheetOption = False,
    sheet: SheetOption = None,
    encoding: EncodingOption = None,
    min_count: MinCountOption = 0,
    max_unusable: MaxUnusableOption = None,
) -> None:
    """Report what a data file holds, what is wrong with it, and whether test sentences are in it; or repair a copy.

    The exit code is 2 if the data has errors (with -o, if more than half of its rows are unusable, and more than ten),
    and 1 if --against finds evaluation sentences in it.
    """
    from sentloom.data.hygiene.cleaning import CleanSettings
    from sentloom.data.hygiene.inspection import count_tokens, inspect
    from sentloom.data.hygiene.leaks import find_leaks
    from sentloom.data.layout import EVERY
    from sentloom.data.limits import CLEANING
    from sentloom.report import data_tables

    settings = CleanSettings(
        min_words=min_words,
        max_words=max_words,
        length_ratio=length_ratio,
        scripts=tuple(scripts.split(",")) if scripts else (),
        distinct=distinct,
        near_duplicates=near_duplicates,
    )
    how = {"sheet": sheet, "encoding": encoding, "min_count": min_count, "max_unusable": max_unusable}
    if output:
        rows = read(data, shape, columns, CLEANING, quoted, EVERY, how=how)
        dataset = _fixed(rows, settings, output, spreadsheet_safe)
    else:
        _refuse_repairs(settings, spreadsheet_safe)
        dataset = read(data, shape, columns, quoted=quoted, how=how)
    evaluation = [read(name, None, None) for name in against or ()]
    tokens = _tokens(model)
    inspected = inspect(dataset, _lengths(tokens), tokens.max_length) if tokens else inspect(dataset)
    show(data_tables.inspection(inspected))
    tokenized = count_tokens(dataset, tokens.bare, tokens.tokenizer.unk_token_id) if tokens else []
    show(*(f"{model}: {column}" for column in tokenized))
    if tokens and any(column.many for column in tokenized):
        show(f"! {model} splits this text into many tokens. A larger vocabulary may help: sentloom lab vocabulary")
    leaks = find_leaks(dataset, evaluation) if evaluation else None
    if leaks:
        show(data_tables.leaks(leaks))
    if findings:
        report = {"file": data, "sha256": dataset.sha256, **asdict(inspected), "tokens": [*map(asdict, tokenized)]}
        report |= {"lost": dataset.lost, "unread": dict(dataset.unread)}
        _write_findings(findings, report, leaks)
    if leaks and leaks.first:
        raise typer.Exit(FOUND_LEAKS)


def _fixed(data: "Dataset", settings: "CleanSettings", output: Path, spreadsheet_safe: bool) -> "Dataset":
    """Write the repaired copy, and say what was done."""
    from sentloom.data.hygiene.cleaning import clean
    from sentloom.data.writers import write
    from sentloom.report import data_tables

    cleaned, report = clean(data, settings)
    write(cleaned, output, spreadsheet_safe, own_names=True)
    show(data_tables.cleaning(report), f"written: {output}", "", f"What {output} holds:")
    return cleaned


def _refuse_repairs(settings: "CleanSettings", spreadsheet_safe: bool) -> None:
    """Refuse options that do nothing without a file to write."""
    default = type(settings)()
    names = [name for name, value in vars(settings).items() if value != getattr(default, name)]
    names += ["spreadsheet_safe"] if spreadsheet_safe else []
    if names:
        options = " and ".join(f"--{name.replace('_', '-')}" for name in names)
        problem = "without a file to write, nothing is repaired or dropped"
        raise InputError(options, problem, "-o FIXED beside it", "add -o FIXED, or leave it out")


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


def _write_findings(path: Path, report: dict[str, object], leaks: "Leaks | None") -> None:
    from sentloom.files import new_file

    if leaks:
        counts = {str(kind): count for kind, count in leaks.counts.items()}
        report["leaks"] = {**counts, "training_rows": len(leaks.training_rows)}
    with new_file(path) as part:
        part.write_text(json.dumps(report, indent=2), "utf-8")
