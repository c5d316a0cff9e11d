"""Mine hard negatives from a corpus: texts that the encoder ranks close and that are not known positives."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Literal

import numpy as np
import pyarrow as pa

from sentloom.data.batches import text_keys
from sentloom.data.dataset import FILE, LINE, Dataset
from sentloom.data.scratch import BATCH_ROWS, scratch_table, take_rows
from sentloom.data.shapes import COLUMNS, Shape, arrow_type
from sentloom.encoder import Encoder
from sentloom.errors import InputError
from sentloom.search.faiss_search import faiss_top_k
from sentloom.search.nearest import top_k

TRIPLETS = pa.schema(
    [*((name, arrow_type(name)) for name in COLUMNS[Shape.TRIPLETS]), (FILE, pa.int32()), (LINE, pa.int64())]
)


@dataclass(frozen=True)
class MineSettings:
    """How hard the negatives may be. A candidate above `cos(anchor, positive) - margin` may be a positive itself."""

    negatives: int = 1
    margin: float = 0.05
    skip: int = 0  # nearest candidates to skip
    depth: int = 50  # candidates to consider
    search: Literal["exact", "faiss"] = "exact"

    def __post_init__(self) -> None:
        if self.search not in ("exact", "faiss"):
            raise InputError("search", f"unknown kind {self.search!r}", "exact or faiss", "choose one of these")
        if self.negatives < 1 or self.depth <= self.skip or self.skip < 0:
            problem = f"negatives={self.negatives}, skip={self.skip}, depth={self.depth} are not valid"
            expected = "at least one negative, a skip of 0 or more, and a depth greater than skip"
            raise InputError("mine", problem, expected, "correct them")


@dataclass(frozen=True)
class MineReport:
    """Counts of rows and candidates."""

    rows: int
    kept: int  # rows with at least one negative
    negatives: int
    known_right: int  # candidates that are a positive of the anchor or the anchor itself
    too_near: int  # candidates within the margin


def mine(
    encoder: Encoder,
    pairs: Dataset,
    corpus: Sequence[str] | None,
    settings: MineSettings,
    show_progress: bool = True,
) -> tuple[Dataset, MineReport]:
    """Make triplets of each pair and its hardest negatives from a corpus (None: the positives of all pairs).

    Rows without a negative are left out. A positive of an anchor in any row is never a negative for that anchor.
    """
    if pairs.shape is not Shape.PAIRS:
        raise InputError(pairs.files[0], f"its shape is {pairs.shape}", "pairs", "give anchors and positives")
    anchors, positives = pairs.column("anchor").to_pylist(), pairs.column("positive").to_pylist()
    corpus = list(dict.fromkeys(positives if corpus is None else corpus))
    documents = encoder.encode(corpus, role="document", show_progress=show_progress)
    queries = encoder.encode(anchors, role="query", show_progress=show_progress)
    own = np.einsum("nd,nd->n", _unit(queries), _unit(encoder.encode(positives, role="document")))
    search = faiss_top_k if settings.search == "faiss" else top_k
    numbers, cosines = search(queries, documents, settings.depth)
    right = _known_right(anchors, positives, corpus)
    known, near, found = 0, 0, []
    for row, (places, values) in enumerate(zip(numbers, cosines, strict=True)):
        candidates = list(zip(places[settings.skip :].tolist(), values[settings.skip :].tolist(), strict=True))
        candidates = [(place, value) for place, value in candidates if place >= 0]  # faiss pads with -1
        others = [(place, value) for place, value in candidates if place not in right[row]]
        below = [place for place, value in others if value <= own[row] - settings.margin]
        known, near = known + len(candidates) - len(others), near + len(others) - len(below)
        found.append([corpus[place] for place in below[: settings.negatives]])
    kept = [row for row, negatives in enumerate(found) if negatives]
    if not kept:
        raise InputError(pairs.files[0], "no row has a negative", "at least one", "lower the margin or raise the depth")
    table = scratch_table(TRIPLETS, _batches(pairs, found, kept))
    how = f"mined {settings} {encoder.fingerprint()} {sha256(chr(0).join(corpus).encode()).hexdigest()}"
    report = MineReport(len(pairs), len(kept), sum(map(len, found)), known, near)
    return pairs.derive(table, how, Shape.TRIPLETS), report


def _unit(vectors: np.ndarray) -> np.ndarray:
    return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)


def _known_right(anchors: Sequence[str], positives: Sequence[str], corpus: Sequence[str]) -> list[set[int]]:
    """Return for each row the corpus positions of its anchor and of every positive that the anchor has in any row."""
    places: dict[int, list[int]] = {}
    for number, key in enumerate(text_keys(corpus).tolist()):
        places.setdefault(key, []).append(number)
    of_anchor: dict[int, set[int]] = {}
    keys = list(zip(text_keys(anchors).tolist(), text_keys(positives).tolist(), strict=True))
    for anchor, positive in keys:
        of_anchor.setdefault(anchor, {anchor}).add(positive)
    return [{place for key in of_anchor[anchor] for place in places.get(key, ())} for anchor, _ in keys]


def _batches(pairs: Dataset, found: list[list[str]], kept: list[int]) -> Iterator[pa.RecordBatch]:
    for start in range(0, len(kept), BATCH_ROWS):
        rows = kept[start : start + BATCH_ROWS]
        part = take_rows(pairs.table.select(["anchor", "positive", FILE, LINE]), np.array(rows))
        columns = {name: part.column(name).combine_chunks() for name in part.column_names}
        columns["negatives"] = pa.array([found[row] for row in rows], arrow_type("negatives"))
        yield pa.record_batch([columns[name] for name in TRIPLETS.names], schema=TRIPLETS)
