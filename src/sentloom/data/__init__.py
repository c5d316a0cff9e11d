"""Read data of seven shapes, check it and map it from disk."""

from sentloom.data.dataset import Dataset
from sentloom.data.nli import pairs_from_nli, triplets_from_nli
from sentloom.data.readers import read
from sentloom.data.shapes import Shape, parse_columns

__all__ = ["Dataset", "Shape", "pairs_from_nli", "parse_columns", "read", "triplets_from_nli"]
