"""Views made elsewhere, read from a file of pairs (original, view)."""

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sentloom.data.dataset import FILE, LINE, Dataset
from sentloom.data.readers import read
from sentloom.data.scratch import take_rows
from sentloom.data.shapes import Shape
from sentloom.errors import SHOWN_PROBLEMS, DataError, InputError, Problem
from sentloom.views.cache import find
from sentloom.views.settings import ReadyPairs


def ready_views(settings: ReadyPairs, dataset: Dataset, sentences: pa.Table) -> tuple[Dataset, NDArray[np.int64]]:
    """Read the file's pairs, and find for each sentence the row with the same anchor, or -1 if that is allowed."""
    ready = read(settings.file, show_progress=True)
    if ready.shape is not Shape.PAIRS:
        fix = "give two columns, such as anchor and positive"
        raise InputError(settings.file, f"the file contains {ready.shape}", "pairs of an original and its view", fix)
    rows = find(ready.column("anchor"), sentences.column("text"))
    missing = np.flatnonzero(rows < 0)
    if len(missing) and settings.missing == "refuse":
        fix = f"add them to {settings.file}, or leave such sentences out with `missing: skip`"
        raise DataError(_problems(dataset, take_rows(sentences, missing[:SHOWN_PROBLEMS])), len(missing), fix)
    return ready, rows


def _problems(dataset: Dataset, sentences: pa.Table) -> list[Problem]:
    return [
        Problem(
            dataset.files[row[FILE]],
            f"{dataset.place_name} {row[LINE]}",
            f"{row['text'][:80]!r} has no view",
            "one for every sentence",
        )
        for row in sentences.to_pylist()
    ]
