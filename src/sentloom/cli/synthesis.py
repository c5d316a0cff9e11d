"""The command that turns raw text into triplets: synthesize."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from sentloom.cli.common import ColumnOption, ColumnsOption, ShapeOption, read, show, text_column
from sentloom.errors import InputError

if TYPE_CHECKING:
    from pydantic import BaseModel

    from sentloom.writing.filters import Filtering
    from sentloom.writing.summary import Summary

Values = TypeVar("Values", bound="BaseModel")


def synthesize(
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="LEDGER", help="The folder for all that is written.")
    ],
    raw: Annotated[
        str | None,
        typer.Argument(metavar="RAW", help="Sentences: a file, a hub name, or embedded. Without it, filter anew."),
    ] = None,
    synthesizer: Annotated[
        str | None, typer.Option(help="The model that writes and judges: a folder or a hub name.")
    ] = None,
    threshold: Annotated[float | None, typer.Option(min=0, max=1, help="The least score to be kept: 0.9.")] = None,
    preset: Annotated[
        str, typer.Option(help="Filters: default, paper (the score alone), official-code (words, substrings).")
    ] = "default",
    words: Annotated[int | None, typer.Option(min=0, help="The least number of a sentence that was written.")] = None,
    source_words: Annotated[int | None, typer.Option(min=0, help="The least number of its source.")] = None,
    substring: Annotated[
        bool | None, typer.Option("--substring/--no-substring", help="Drop what its source holds, or holds it.")
    ] = None,
    drop_equal: Annotated[
        bool | None, typer.Option("--drop-equal/--keep-equal", help="Drop what is equal to its source.")
    ] = None,
    top_p: Annotated[float | None, typer.Option(help="Sample among the likeliest words of this share: 0.9.")] = None,
    top_k: Annotated[int | None, typer.Option(help="Sample among so many words; 0: all. Official code: 50.")] = None,
    temperature: Annotated[float | None, typer.Option(help="Of sampling: 1.0.")] = None,
    greedy: Annotated[bool, typer.Option("--greedy", help="No sampling: always the likeliest word.")] = False,
    candidates: Annotated[int | None, typer.Option(min=1, help="Sentences of each kind for a source: 1.")] = None,
    max_tokens: Annotated[int | None, typer.Option(min=1, help="Of a sentence that is written: 64.")] = None,
    seed: Annotated[int | None, typer.Option(help="Of sampling: 1.")] = None,
    rows: Annotated[int | None, typer.Option(min=1, help="Only the first so many sources; more can follow.")] = None,
    backend: Annotated[str | None, typer.Option(help="transformers, ctranslate2 or ctranslate2-int8.")] = None,
    engine: Annotated[str | None, typer.Option(help="local, or ray for several workers.")] = None,
    workers: Annotated[int | None, typer.Option(min=1, help="How many, with --engine ray.")] = None,
    block: Annotated[int | None, typer.Option(min=1, help="Sources that are kept at a time: 256.")] = None,
    column: ColumnOption = None,
    shape: ShapeOption = None,
    columns: ColumnsOption = None,
) -> None:
    """Write an entailed and a contradicting sentence for each source, judge them, and keep the good ones as triplets.

    Stopped or killed, the same command goes on. Without RAW, what the ledger holds is filtered anew, without a model.
    """
    by = _filtering(
        preset,
        **_given(
            threshold=threshold, words=words, source_words=source_words, substring=substring, drop_equal=drop_equal
        ),
    )
    sampling = _given(
        top_p=top_p, top_k=top_k, temperature=temperature, greedy=greedy or None, candidates=candidates,
        max_tokens=max_tokens, seed=seed,
    )  # fmt: skip
    execution = _given(backend=backend, engine=engine, workers=workers, block=block)
    if raw is None:
        _refuse_idle({"synthesizer": synthesizer} if synthesizer else {}, sampling, execution)
        _tell(_drawn_again(output, by, rows), output)
        return
    from sentloom.data.columns import only_column
    from sentloom.writing.sampling import Sampling
    from sentloom.writing.synthesize import Execution
    from sentloom.writing.synthesize import synthesize as run

    dataset = read(raw, shape, columns)
    texts = only_column(dataset, name) if (name := text_column(dataset, column)) != "text" else dataset
    try:
        summary = run(
            texts,
            synthesizer or "embedded",
            output,
            _checked(Sampling, sampling),
            by,
            _checked(Execution, execution),
            rows=rows,
        )
    except KeyboardInterrupt:
        show("stopped; the same command again goes on from here")
        raise
    _tell(summary, output)


def _given(**values: Any) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def _filtering(preset: str, **changes: Any) -> "Filtering":
    from sentloom.writing.filters import PRESETS

    if preset not in PRESETS:
        raise InputError("--preset", repr(preset), f"one of {', '.join(PRESETS)}", "choose one of these")
    return PRESETS[preset].model_copy(update=changes)


def _checked(model: "type[Values]", values: dict[str, Any]) -> "Values":
    """Options as a model; the first that it refuses is reported."""
    from pydantic import ValidationError

    try:
        return model(**values)
    except ValidationError as error:
        first = error.errors()[0]
        at = ", ".join(map(str, first["loc"])) or "synthesize"
        raise InputError(at, first["msg"], "", "correct it") from None


def _refuse_idle(*given: dict[str, Any]) -> None:
    """Without raw text nothing is written: an option about writing is a misunderstanding."""
    names = [f"--{name.replace('_', '-')}" for some in given for name in some]
    if names:
        fix = "name the raw text too, or leave these out to filter the ledger anew"
        raise InputError("synthesize", f"{', '.join(names)} without RAW", "raw text to write for", fix)


def _drawn_again(ledger: Path, by: "Filtering", rows: int | None) -> "Summary":
    from sentloom.writing.ledger import Ledger
    from sentloom.writing.triplets import draw

    return draw(Ledger.open(ledger), by, rows=rows)


def _tell(summary: "Summary", ledger: Path) -> None:
    from sentloom.report import plots, synthesis_plots, synthesis_tables

    plots.write(synthesis_plots.synthesis(summary), ledger / "summary.png")
    show(*synthesis_tables.synthesis(summary))
    show(f"written: {ledger / 'triplets.parquet'} ({summary.triplets:,} triplets)")
    show(f"         {ledger / 'pairs.parquet'} ({summary.pairs:,} pairs), reasons.parquet, summary.json, summary.png")
