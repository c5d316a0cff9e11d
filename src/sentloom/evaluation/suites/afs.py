"""Argument Facet Similarity: the similarity of two arguments on a topic, scored within each of three topics.

Misra et al. 2016, about 2,000 pairs per topic. All pairs are scored without training, as for unsupervised models.
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
    """Build the task: Pearson and Spearman correlations of each topic, and their means over topics."""
    rows = _authors_rows(origin.folder / "afs") if origin.folder and _is_authors(origin.folder) else _rows(origin)
    return correlation_task(name, rows, rows["topic"], main="pearson-mean", each_group=True)


def _rows(origin: SetSource) -> Rows:
    rows = read_part(PART, origin, Shape.SCORED_PAIRS, keep=("topic",))
    topics = [re.sub(r"[\s_]+", "-", topic.strip().casefold()) for topic in rows.columns.get("topic", ())]
    if set(topics) != set(TOPICS):
        problem = f"the topics are {', '.join(sorted(set(topics)))}" if topics else "there is no column topic"
        expected = f"a column topic with {', '.join(TOPICS)}"
        raise InputError(rows.source, problem, expected, "add the topic of each pair")
    return Rows({**rows.columns, "topic": topics}, rows.source, rows.notes)


def _is_authors(folder: Path) -> bool:
    """Whether the folder has the authors' files and none in our format."""
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
    """Read the three relevant columns; invalid cells are reported by line."""
    reader = csv.DictReader(io.StringIO(_decoded(file.read_bytes()), newline=""), strict=True)
    if missing := set(COLUMNS.values()) - set(reader.fieldnames or ()):
        problem = f"there is no column {', '.join(sorted(missing))}"
        raise InputError(str(file), problem, "the authors' file", "download it again")
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
        empty = Problem(str(file), "", "there are no rows", "at least one row")
        raise DataError(problems or [empty], len(problems) or 1, "download the file again")
    return columns


def _decoded(content: bytes) -> str:
    """Decode as UTF-8 or else latin-1, the two encodings in which these files exist."""
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return content.decode("latin-1")


AFS = Suite("afs", (PART.name,), load, ())
