"""Vectors with labels, built by hand."""

import numpy as np

from sentloom.classify.heads import Rows
from sentloom.search.vectors import normalised


def blobs(per_label, labels=4, dimension=16, spread=0.25, seed=0):
    """Texts of a label lie around a direction of its own."""
    draw = np.random.default_rng(seed)
    centres = np.eye(labels, dimension)
    numbers = np.repeat(np.arange(labels), per_label)
    vectors = centres[numbers] + spread * draw.normal(size=(len(numbers), dimension))
    return Rows(normalised(vectors), np.eye(labels, dtype=bool)[numbers])


def pairs_of_labels(count, seed=0):
    """Texts with two labels each: a direction for every label, added up."""
    draw = np.random.default_rng(seed)
    marks = np.zeros((count, 4), bool)
    for row in marks:
        row[draw.choice(4, 2, replace=False)] = True
    return Rows(normalised(marks @ np.eye(4, 8) + 0.1 * draw.normal(size=(count, 8))), marks)
