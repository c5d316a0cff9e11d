"""What `fit` does with each shape of data: a file per shape, and which of them handles some rows.

How the rows of a shape are read is in `data.shapes`; what `evaluate` asks about them, in `evaluation.user_tasks`.
"""

from typing import assert_never

from sentloom.data.dataset import Dataset
from sentloom.data.shapes import Shape
from sentloom.fitting.shapes.classification import CLASSIFICATION
from sentloom.fitting.shapes.documents import MINED, PASSAGES, is_mined
from sentloom.fitting.shapes.graded import GRADED, is_graded
from sentloom.fitting.shapes.handler import Handler
from sentloom.fitting.shapes.nli import NLI
from sentloom.fitting.shapes.pairs import PAIRS
from sentloom.fitting.shapes.parallel import PARALLEL
from sentloom.fitting.shapes.scored_pairs import SCORED_PAIRS
from sentloom.fitting.shapes.texts import TEXTS
from sentloom.fitting.shapes.triplets import TRIPLETS


def handler(data: Dataset) -> Handler:
    """What handles these rows: scored pairs of queries and documents are a search, passages know their headings."""
    if is_mined(data):
        return MINED
    if data.of_documents and data.shape is Shape.TEXTS:
        return PASSAGES
    return GRADED if is_graded(data) else handler_of(data.shape)


def handler_of(shape: Shape) -> Handler:
    """What handles the rows of a shape."""
    match shape:
        case Shape.TEXTS:
            return TEXTS
        case Shape.PAIRS:
            return PAIRS
        case Shape.TRIPLETS:
            return TRIPLETS
        case Shape.SCORED_PAIRS:
            return SCORED_PAIRS
        case Shape.NLI:
            return NLI
        case Shape.PARALLEL:
            return PARALLEL
        case Shape.CLASSIFICATION:
            return CLASSIFICATION
        case _:
            assert_never(shape)
