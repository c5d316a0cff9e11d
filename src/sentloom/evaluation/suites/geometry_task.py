"""Alignment and uniformity of an STS set as scores of a task, as in the figures of Sentence-T5 and GenSE.

The definitions are those of `evaluation.geometry` (the reference variant); lower is better.
"""

import numpy as np

from sentloom.data.shapes import Shape
from sentloom.errors import InputError
from sentloom.evaluation.geometry import geometry, scored_pairs
from sentloom.evaluation.suites.senteval_folder import read_any
from sentloom.evaluation.suites.set_source import SetSource, check
from sentloom.evaluation.suites.sts import STS_PARTS
from sentloom.evaluation.task import Lookup, Score, Scores, Task

GEOMETRY = ("alignment", "uniformity")


def geometry_task(name: str, main: str, origin: SetSource) -> Task:
    """Build the task of measuring the geometry of an STS set's sentences."""
    part = next((part for one, part in STS_PARTS.items() if one.casefold() == name.casefold()), None)
    if part is None:
        known = ", ".join(STS_PARTS)
        raise InputError(f"{name}@{main}", f"{main} is not measured on this set", f"one of {known}", "choose one")
    rows = check(read_any(part, origin, Shape.SCORED_PAIRS), part, origin)
    pairs = scored_pairs(rows)

    def score(lookup: Lookup) -> Scores:
        found = geometry(lookup, pairs)
        return {one: Score("mean", np.array([[getattr(found, one)]])) for one in GEOMETRY}

    texts = [*rows["sentence1"], *rows["sentence2"]]
    return Task(
        part.name, main, {"symmetric": texts}, score, rows.source, rows.sha256, {"task": "geometry"}, rows.notes
    )
