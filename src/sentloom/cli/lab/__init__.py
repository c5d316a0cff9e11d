"""`sentloom lab`: the commands of researchers."""

from collections.abc import Callable

import typer

from sentloom.cli.help_pages import Command, Group
from sentloom.cli.lab import data, models, recipes

app = typer.Typer(cls=Group, no_args_is_help=True)
PANELS: dict[str, tuple[Callable[..., None], ...]] = {
    "Papers and recipes": (recipes.train, recipes.compare, recipes.reproduce, recipes.recipes),
    "Making data": (data.mine, data.synthesize, data.views, data.translate, data.corpus),
    "Models": (models.init_model, models.vocabulary, models.geometry),
}
for panel, verbs in PANELS.items():
    for verb in verbs:
        app.command(cls=Command, rich_help_panel=panel)(verb)


@app.callback()
def _lab() -> None:
    """For researchers: recipes, the tables of five papers, and the parts of `fit` one by one."""
