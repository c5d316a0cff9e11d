"""Duplicates in a file: the groups of its texts, and the rows that belong to them."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sentloom.data.as_it_is import FileRows
from sentloom.data.sentences import distinct
from sentloom.encoder import Encoder
from sentloom.encoder.vector_files import encode_to_file, open_vectors
from sentloom.errors import InputError, option
from sentloom.files import remove
from sentloom.fitting.result import FitResult
from sentloom.search.duplicates import Groups, find_groups


@dataclass(frozen=True)
class Duplicates:
    """The rows that have duplicates, group by group, the representative first."""

    rows: npt.NDArray[np.int64]
    groups: npt.NDArray[np.int64]  # a number from 1
    is_representative: npt.NDArray[np.bool_]
    cosines: npt.NDArray[np.float32]  # with the representative
    recall: float | None  # of the pairs of a sample; None: every text was compared with every other

    @property
    def count(self) -> int:
        """How many groups there are."""
        return int(self.groups.max(initial=0))


def proven_threshold(model: str) -> float:
    """The cosine that the fit of a model proved for matching texts."""
    report = Path(f"{Path(model).absolute()}.fit", "report.json")
    result = FitResult.read(report) if report.is_file() else None
    if result is None or result.threshold is None or not result.threshold.reached or result.classifiers:
        why = "labels say which texts belong together, not which mean the same" if result and result.classifiers else ""
        problem = f"the fit of {model} proved no threshold for texts that mean the same" + (f": {why}" if why else "")
        fix = f"say how similar texts must be: {option('threshold', '0.9')}; lower finds more, also wrong ones"
        raise InputError(option("threshold"), problem, "a cosine between 0 and 1", fix)
    return result.threshold.cosine


def find_duplicates(encoder: Encoder, rows: FileRows, threshold: float, output: Path) -> Duplicates:
    """Find the groups of a file's texts. Vectors are in a file beside the output until it is done, and work resumes."""
    texts = rows.texts
    first, first_of_row = distinct(texts)
    place = output.with_name(f".{output.name}.npy")
    asked = pa.chunked_array([pa.array([texts[row] for row in first.tolist()], pa.large_string())])
    source = f"{rows.name} {len(texts)} {_hash_of(asked)}"
    if not place.is_file():
        encode_to_file(encoder, asked, place, source=source)
    groups = find_groups(open_vectors(place, (len(first), encoder.dimension)), threshold)
    remove(place)
    return _of_rows(groups, first, np.searchsorted(first, first_of_row), [not text.strip() for text in texts])


def _hash_of(texts: pa.ChunkedArray) -> str:
    """A hash of all texts."""
    digest = hashlib.sha256()
    for chunk in texts.chunks:
        for text in chunk.to_pylist():
            digest.update(f"{len(text)} {text}".encode(errors="surrogatepass"))
    return digest.hexdigest()


def _of_rows(
    groups: Groups, first: npt.NDArray[np.int64], text_of_row: npt.NDArray[np.int64], blank: Sequence[bool]
) -> Duplicates:
    """The groups of rows: equal texts are in one, and blank ones in none."""
    leader, cosine = groups.representatives[text_of_row], groups.cosines[text_of_row]
    sizes = np.bincount(leader[~np.array(blank)], minlength=len(first))
    rows = np.flatnonzero((sizes[leader] > 1) & ~np.array(blank))
    leads = first[leader[rows]] == rows
    rows = rows[np.lexsort((rows, ~leads, first[leader[rows]]))]
    _, numbers = np.unique(first[leader[rows]], return_inverse=True)
    return Duplicates(rows, numbers + 1, first[leader[rows]] == rows, cosine[rows], groups.recall)
