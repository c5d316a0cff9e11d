"""The commands about whole searches: choose and gate."""

from pathlib import Path
from typing import Annotated

import typer

from sentloom.cli.common import DeviceOption, PrecisionOption, resumable, show, unwrapped

SIDE = "A model folder, a .fit folder, a hub name, bm25, MODEL+bm25, https://host/v1#MODEL, or a file of results"


def choose(
    data: Annotated[
        str,
        typer.Argument(
            metavar="DATA",
            help="Pairs, labels, scored pairs, translations, or documents with headings. The rows that a fit on the "
            "same data would test on are left alone.",
        ),
    ],
    models: Annotated[
        list[str],
        typer.Argument(
            metavar="MODEL...",
            help="Encoders: model folders, hub names, names of the catalogue, https://host/v1#MODEL. Words (bm25) are "
            "tried alone and beside each.",
        ),
    ],
    reranker: Annotated[
        str | None,
        typer.Option(metavar="MODEL", help="A cross-encoder to try behind each: reranker, a folder, a hub name."),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="DIR", help="A folder for choose.json, choose.md and choose.png."),
    ] = None,
    device: DeviceOption = None,
    precision: PrecisionOption = None,
) -> None:
    """Find out which of several encoders and searches is best on your data, and at what cost. Nothing is trained.

    Run the same command again to resume: vectors and scores are cached.
    """
    from sentloom.encoder.device import running_on
    from sentloom.report.choice import choice_table, write_choice
    from sentloom.systems.choose import choose as run

    with resumable(), running_on(device, precision):
        choice = run([data], models, show, reranker=reranker)
    show("", choice_table(choice))
    if output:
        write_choice(choice, output)
        show(f"written: {output}")


def gate(
    old: Annotated[str, typer.Argument(metavar="OLD", help=f"What is in use. {SIDE}.")],
    new: Annotated[str, typer.Argument(metavar="NEW", help="What would replace it, of the same kinds.")],
    data: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="DATA",
            help="Pairs, labels, scored pairs or translations that both are tested on. Two .fit folders need none: "
            "they are tested on the test rows of the new one.",
        ),
    ] = None,
    margin: Annotated[
        float, typer.Option(min=0, help="How many points worse the new one may be and still pass.")
    ] = 1.0,
    summary: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Append a summary in Markdown to this file.")
    ] = None,
    device: DeviceOption = None,
    precision: PrecisionOption = None,
) -> None:
    """Check in CI that a new search is not worse than the old one: on the same rows, paired, with intervals.

    Rows that either has trained on are left out, and the use of the rows is counted. The exit code is 0 if the new one
    is better or no worse, 1 if it is worse, 3 if the rows cannot tell, and 2 after an error.
    """
    from sentloom.encoder.device import running_on
    from sentloom.report.gate import gate_markdown, gate_table
    from sentloom.report.tables import write_text
    from sentloom.systems.gate import gate as run

    with resumable(), running_on(device, precision):
        gated = run(old, new, data or [], show, margin=margin)
    show(gate_table(gated), gated.reason)
    if summary:
        earlier = summary.read_text("utf-8") if summary.is_file() else ""
        write_text(summary, earlier + gate_markdown(gated))
    show(unwrapped(gated.line))
    if gated.exit_code:
        raise typer.Exit(gated.exit_code)
