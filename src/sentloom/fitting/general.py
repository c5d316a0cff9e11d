"""General ability: 240 triplets of everyday English on mixed topics, written for this package.

The positive says the same as the anchor in other words. The negative is a near miss: it shares most words with the
positive (in every sixth row with the anchor) and means something else. The embedded encoder scores 81.25, counting
shared words 31.67.
"""

from importlib.resources import files
from pathlib import Path

from sentloom.data.dataset import Dataset
from sentloom.data.readers import read
from sentloom.data.shapes import COLUMNS, Shape
from sentloom.evaluation.suites.set_source import Rows
from sentloom.evaluation.suites.user_tasks import triplet_task
from sentloom.evaluation.task import Task

NAME = "general triplets"


def general_rows() -> Dataset:
    """The triplets."""
    return read(Path(str(files("sentloom"))) / "general" / "triplets.tsv", shape=Shape.TRIPLETS)


def general_task() -> Task:
    """How often a sentence is closer to one that says the same than to one that means something else."""
    data = general_rows()
    rows = Rows({name: data.column(name).to_pylist() for name in COLUMNS[Shape.TRIPLETS]}, NAME)
    return triplet_task(NAME, rows)
