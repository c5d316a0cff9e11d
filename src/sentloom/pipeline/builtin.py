"""The recipes that come with the package, by name; `PAPER/TABLE` is a table or a figure of a paper."""

import re
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path

from sentloom.errors import InputError
from sentloom.pipeline.yaml_source import one_of

SPEED = ("self-guided/table-6", "sentence-t5/figure-5")  # tables of seconds, not of scores
MEASURED_BY = "python -m benchmarks.paper_speed"


def shipped() -> dict[str, Path]:
    """Every recipe in the package's folder `recipes`, by its path there without the ending; table 2 before table 10."""
    folder = Path(str(files("sentloom"))) / "recipes"
    found = {path.relative_to(folder).with_suffix("").as_posix(): path for path in folder.rglob("*.yaml")}
    return {name: found[name] for name in sorted(found, key=_by_number)}


def _by_number(name: str) -> list[tuple[str, int]]:
    return [(text, int(number or 0)) for text, number in re.findall(r"(\D+)(\d*)", name)]


def find_recipe(name: str) -> Path:
    """A recipe's file: a path, or the name of one that is shipped."""
    if Path(name).is_file():
        return Path(name)
    known = shipped()
    if name not in known:
        found = "there is no such file, and no built-in recipe of that name"
        raise InputError(
            name, found, one_of(name, known, "a file, or "), "list the built-in recipes with `sentloom recipes`"
        )
    return known[name]


def find_tables(names: Sequence[str]) -> dict[str, Path]:
    """Tables and figures by their names `PAPER/TABLE`; the name of a paper stands for all of its own."""
    known = {one: path for one, path in shipped().items() if "/" in one}
    found: dict[str, Path] = {}
    for name in names:
        chosen = {one: path for one, path in known.items() if name in (one, one.partition("/")[0])}
        if name in SPEED:
            problem, fix = "it shows speed, which depends on the machine", f"measure yours: `{MEASURED_BY}`"
            raise InputError(name, problem, "a table of scores", fix)
        if name in shipped() and not chosen:
            raise InputError(name, "it is no table of a paper", "PAPER/TABLE", f"run it with `sentloom train {name}`")
        if not chosen:
            papers = dict.fromkeys(one.partition("/")[0] for one in known)
            expected = one_of(name, known, f"a paper ({', '.join(papers)}) or a table, ")
            raise InputError(name, "there is no such table", expected, "list the tables with `sentloom recipes`")
        found |= chosen
    return found
