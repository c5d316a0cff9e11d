"""Open data as commands, recipes and Python calls name it: a path, a hub name, the embedded corpus, rows in memory."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from sentloom.corpus.docstrings import Split, harvest
from sentloom.data.dataset import Dataset
from sentloom.data.in_memory import Data
from sentloom.data.limits import STRICT, Allowance
from sentloom.data.readers import read
from sentloom.data.shapes import Shape
from sentloom.errors import InputError, MissingPart

FORM = re.compile(r"embedded(/(?P<kind>texts|pairs)(?P<held_out>/held-out)?)?(:(?P<packages>[\w.,-]+))?")
FORMS = "embedded, embedded/texts or embedded/pairs, optionally followed by /held-out and by :package,package"


def open_data(
    name: Data,
    *,
    shape: Shape | None = None,
    columns: Mapping[str, str | int] | None = None,
    keep: Sequence[str] = (),
    quoted: bool | None = None,
    allow: Allowance = STRICT,
) -> Dataset:
    """Read data, or the embedded corpus: `embedded` is sentences of docstrings, `embedded/pairs` names and summaries.

    `embedded/pairs/held-out` is the held-out part; `embedded:numpy,pandas` is all of these packages.
    """
    if not isinstance(name, str | Path) or not str(name).startswith("embedded") or Path(name).exists():
        return read(name, shape=shape, columns=columns, keep=keep, quoted=quoted, allow=allow, show_progress=True)
    form = FORM.fullmatch(str(name))
    if form is None:
        raise InputError("data", f"unknown name {str(name)!r}", FORMS, "correct the name")
    packages = form["packages"].split(",") if form["packages"] else None
    corpus = harvest(packages, held_out=packages and (packages if form["held_out"] else []), show_progress=True)
    if packages and corpus.missing:
        missing = ", ".join(corpus.missing)
        raise MissingPart(str(name), f"not installed: {missing}", "", f"pip install {' '.join(corpus.missing)}")
    split: Split = "held-out" if form["held_out"] else "train"
    return corpus.pairs(split) if form["kind"] == "pairs" else corpus.texts(split)
