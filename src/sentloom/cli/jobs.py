"""The commands `predict` and `dedupe`: what a model was fitted for."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sentloom.cli.common import (
    BackendOption,
    ColumnOption,
    DeviceOption,
    EncodingOption,
    PrecisionOption,
    SheetOption,
    SpreadsheetOption,
    load,
    read,
    resumable,
    show,
)

if TYPE_CHECKING:
    from sentloom.classify.classifier import Prediction

Model = Annotated[str, typer.Argument(metavar="MODEL", help="The model folder.")]
Rows = Annotated[str, typer.Argument(metavar="DATA", help="The file with the texts: .csv, .tsv, .jsonl, .xlsx ...")]
SHOWN_LABELS = 8


def predict(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="A model that was fitted to texts with labels.")],
    data: Rows,
    output: Annotated[
        Path,
        typer.Option("--output", "-o", metavar="FILE", help="The file to write: .csv, .tsv, .jsonl or .parquet."),
    ],
    examples: Annotated[
        str | None,
        typer.Option(
            "--examples",
            metavar="DATA",
            help="Labelled texts to learn from first, without a new fit: five of a new label are enough.",
        ),
    ] = None,
    column: ColumnOption = None,
    device: DeviceOption = None,
    precision: PrecisionOption = None,
    backend: BackendOption = "torch",
    spreadsheet_safe: SpreadsheetOption = False,
    sheet: SheetOption = None,
    encoding: EncodingOption = None,
) -> None:
    """Add a label to every row of a file, with its probability and whether to leave the row to people.

    All rows and columns stay as they are, in the same order. Run the same command again to resume.
    """
    from sentloom.api.predicting import Predictor, cached_encode
    from sentloom.classify.classifier import load as load_classifiers
    from sentloom.data.as_it_is import read_as_it_is
    from sentloom.data.inputs import named
    from sentloom.data.shapes import Shape
    from sentloom.data.writers import check_ending, write
    from sentloom.encoder.locate import locate

    check_ending(output, Shape.TEXTS, ("text", "label"))
    usual = [own.text_column for own in load_classifiers(locate(model))]  # before PyTorch, which takes seconds
    rows = read_as_it_is(named(data, sheet=sheet, encoding=encoding), column, usual)
    more = read(examples, None, None) if examples else None
    encoder = load(model, None, device, precision, backend)
    predictor = Predictor(encoder, load_classifiers(locate(model), encoder.dimension))
    predictor = predictor.with_examples(more) if more else predictor
    with resumable():
        answers = [*predictor.answers(rows.texts, cached_encode(encoder))]
    by_column = dict(zip([own.column for own in predictor.classifiers], zip(*answers, strict=True), strict=True))
    columns = {name: cells for own, said in by_column.items() for name, cells in _columns(own, said, len(by_column))}
    write(rows.with_columns(columns), output, spreadsheet_safe)
    for name, said in by_column.items():
        show(_summary(name, said))
    show(f"written: {output} ({len(answers):,} rows)")


def _columns(name: str, said: Sequence["Prediction"], count: int) -> list[tuple[str, list[object]]]:
    """The columns that are added; with several label columns, each by its name."""
    names = ("label", "probability", "abstain") if count == 1 else (name, f"{name}_probability", f"{name}_abstain")
    cells: zip[tuple[object, ...]] = zip(*((own.label, own.probability, own.abstain) for own in said), strict=True)
    return [(added, [*column]) for added, column in zip(names, cells, strict=True)]


def _summary(name: str, said: Sequence["Prediction"]) -> str:
    left = sum(answer.abstain for answer in said)
    counts = Counter(answer.label for answer in said).most_common()
    shown = ", ".join(f"{label} {count:,}" for label, count in counts[:SHOWN_LABELS])
    more = f" and {len(counts) - SHOWN_LABELS:,} more" if len(counts) > SHOWN_LABELS else ""
    return f"{name}: {shown}{more}; {left:,} of {len(said):,} are left to people ({left / len(said):.0%})"


def dedupe(
    model: Model,
    data: Rows,
    output: Annotated[
        Path,
        typer.Option("--output", "-o", metavar="FILE", help="The file to write: .csv, .tsv, .jsonl or .parquet."),
    ],
    threshold: Annotated[
        float | None,
        typer.Option(
            "--threshold",
            metavar="COSINE",
            min=0.0,
            max=1.0,
            help="How similar two texts must be. By default what the fit of the model proved.",
        ),
    ] = None,
    column: ColumnOption = None,
    device: DeviceOption = None,
    precision: PrecisionOption = None,
    backend: BackendOption = "torch",
    spreadsheet_safe: SpreadsheetOption = False,
    sheet: SheetOption = None,
    encoding: EncodingOption = None,
) -> None:
    """Find groups of rows whose texts mean the same, each with a representative.

    The rows that have duplicates are written with all their columns, group by group, the representative first. Run the
    same command again to resume.
    """
    from sentloom.api.duplicates import find_duplicates, proven_threshold
    from sentloom.data.as_it_is import read_as_it_is
    from sentloom.data.inputs import named
    from sentloom.data.shapes import Shape
    from sentloom.data.writers import check_ending, write

    check_ending(output, Shape.TEXTS, ("text", "group"))
    cosine = proven_threshold(model) if threshold is None else threshold
    rows = read_as_it_is(named(data, sheet=sheet, encoding=encoding), column)
    encoder = load(model, None, device, precision, backend)
    with resumable():
        duplicates = find_duplicates(encoder, rows, cosine, output)
    columns = {
        "group": duplicates.groups.tolist(),
        "representative": duplicates.is_representative.tolist(),
        "cosine": [round(value, 4) for value in duplicates.cosines.tolist()],
    }
    write(rows.take(duplicates.rows).with_columns(columns), output, spreadsheet_safe)
    share = f"; {duplicates.recall:.1%} of the pairs of a sample were found" if duplicates.recall is not None else ""
    among = f"{len(duplicates.rows):,} of {len(rows.table):,} rows from a cosine of {cosine:.2f} on"
    show(f"{duplicates.count:,} groups, {among}{share}", f"written: {output}")
