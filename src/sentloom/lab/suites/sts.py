"""Semantic textual similarity: the correlation of cosines with human scores, under three aggregations.

`spearman` is one correlation over all sub-sets of a set: "all" (SBERT, SimCSE, Sentence-T5, GenSE). `spearman-mean` and
`spearman-wmean` average the correlations of the sub-sets, unweighted or weighted by pairs (SentEval; BERT-flow and
BERT-whitening report the latter). STS-B and SICK-R are scored as a whole, by cosine only: the three are equal.

Alignment and uniformity of a set are measures of their own, as in the figures of Sentence-T5 and GenSE (the reference
variant of `evaluation.geometry`); lower is better.

AFS, the similarity of arguments on three topics, is a suite of its own: correlations per topic, and their means. It is
read from our own format or from the authors' three files.
"""

import csv
import io
import re
from functools import partial
from pathlib import Path

import numpy as np

from sentloom.data.cells import CellFault, as_score, as_text
from sentloom.data.shapes import Shape
from sentloom.errors import DataError, InputError, Problem
from sentloom.evaluation.geometry import geometry, scored_pairs
from sentloom.evaluation.pairs import correlation_task
from sentloom.evaluation.set_source import Rows, SetPart, SetSource, check, read_part
from sentloom.evaluation.task import Kind, Lookup, Score, Scores, Suite, Task, TaskSettings
from sentloom.lab.suites.senteval_folder import read_any
from sentloom.lab.suites.set_tables import read_table

TABLE = read_table("sts")
STS_PARTS = TABLE.parts
SETS = tuple(name for name in STS_PARTS if name != "STS-B/dev")
WHOLE = ("STS-B", "STS-B/dev", "SICK-R")  # scored as a whole in all papers, even if rows name a genre
DEV = tuple(name for name in STS_PARTS if name not in SETS)
GEOMETRY = ("alignment", "uniformity")

AFS_PART = SetPart("AFS", None, ("afs/AFS",))
AFS_FILES = {  # of the authors
    "gun-control": "ArgPairs_GC.csv",
    "gay-marriage": "ArgPairs_GM.csv",
    "death-penalty": "ArgPairs_DP.csv",
}
AFS_TOPICS = tuple(AFS_FILES)
AFS_COLUMNS = {"score": "regression_label", "sentence1": "sentence_1", "sentence2": "sentence_2"}


def load(name: str, origin: SetSource) -> Task:
    """Build the task of a set. Copies without a column `subset`, such as the hub's, have no `mean` and `wmean`."""
    rows = _read(name, origin, keep=("subset",))
    subsets = [name] * len(rows) if name in WHOLE else rows.columns.get("subset")
    return correlation_task(name, rows, subsets)


def load_geometry(main: str, name: str, origin: SetSource) -> Task:
    """Build the task of measuring the geometry of a set's sentences."""
    rows = _read(name, origin)
    pairs = scored_pairs(rows)

    def score(lookup: Lookup) -> Scores:
        measured = geometry(lookup, pairs)
        # A score is shown times 100, and these are not percentages.
        return {measure: Score("mean", np.array([[getattr(measured, measure) / 100]])) for measure in GEOMETRY}

    texts = [*rows["sentence1"], *rows["sentence2"]]
    return Task(
        name, main, {"symmetric": texts}, score, rows.source, rows.sha256, TaskSettings(Kind.GEOMETRY), rows.notes
    )


def _read(name: str, origin: SetSource, keep: tuple[str, ...] = ()) -> Rows:
    part = STS_PARTS[name]
    return check(read_any(part, origin, Shape.SCORED_PAIRS, keep=keep), part, origin)


def load_afs(name: str, origin: SetSource) -> Task:
    """Build the task of AFS: Pearson and Spearman correlations of each topic, and their means over topics."""
    rows = _authors_rows(origin.folder / "afs") if origin.folder and _is_authors(origin.folder) else _afs_rows(origin)
    return correlation_task(name, rows, rows["topic"], main="pearson-mean", each_group=True)


def _afs_rows(origin: SetSource) -> Rows:
    rows = read_part(AFS_PART, origin, Shape.SCORED_PAIRS, keep=("topic",))
    topics = [re.sub(r"[\s_]+", "-", topic.strip().casefold()) for topic in rows.columns.get("topic", ())]
    if set(topics) != set(AFS_TOPICS):
        problem = f"the topics are {', '.join(sorted(set(topics)))}" if topics else "there is no column topic"
        expected = f"a column topic with {', '.join(AFS_TOPICS)}"
        raise InputError(rows.source, problem, expected, "add the topic of each pair")
    return Rows({**rows.columns, "topic": topics}, rows.source, rows.notes)


def _is_authors(folder: Path) -> bool:
    """Whether the folder has the authors' files and none in our format."""
    ours = any((folder / f"{AFS_PART.files[0]}{suffix}").is_file() for suffix in (".tsv", ".tsv.gz"))
    return not ours and all((folder / "afs" / file).is_file() for file in AFS_FILES.values())


def _authors_rows(folder: Path) -> Rows:
    columns: dict[str, list[object]] = {"score": [], "sentence1": [], "sentence2": [], "topic": []}
    for topic, file in AFS_FILES.items():
        read = _authors_file(folder / file)
        for name, cells in read.items():
            columns[name] += cells
        columns["topic"] += [topic] * len(read["score"])
    return Rows(columns, str(folder / "ArgPairs_*.csv"))


def _authors_file(file: Path) -> dict[str, list[object]]:
    """Read the three relevant columns; invalid cells are reported by line."""
    reader = csv.DictReader(io.StringIO(_decoded(file.read_bytes()), newline=""), strict=True)
    if missing := set(AFS_COLUMNS.values()) - set(reader.fieldnames or ()):
        problem = f"there is no column {', '.join(sorted(missing))}"
        raise InputError(str(file), problem, "the authors' file", "download it again")
    columns: dict[str, list[object]] = {name: [] for name in AFS_COLUMNS}
    problems = []
    try:
        for row in reader:
            for name, column in AFS_COLUMNS.items():
                try:
                    columns[name].append(as_score(row[column]) if name == "score" else as_text(row[column]))
                except CellFault as fault:
                    problem = f"{fault.problem} in column {column!r}"
                    problems.append(Problem(str(file), f"line {reader.line_num}", problem, fault.expected))
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


MEASURES = {measure: partial(load_geometry, measure) for measure in GEOMETRY}
STS = Suite("sts", SETS, load, TABLE.means, DEV, MEASURES)
AFS = Suite("afs", (AFS_PART.name,), load_afs, ())
