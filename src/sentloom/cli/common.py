"""What the commands share: options, printing, and opening what a user names."""

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from rich.console import RenderableType
from rich.text import Text

from sentloom.data.layout import UnclearColumns, parse_columns
from sentloom.data.limits import STRICT, Allowance
from sentloom.data.shapes import Shape
from sentloom.encoder.formats.registry import backend_names
from sentloom.fitting.options import OPTIONS
from sentloom.terminal import Terminal

if TYPE_CHECKING:
    from sentloom.data import Dataset
    from sentloom.encoder import Encoder

    BackendName = str
else:
    BackendName = Literal[tuple(backend_names())]

READING = "How files are read"  # a group of options

Data = Annotated[
    str,
    typer.Argument(
        metavar="DATA",
        help="A file, a folder, two files of translations (corpus.en+corpus.de), a hub name, or embedded, the "
        "docstrings of installed packages (embedded/pairs:numpy,pandas).",
    ),
]
ShapeOption = Annotated[
    Shape | None,
    typer.Option(
        "--shape",
        metavar="SHAPE",
        help=OPTIONS["shape"].help,
    ),
]
ColumnsOption = Annotated[
    str | None,
    typer.Option(
        "--columns",
        metavar="ROLE=NAME,...",
        help="Which column is which: 'anchor=title, positive=body'. Use column numbers (anchor=1) if there is no "
        "header.",
    ),
]
SheetOption = Annotated[
    str | None, typer.Option("--sheet", metavar="NAME", help=OPTIONS["sheet"].help, rich_help_panel=READING)
]
EncodingOption = Annotated[
    str | None, typer.Option("--encoding", metavar="NAME", help=OPTIONS["encoding"].help, rich_help_panel=READING)
]
MaxUnusableOption = Annotated[
    str | None,
    typer.Option("--max-unusable", metavar="SHARE", help=OPTIONS["max_unusable"].help, rich_help_panel=READING),
]
MinCountOption = Annotated[
    int, typer.Option("--min-count", metavar="NUMBER", help=OPTIONS["min_count"].help, rich_help_panel=READING)
]
ModelOption = Annotated[
    str, typer.Option("--model", "-m", metavar="MODEL", help="The encoder: embedded, a model folder, or a hub name.")
]
PoolingOption = Annotated[
    str | None,
    typer.Option(
        "--pooling",
        metavar="POOLING",
        help="How token vectors become a sentence vector: mean, first, last, max, mask, decoder-first, mean@0,-1 "
        "... By default the model's own.",
    ),
]
ColumnOption = Annotated[
    str | None, typer.Option("--column", metavar="NAME", help="The text column to use, by its name in the file.")
]
SpreadsheetOption = Annotated[
    bool,
    typer.Option(
        "--spreadsheet-safe",
        help="In csv and tsv files, put ' before cells that a spreadsheet would run as formulas. Changes the data.",
    ),
]
DeviceOption = Annotated[
    str | None,
    typer.Option(
        "--device",
        metavar="NAME",
        help=OPTIONS["device"].help,
    ),
]
PrecisionOption = Annotated[
    Literal["fp32", "bf16"] | None,
    typer.Option("--precision", help="fp32, or bf16: faster on recent GPUs, and less exact. By default fp32."),
]
BackendOption = Annotated[
    BackendName,
    typer.Option(
        "--backend",
        help="What runs the model on a CPU. auto: the fastest that is proven to give the same vectors or, with 8-bit "
        "weights, to lose at most half a point of score; measured once.",
    ),
]
WriterModelOption = Annotated[
    str | None, typer.Option("--writer-model", metavar="NAME", help=OPTIONS["writer_model"].help)
]
MaxTokensOption = Annotated[
    int | None,
    typer.Option("--max-tokens", metavar="NUMBER", min=1, help=OPTIONS["max_tokens"].help),
]

PIPED_WIDTH = 120


def show(*parts: RenderableType) -> None:
    """Print to standard output; if that is not a terminal, and so has no width, in lines of `PIPED_WIDTH`."""
    fits = sys.stdout.isatty() or "COLUMNS" in os.environ
    terminal = Terminal(width=None if fits else PIPED_WIDTH)
    for part in parts:
        terminal.print(part, soft_wrap=isinstance(part, Text) and bool(part.no_wrap))


def unwrapped(line: str) -> Text:
    """A line that stays one in a narrow terminal, so that a command in it can be copied."""
    return Text(line, no_wrap=True)


def is_main_process() -> bool:
    """Whether this process prints: only the first of those that `accelerate launch` or torchrun start does."""
    return os.environ.get("RANK", "0") == "0"


@contextmanager
def resumable() -> Iterator[None]:
    """Print how to resume if the user stops the work."""
    try:
        yield
    except KeyboardInterrupt:
        if is_main_process():
            show("Stopped. Run the same command again to resume.")
        raise


def read(
    name: str,
    shape: Shape | None,
    columns: str | None,
    allow: Allowance = STRICT,
    quoted: bool | None = None,
    keep: Sequence[str] = (),
    column: str | None = None,
    how: Mapping[str, Any] | None = None,
) -> "Dataset":
    """Read data for a command and show what it was taken for.

    If its columns are not recognised, and none were assigned, only the `column` that is used is read, as texts.
    """
    from sentloom.data.corpus.opening import open_data
    from sentloom.data.inputs import named
    from sentloom.report import data_tables

    name = named(name, **(how or {}))
    opened = partial(open_data, name, shape=shape, keep=keep, quoted=quoted, allow=allow)
    try:
        data = opened(columns=parse_columns(columns) if columns else None)
    except UnclearColumns:
        if column is None or shape:
            raise
        data = opened(columns={"text": column})
    show(data_tables.data_summary(name, data))
    return data


def load(
    model: str,
    pooling: str | None,
    device: str | None = None,
    precision: str | None = None,
    backend: str = "torch",
) -> "Encoder":
    """An encoder by name."""
    from sentloom.encoder import Encoder

    return Encoder.load(
        model,
        pooling=pooling,
        device=device,
        precision=precision,  # type: ignore[arg-type]
        backend=backend,
    )
