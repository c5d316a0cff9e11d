"""What the commands share: options, printing, and opening what a user names."""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import RenderableType

from sentloom.data.limits import STRICT, Allowance
from sentloom.data.shapes import Shape, parse_columns
from sentloom.errors import InputError
from sentloom.terminal import Terminal

if TYPE_CHECKING:
    from accelerate import Accelerator

    from sentloom.data import Dataset
    from sentloom.encoder import Encoder

Data = Annotated[
    str,
    typer.Argument(
        metavar="DATA",
        help="A file, corpus.en+corpus.de, a folder, a hub name, or embedded, as in embedded/pairs:numpy,pandas.",
    ),
]
ShapeOption = Annotated[Shape | None, typer.Option("--shape", help="What a row is, where the columns do not say it.")]
ColumnsOption = Annotated[
    str | None, typer.Option("--columns", help="role=column,...: anchor=title,positive=body; numbers if no header.")
]
ModelOption = Annotated[str, typer.Option("--model", "-m", help="embedded, a model folder, or a hub name.")]
PoolingOption = Annotated[
    str | None, typer.Option("--pooling", help="mean, first, max, first-last, decoder-first, mean@0,-1 ...")
]
ColumnOption = Annotated[str | None, typer.Option("--column", help="Which text column, where there are several.")]
SpreadsheetOption = Annotated[
    bool,
    typer.Option(
        "--spreadsheet-safe",
        help="csv and tsv: put ' before cells that a spreadsheet would run as a formula. This alters the data.",
    ),
]

PIPED_WIDTH = 120


def show(*parts: RenderableType) -> None:
    """Print to standard output; where that is no terminal, and so has no width, in lines of `PIPED_WIDTH`."""
    fits = sys.stdout.isatty() or "COLUMNS" in os.environ
    terminal = Terminal(width=None if fits else PIPED_WIDTH)
    for part in parts:
        terminal.print(part)


def read(
    name: str, shape: Shape | None, columns: str | None, allow: Allowance = STRICT, quoted: bool | None = None
) -> "Dataset":
    """Read data for a command and say what it was taken for."""
    from sentloom.corpus.opening import open_data
    from sentloom.report import data_tables

    parsed = parse_columns(columns) if columns else None
    data = open_data(name, shape=shape, columns=parsed, allow=allow, quoted=quoted)
    show(data_tables.data_summary(name, data))
    return data


def load(model: str, pooling: str | None) -> "Encoder":
    """An encoder by name."""
    from sentloom.encoder import Encoder

    return Encoder.load(model, pooling=pooling)


def text_column(data: "Dataset", asked: str | None) -> str:
    """The one text column, or the one that was asked for."""
    from sentloom.data.shapes import text_columns

    names = [name for name in text_columns(data.shape) if name != "negatives"]
    if asked is None and len(names) == 1:
        return names[0]
    if asked not in names:
        found = f"--column {asked}" if asked else f"{data.shape}, with the text columns {', '.join(names)}"
        raise InputError("column", found, f"one of {', '.join(names)}", f"say --column {names[0]}")
    return asked


@contextmanager
def working_in(folder: Path, accelerator: "Accelerator", log: Callable[[str], None]) -> Iterator[None]:
    """Hold a folder while something trains in it; who stops that is told how to go on."""
    from sentloom.locks import alone_in

    try:
        with alone_in(folder) if accelerator.is_main_process else nullcontext():
            yield
    except KeyboardInterrupt:
        log("stopped; the same command again goes on from here")
        raise
    finally:
        accelerator.end_training()
