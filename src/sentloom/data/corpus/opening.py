"""Open data as commands, recipes and Python calls name it: a path, a hub name, the embedded corpus, rows in memory."""

import re
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from sentloom.arguments import typed
from sentloom.data import readers
from sentloom.data.corpus.docstrings import Split, harvest
from sentloom.data.dataset import Dataset
from sentloom.data.in_memory import Data
from sentloom.data.layout import Columns
from sentloom.data.limits import STRICT, Allowance
from sentloom.data.shapes import Shape
from sentloom.errors import InputError, MissingPart

FORM = re.compile(r"embedded(/(?P<kind>texts|pairs)(?P<held_out>/held-out)?)?(:(?P<packages>[\w.,-]+))?")
FORMS = "embedded, embedded/texts or embedded/pairs, optionally followed by /held-out and by :package,package"


@typed
def read(
    data: Data,
    *,
    shape: Shape | str | None = None,
    columns: Columns = None,
    keep: Sequence[str] = (),
    quoted: bool | None = None,
    allow: Allowance = STRICT,
    show_progress: bool = False,
    sheet: str | None = None,
    encoding: str | None = None,
    min_count: int = 0,
    max_unusable: float | None = None,
) -> Dataset:
    """Read data and check every row; a DataError counts all problems and shows the first ten.

    `data` is one of:

    - a file: txt, csv, tsv, jsonl, json (each also .gz), parquet, or a spreadsheet (xlsx, xls, ods);
    - a document: md, html, pdf, docx, or txt with wrapped lines; its rows are passages;
    - a folder of documents, or of data files of one shape, with the folders below it; a folder with a corpus, queries
      and judgements as BEIR has them; or a folder that `save_to_disk` wrote;
    - two text files, `corpus.en+corpus.de` (each also .gz), of which the second translates the first line by line, or
      a zip file of two such files;
    - if there is no such path, a name on the hub: `owner/name[/configuration][@revision][:split]`, by default the
      split `train`;
    - rows in memory: a list of strings, tuples or dicts, a pandas or polars DataFrame, an Arrow table, a
      `datasets.Dataset`. A Dataset is returned as it is;
    - the embedded corpus: `embedded` are sentences in the docstrings of installed packages, `embedded/pairs` names and
      summaries, `embedded/pairs/held-out` the part that is held out, `embedded:numpy,pandas` all of these packages.

    The shape is inferred from the column names (see `layout_of`) unless `shape` or `columns` is given. `columns` maps
    every role of a shape to a column name, or to its number from 1 if there is no header: {"anchor": 1, "positive": 3}.
    It may also be a string, as for the commands: "anchor=1,positive=3".
    Tuples are (text,), (anchor, positive), (anchor, positive, negative, ...), (sentence1, sentence2, score) or
    (premise, hypothesis, label); with `shape`, the columns of that shape in order.

    The columns in `keep` are kept as strings if the data has them; `keep=["*"]` keeps all. `sheet` names a sheet of a
    spreadsheet, `encoding` the encoding of text, which is detected otherwise; pairs of a search log that were clicked
    less often than `min_count` are left out, and `max_unusable` is the share of rows that may be left out. `quoted`
    says whether the cells of tsv files may be in quotes, as in csv files; by default this is detected and noted. Blank
    lines are skipped and counted, and so are NLI rows without a gold label ("-" or -1). Unusable rows are an error
    unless `allow` tolerates some: then they are left out and counted.

    >>> data = read([("Where is the canteen?", "On the ground floor."), ("Is it open?", "From noon on.")])
    >>> len(data), data.shape.value
    (2, 'pairs')
    >>> data[1]
    {'anchor': 'Is it open?', 'positive': 'From noon on.'}
    """
    if isinstance(data, str) and not data.strip():
        raise InputError("data", "the name is empty", "a file, a folder or a hub name", "name one")
    if not isinstance(data, str | Path) or not str(data).startswith("embedded") or Path(data).exists():
        how = {"sheet": sheet, "encoding": encoding, "min_count": min_count, "max_unusable": max_unusable}
        asked = {name: value for name, value in how.items() if value not in (None, 0)}
        return readers.read(
            data,
            shape=shape,
            columns=columns,
            keep=keep,
            quoted=quoted,
            allow=allow,
            show_progress=show_progress,
            **asked,
        )
    form = FORM.fullmatch(str(data))
    if form is None:
        raise InputError("data", f"unknown name {str(data)!r}", FORMS, "correct the name")
    packages = form["packages"].split(",") if form["packages"] else None
    corpus = harvest(
        packages, held_out=packages and (packages if form["held_out"] else []), show_progress=show_progress
    )
    if packages and corpus.missing:
        missing = ", ".join(corpus.missing)
        raise MissingPart(str(data), f"not installed: {missing}", "", f"pip install {' '.join(corpus.missing)}")
    split: Split = "held-out" if form["held_out"] else "train"
    return corpus.pairs(split) if form["kind"] == "pairs" else corpus.texts(split)


open_data = partial(read, show_progress=True)  # as commands and stages do
