"""The command line: one thin function per command, which parses, calls and prints."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from sentloom import __version__
from sentloom.cli import data, exporting, fitting, jobs, lab, models, scoring, serving, systems, ticking, vectors
from sentloom.cli.common import DeviceOption, ModelOption, PrecisionOption, show
from sentloom.cli.help_pages import Command, Group
from sentloom.errors import SentloomError, disk_error
from sentloom.interrupts import announce_interrupts
from sentloom.terminal import Terminal, print_any_character

MORE = "More"

app = typer.Typer(
    cls=Group,
    help="Turns the text a team has into the sentence encoder it needs, and proves that it got better.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"sentloom {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    pass


# The commands of users, by what they are for; `fit` comes first.
PANELS: dict[str, tuple[Callable[..., None], ...]] = {
    "Fit an encoder, and prove that it is better": (fitting.fit, data.check, scoring.evaluate, ticking.tick),
    "Compare whole searches": (systems.choose, systems.gate),
    "Use an encoder": (vectors.search, jobs.predict, jobs.dedupe, vectors.encode, serving.serve),
    "Convert an encoder": (exporting.export, exporting.shrink),
}
for panel, verbs in PANELS.items():
    for verb in verbs:
        app.command(cls=Command, rich_help_panel=panel)(verb)
app.add_typer(models.app, name="models", rich_help_panel="Use an encoder")
app.add_typer(lab.app, name="lab", rich_help_panel=MORE)


@app.command(cls=Command, rich_help_panel=MORE)
def demo(
    model: ModelOption = "embedded",
    packages: Annotated[
        str | None, typer.Option(metavar="PACKAGE,...", help="Whose docstrings to read. By default all known packages.")
    ] = None,
    held_out: Annotated[
        str | None, typer.Option(metavar="PACKAGE,...", help="Which of them to hold out for testing. By default scipy.")
    ] = None,
    budget: Annotated[
        str, typer.Option(help="For all routes together: a time (2m) or a number of steps (400steps).")
    ] = "4m",
    output: Annotated[Path, typer.Option("--output", "-o", metavar="DIR", help="The output folder.")] = Path("demo"),
    device: DeviceOption = None,
    precision: PrecisionOption = None,
) -> None:
    """Fit, test and search on the docstrings of installed Python packages: needs no data of your own."""
    from sentloom.data.corpus.docstrings import harvest
    from sentloom.demo import run
    from sentloom.encoder.device import running_on
    from sentloom.locks import alone_in

    chosen, apart = (names.split(",") if names else None for names in (packages, held_out))
    with alone_in(output), running_on(device, precision):
        show("Reading the docstrings of the installed packages ...")
        corpus = harvest(chosen, apart, show_progress=True)
        if run(output, model, corpus, budget, show).model is None:
            raise typer.Exit(fitting.NOT_BETTER)


def main() -> None:
    """Run the command. A user's error ends with a message and exit code 2, never with a traceback."""
    announce_interrupts()
    print_any_character()
    try:
        app()
    except SentloomError as error:
        _print_error(str(error))
        sys.exit(error.exit_code)
    except Exception as error:  # a library in Rust raises plain ones when a disk is full
        place = getattr(error, "filename", None)
        on_disk = disk_error(error, place or "disk")
        if on_disk is None and not isinstance(error, OSError):
            raise
        what = f"{f'{place}: ' if place else ''}{getattr(error, 'strerror', None) or error}"
        _print_error(str(on_disk or f"{what}\nCheck the path, its permissions and the space on the disk."))
        sys.exit(SentloomError.exit_code)


def _print_error(text: str) -> None:
    Terminal(stderr=True).print(f"error: {text}", style="red", soft_wrap=True)
