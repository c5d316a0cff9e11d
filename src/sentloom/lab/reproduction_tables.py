"""A reproduced table: measured beside published scores, for the terminal and as table.md and table.json."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter
from rich.console import Group, RenderableType
from rich.text import Text

from sentloom import __version__
from sentloom.lab.reproduction import Lack, NotRun, Reproduction
from sentloom.lab.results import Row, refuse_foreign_file, score_text, set_notes
from sentloom.markdown import plain, table
from sentloom.report.tables import Wide
from sentloom.report.text_files import json_text, write_text

JSON, MARKDOWN = FILES = "table.json", "table.md"
TINY = "tiny: small models, few sentences, few steps. These scores say nothing about the paper."


def refuse_foreign_tables(folder: Path) -> None:
    """Never overwrite a table that was not written by `reproduce`."""
    refuse_foreign_file(folder / MARKDOWN, folder / JSON)


def write_reproduction(found: Reproduction, folder: Path) -> None:
    """Write both files."""
    plain_values = {**asdict(found), "quoted": {name: row.model_dump() for name, row in found.quoted.items()}}
    write_text(folder / JSON, json_text({"sentloom": __version__, **plain_values}))
    write_text(folder / MARKDOWN, reproduction_markdown(found))


def read_reproduction(folder: Path) -> Reproduction | None:
    """What this version wrote there before, if anything."""
    if not (folder / JSON).is_file():
        return None
    values = json.loads((folder / JSON).read_text("utf-8"))
    return TypeAdapter(Reproduction).validate_python(values) if values.pop("sentloom") == __version__ else None


def reproduction_table(found: Reproduction) -> RenderableType:
    """For the terminal."""
    sections = [[(label, cells) for label, cells in lines] for lines in _sections(found)]
    shown = Wide(found.title, list(found.sets), sections, "row")
    return Group(shown, *(Text(line) for line in notes(found)))


def reproduction_markdown(found: Reproduction) -> str:
    """As Markdown."""
    lines = [(label, *cells) for section in _sections(found) for label, cells in section]
    parts = [f"# {plain(found.title)}", table(["row", *found.sets], lines)]
    return "\n\n".join([*parts, *(f"- {plain(line)}" for line in notes(found))]) + "\n"


def _sections(found: Reproduction) -> Iterator[Sequence[tuple[str, Sequence[str]]]]:
    """The lines of each row: measured, published, and their difference, unless it is tiny."""
    for name in found.order:
        if name in found.rows:
            row = found.rows[name]
            yield [*_measured(row, found.sets), *([] if found.tiny else _difference(row, found.sets))]
        else:
            yield [(f"{name}, published", _printed(found.not_run[name].published, found.sets))]
    if found.quoted:
        yield [(f"{name}, published", _printed(row.published, found.sets)) for name, row in found.quoted.items()]


def _measured(row: Row, sets: Sequence[str]) -> Iterator[tuple[str, Sequence[str]]]:
    name = f"{row.name} (transductive)" if row.transductive else row.name
    yield name, [_score(row, one) if one in row.after else "" for one in sets]
    if row.published:
        yield "  published", _printed(row.published, sets)


def _score(row: Row, name: str) -> str:
    return score_text(row.after[name], row.deviation[name], unlike=name in row.not_comparable)


def _difference(row: Row, sets: Sequence[str]) -> Iterator[tuple[str, Sequence[str]]]:
    """Of the scores that are comparable with published ones."""
    both = {one: score for one, score in row.published.items() if one in row.after and one not in row.not_comparable}
    away = {one: row.after[one] - score for one, score in both.items()}
    if away:
        yield "  difference", [f"{away[one]:+.2f}" if one in away else "" for one in sets]


def _printed(published: Mapping[str, float], sets: Sequence[str]) -> list[str]:
    return [f"{published[one]:.2f}" if one in published else "" for one in sets]


def notes(found: Reproduction) -> list[str]:
    """What the scores are not, which rows did not run, and what each of them needs."""
    seeds = sorted({row.seeds for row in found.rows.values()} - {1})
    said = [TINY] if found.tiny else []
    if seeds:
        said.append(f"± is the standard deviation over {' or '.join(map(str, seeds))} seeds")
    said += set_notes(found.rows.values())
    said += [
        f"{name}: {made['result']}, in {made['place']}" for name, row in found.rows.items() for made in _written(row)
    ]
    said += [f"{name}: {row.why}" for name, row in found.not_run.items() if row.why]
    said += _missing(found.not_run)
    return [*said, *(f"{name}: cannot be run: {row.why}" for name, row in found.quoted.items())]


def _written(row: Row) -> Sequence[Mapping[str, Any]]:
    """The last stage of a row that is not scored: the data that it wrote."""
    return () if row.after else row.made[-1:]


def _missing(not_run: Mapping[str, NotRun]) -> list[str]:
    """Every part that is not here, once, with the rows that need it."""
    rows: dict[Lack, list[str]] = {}
    for name, row in not_run.items():
        for one in row.lacks:
            rows.setdefault(one, []).append(name)
    return [
        f"not here: {one.what}{f' (from {one.origin})' if one.origin else ''}; {one.fix}. Needed by: {'; '.join(names)}"
        for one, names in rows.items()
    ]
