"""A file with the results of a search that sentloom does not run, or with a score per query.

As CSV or TSV: the columns query and result, the best result of a query first, or query and score (0 to 1). As JSON
lines: {"query": ..., "results": [...]} or {"query": ..., "score": ...}.
"""

import csv
import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from sentloom.errors import InputError
from sentloom.evaluation.bench import Memory
from sentloom.evaluation.retrieval import Places, SearchSet, scores_of_ranks
from sentloom.evaluation.task import Score, Scores, Task

EXPECTED = "the columns query and result, or query and score; or JSON lines with query and results, or score"


@dataclass(frozen=True)
class ResultsFile:
    """The results or the score of each query."""

    path: Path
    results: dict[str, list[str]]
    values: dict[str, float]  # empty if there are results
    sha256: str

    @classmethod
    def read(cls, path: Path) -> "ResultsFile":
        """Read a file; rows of a query belong together wherever they are."""
        results: dict[str, list[str]] = {}
        values: dict[str, float] = {}
        for number, row in _rows(path):
            query = row.get("query")
            if not isinstance(query, str) or ("result" in row) + ("results" in row) + ("score" in row) != 1:
                raise InputError(f"{path}, line {number}", f"it has the keys {', '.join(row)}", EXPECTED, "correct it")
            if "score" in row:
                values[query] = _score(row["score"], f"{path}, line {number}")
            else:
                results.setdefault(query, []).extend(map(str, row["results"] if "results" in row else [row["result"]]))
        if not (results or values) or (results and values):
            problem = "there are both results and scores" if results else "there is no row"
            raise InputError(str(path), problem, EXPECTED, "correct it")
        return cls(path, results, values, hashlib.sha256(path.read_bytes()).hexdigest())

    @property
    def identity(self) -> str:
        """The file's content."""
        return f"results {self.sha256}"

    def scores(self, tasks: Sequence[Task], memory: Memory) -> list[Scores]:
        """The scores of the queries of each task, all of which must be there."""
        return [self._scores(task) for task in tasks]

    def _scores(self, task: Task) -> Scores:
        asked = [query for query, _ in task.items]
        known = self.values or self.results
        missing = [query for query in asked if query not in known]
        if missing or not asked:
            problem = f"{len(missing):,} of {len(asked):,} queries of {task.name} are missing, first {missing[:1]}"
            raise InputError(str(self.path), problem, "all of them", "search for all queries of the data")
        if self.values:
            clusters = task.searched.clusters if task.searched else None
            return {task.main: Score("mean", np.array([[self.values[query]] for query in asked]), clusters=clusters)}
        if task.searched is None:
            raise InputError(str(self.path), f"{task.name} is not searched", "data that is searched", "give scores")
        return scores_of_ranks(task.searched, list(_ranked(task.searched, self.results)))


def _ranked(searched: SearchSet, results: dict[str, list[str]]) -> Iterator[tuple[Places, Places]]:
    """The ranks of each query's relevant documents; those that are not among its results come last."""
    for query, relevant in zip(searched.queries, searched.grades, strict=True):
        place = {text: rank for rank, text in reversed(list(enumerate(dict.fromkeys(results[query]), 1)))}
        last = max(len(searched.documents), len(place))
        ranks = sorted((place.get(searched.documents[number], last + 1), number) for number in relevant)
        yield np.array([rank for rank, _ in ranks], np.int64), np.array([number for _, number in ranks], np.int64)


def _rows(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """The rows with their line numbers."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            if path.suffix in (".csv", ".tsv"):
                rows = csv.DictReader(file, delimiter="\t" if path.suffix == ".tsv" else ",")
                yield from ((rows.line_num, {key: cell for key, cell in row.items() if key}) for row in rows)
                return
            for number, line in enumerate(file, 1):
                if line.strip():
                    row = json.loads(line)
                    if not isinstance(row, dict):
                        raise ValueError("it is no JSON object")
                    yield number, row
    except (UnicodeDecodeError, ValueError, csv.Error) as error:
        raise InputError(str(path), f"it cannot be read: {error}", EXPECTED, "correct it") from None


def _score(value: object, where: str) -> float:
    try:
        number = float(str(value))
    except ValueError:
        number = np.nan
    if not 0 <= number <= 1:
        raise InputError(where, f"the score is {value!r}", "a number from 0 to 1", "divide percentages by 100")
    return number
