"""Passages of documents, which are raw text, and pairs that their structure gives, which nobody wrote as pairs."""

from dataclasses import dataclass

from sentloom.data.dataset import Dataset
from sentloom.data.documents import structure
from sentloom.data.documents.structure import is_mined, structure_pairs
from sentloom.data.shapes import Shape
from sentloom.fitting.shapes.pairs import AnsweredQueries
from sentloom.fitting.shapes.texts import Texts

FEWEST_PAIRS = 200  # with fewer, the test rows would show nothing: passages are raw text only


@dataclass(frozen=True)
class Passages(Texts):
    """Passages with their titles, headings and links."""

    def joined(self, data: Dataset) -> Dataset:
        """Passages alone: their titles are among the pairs."""
        beside = [name for name in structure.COLUMNS if name in data.table.column_names and name != "text"]
        return data.derive(data.table.drop_columns(beside), "passages")

    def mined(self, data: Dataset) -> Dataset | None:
        """Titles, headings and links, and the passages that they lead to, if there are enough."""
        pairs = structure_pairs(data)
        return pairs if len(pairs) >= FEWEST_PAIRS else None


PASSAGES = Passages(Shape.TEXTS, place=0, labelled=False, besides=structure.COLUMNS[1:])
MINED = AnsweredQueries(Shape.PAIRS, place=3, has_queries=True, lacks_negatives=True, by_structure=True)

__all__ = ["MINED", "PASSAGES", "is_mined"]
