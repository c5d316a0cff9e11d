"""Argument Facet Similarity: how alike two arguments on one topic are, scored within each of three topics.

Misra et al. 2016, about 2,000 pairs a topic. All pairs are scored without training on any, as for unsupervised models.
"""

import csv
import io
import re
from pathlib import Path

from sentloom.data.cells import CellFault, as_score, as_text
from sentloom.data.shapes import Shape
from sentloom.errors import DataError, InputError, Problem
from sentloom.evaluation.suites.pairs import correlation_task
from sentloom.evaluation.suites.set_source import Rows, SetPart, SetSource, read_part
from sentloom.evaluation.task import Suite, Task

PART = SetPart("AFS", None, ("afs/AFS",))
AUTHORS_FILES = {
    "gun-control": "ArgPairs_GC.csv",
    "gay-marriage": "ArgPairs_GM.csv",
    "death-penalty": "ArgPairs_DP.csv",
}
TOPICS = tuple(AUTHORS_FILES)
COLUMNS = {"score": "regression_label", "sentence1": "sentence_1", "sentence2": "sentence_2"}


def load(name: str, origin: SetSource) -> Task:
    """The task: Pearson's and Spearman's correlation of each topic, and their means over the topics."""
    if name != PART.name:
        raise InputError("afs set", repr(name), PART.name, f"name {PART.name}")
    rows = _authors_rows(origin.folder / "afs") if origin.folder and _is_authors(origin.folder) else _rows(origin)
    return correlation_task(name, rows, rows["topic"], main="pearson-mean", each_group=True)


def _rows(origin: SetSource) -> Rows:
    rows = read_part(PART, origin, Shape.SCORED_PAIRS, keep=("topic",))
    topics = [re.sub(r"[\s_]+", "-", topic.strip().casefold()) for topic in rows.columns.get("topic", ())]
    if set(topics) != set(TOPICS):
        found = f"the topics {', '.join(sorted(set(topics)))}" if topics else "no column topic"
        raise InputError(rows.source, found, f"a column topic with {', '.join(TOPICS)}", "name the topic of each pair")
    return Rows({**rows.columns, "topic": topics}, rows.source, rows.notes)


def _is_authors(folder: Path) -> bool:
    """Whether the folder has the files that the authors give, and none of our form."""
    ours = any((folder / f"{PART.files[0]}{suffix}").is_file() for suffix in (".tsv", ".tsv.gz"))
    return not ours and all((folder / "afs" / file).is_file() for file in AUTHORS_FILES.values())


def _authors_rows(folder: Path) -> Rows:
    columns: dict[str, list[object]] = {"score": [], "sentence1": [], "sentence2": [], "topic": []}
    for topic, file in AUTHORS_FILES.items():
        read = _authors_file(folder / file)
        for name, cells in read.items():
            columns[name] += cells
        columns["topic"] += [topic] * len(read["score"])
    return Rows(columns, str(folder / "ArgPairs_*.csv"))


def _authors_file(file: Path) -> dict[str, list[object]]:
    """The three columns that matter; every broken cell is named by its line."""
    reader = csv.DictReader(io.StringIO(_decoded(file.read_bytes()), newline=""), strict=True)
    if missing := set(COLUMNS.values()) - set(reader.fieldnames or ()):
        raise InputError(str(file), f"no column {', '.join(sorted(missing))}", "the authors' file", "fetch it anew")
    columns: dict[str, list[object]] = {name: [] for name in COLUMNS}
    problems = []
    try:
        for row in reader:
            for name, column in COLUMNS.items():
                try:
                    columns[name].append(as_score(row[column]) if name == "score" else as_text(row[column]))
                except CellFault as fault:
                    found = f"{fault.problem} in column {column!r}"
                    problems.append(Problem(str(file), f"line {reader.line_num}", found, fault.expected))
    except csv.Error as error:
        problems.append(Problem(str(file), f"line {reader.line_num}", str(error), "a csv file"))
    if problems or not columns["score"]:
        empty = Problem(str(file), "", "no rows", "at least one row")
        raise DataError(problems or [empty], len(problems) or 1, "fetch the file anew")
    return columns


def _decoded(content: bytes) -> str:
    """The files are known in two encodings; whatever is not the first is the second."""
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return content.decode("latin-1")


AFS = Suite("afs", (PART.name,), load, ())
