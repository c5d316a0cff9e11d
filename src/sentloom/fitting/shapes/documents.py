"""Passages of documents: pairs of what their structure connects, which nobody wrote as pairs."""

from dataclasses import dataclass

from sentloom.data.columns import only_column
from sentloom.data.dataset import Dataset
from sentloom.data.documents import structure
from sentloom.data.documents.structure import is_mined, structure_pairs
from sentloom.data.sentences import texts_of
from sentloom.data.shapes import Shape
from sentloom.fitting.shapes.pairs import AnsweredQueries
from sentloom.fitting.shapes.texts import Texts

FEWEST_PAIRS = 200  # with fewer, the test rows would show nothing: passages are raw text then


@dataclass(frozen=True)
class Passages(Texts):
    """Passages with their titles, headings and links."""

    def joined(self, data: Dataset) -> Dataset:
        """Pairs of headings and passages, if there are enough; passages alone if not."""
        pairs = structure_pairs(data)
        beside = [name for name in structure.COLUMNS if name in data.table.column_names and name != "text"]
        return pairs if len(pairs) >= FEWEST_PAIRS else data.derive(data.table.drop_columns(beside), "passages")


@dataclass(frozen=True)
class Mined(AnsweredQueries):
    """A title, a heading or the text of a link, and the passage that it leads to."""

    def training_parts(self, rows: Dataset) -> list[Dataset]:
        """The pairs, and the passages as raw text."""
        return [rows, texts_of(only_column(rows, "positive"))]


PASSAGES = Passages(Shape.TEXTS, place=0, labelled=False, besides=structure.COLUMNS[1:])
MINED = Mined(Shape.PAIRS, place=3, has_queries=True, lacks_negatives=True, mined=True)

__all__ = ["MINED", "PASSAGES", "is_mined"]
