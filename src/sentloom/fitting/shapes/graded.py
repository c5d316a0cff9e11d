"""Scored pairs of a query, a document and its relevance: a search with graded answers."""

from dataclasses import dataclass

import numpy as np

from sentloom.data.dataset import Dataset
from sentloom.data.shapes import COLUMNS, Shape, squash
from sentloom.evaluation.user_tasks import TaskKind
from sentloom.fitting.shapes.scored_pairs import ScoredPairs, as_pairs
from sentloom.fitting.shapes.searching import Searching

QUERY_NAMES, GRADE_NAMES = ("query", "question"), ("relevance", "grade")  # of columns, squashed
STORED_NAMES = ("query", "document", "relevance")


@dataclass(frozen=True)
class Graded(Searching, ScoredPairs):
    """A query, a document, and how relevant it is."""

    def training_form(self, data: Dataset) -> Dataset:
        """The relevant ones as pairs."""
        return relevant_pairs(data)

    def stored(self, data: Dataset) -> Dataset:
        """Under the names by which they are recognised."""
        names = dict(zip(COLUMNS[data.shape], STORED_NAMES, strict=True))
        table = data.table.rename_columns([names.get(name, name) for name in data.table.column_names])
        return data.derive(table, "graded")

    @property
    def searched_column(self) -> str:
        """The documents."""
        return "sentence2"


def is_graded(data: Dataset) -> bool:
    """Whether scored pairs are queries with graded documents, by the names of their columns in the file."""
    names = [squash(data.used.get(column, "")) for column in COLUMNS[data.shape]]
    return data.shape is Shape.SCORED_PAIRS and names[0] in QUERY_NAMES and names[2] in GRADE_NAMES


def relevant_pairs(data: Dataset) -> Dataset:
    """Queries and documents with a grade above 0, as pairs."""
    return as_pairs(data, np.asarray(data.column("score").to_numpy() > 0), "relevant documents as pairs")


GRADED = Graded(Shape.SCORED_PAIRS, place=4, value_column="score", task_kind=TaskKind.RETRIEVAL)
