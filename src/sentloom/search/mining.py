"""Mine hard negatives from a corpus: texts that the encoder ranks close and that are not known positives."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from typing import Literal, Self

import numpy as np
import pyarrow as pa
from pydantic import BaseModel, ConfigDict, Field, model_validator

from sentloom.data.batches import text_keys
from sentloom.data.dataset import BATCH_ROWS, FILE, LINE, Dataset, scratch_table, shape_schema, take_rows
from sentloom.data.shapes import Shape, arrow_type
from sentloom.encoder import Encoder
from sentloom.encoder.encoder import Vectors
from sentloom.errors import InputError
from sentloom.search.cross_encoder import CrossEncoder, pair_scores
from sentloom.search.nearest import faiss_top_k, top_k
from sentloom.search.vectors import normalised

TRIPLETS = shape_schema(Shape.TRIPLETS)


class MineSettings(BaseModel):
    """How hard the negatives may be. A candidate above `cos(anchor, positive) - margin` may be a positive itself."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    negatives: int = Field(1, ge=1)
    margin: float = 0.05
    skip: int = Field(0, ge=0)  # nearest candidates to skip
    depth: int = Field(50, ge=1)  # candidates to consider
    search: Literal["exact", "faiss"] = "exact"
    at_most: float | None = Field(None, gt=0, le=1)  # a negative's cosine is also at most this share of the positive's
    teacher_margin: float = 1.0  # a negative's score by the teacher is at least this far below the positive's
    keep_all: bool = False  # rows for which no negative was found stay, as pairs

    def limits(self, own: Vectors) -> Vectors:
        """The greatest cosine that a negative may have, from the cosines of anchors and positives, (n,)."""
        below: Vectors = own - self.margin
        return below if self.at_most is None else np.minimum(below, self.at_most * own)

    @model_validator(mode="after")
    def _depth_beyond_skip(self) -> Self:
        if self.depth <= self.skip:
            raise ValueError(f"depth is {self.depth}, which must be more than skip, {self.skip}")
        return self


@dataclass(frozen=True)
class MineReport:
    """Counts of rows and candidates."""

    rows: int
    kept: int  # rows with at least one negative
    negatives: int
    known_right: int  # candidates that are a positive of the anchor or the anchor itself
    too_near: int  # candidates within the margin, by the encoder or by the guide
    rejected: int = 0  # candidates that the teacher scores too high


def mine(
    encoder: Encoder,
    pairs: Dataset,
    corpus: Sequence[str] | None,
    settings: MineSettings,
    show_progress: bool = True,
    guide: Encoder | None = None,
    teacher: CrossEncoder | None = None,
) -> tuple[Dataset, MineReport]:
    """Make triplets of each pair and its hardest negatives from a corpus (None: the positives of all pairs).

    Rows without a negative are left out, unless `keep_all` is set. A positive of an anchor in any row is never a
    negative for that anchor. With a guide, a second encoder, a candidate must keep its distance from the anchor by the
    guide's cosines as well. With a teacher, a cross-encoder, its score must be well below the positive's.
    """
    if pairs.shape is not Shape.PAIRS:
        raise InputError(pairs.files[0], f"its shape is {pairs.shape}", "pairs", "give anchors and positives")
    anchors, positives = pairs.column("anchor").to_pylist(), pairs.column("positive").to_pylist()
    corpus = list(dict.fromkeys(positives if corpus is None else corpus))
    view = _View.of(encoder, anchors, positives, corpus, settings, show_progress)
    guiding = guide and _View.of(guide, anchors, positives, corpus, settings, show_progress)
    search = faiss_top_k if settings.search == "faiss" else top_k
    numbers, cosines = search(view.queries, view.documents, settings.depth)
    right = _known_right(anchors, positives, corpus)
    known, near, far = 0, 0, []
    for row, (places, values) in enumerate(zip(numbers, cosines, strict=True)):
        candidates = list(zip(places[settings.skip :].tolist(), values[settings.skip :].tolist(), strict=True))
        candidates = [(place, value) for place, value in candidates if place >= 0]  # faiss pads with -1
        unknown = [(place, value) for place, value in candidates if place not in right[row]]
        below = [place for place, value in unknown if value <= view.limits[row]]
        below = guiding.far(row, below) if guiding else below
        known, near = known + len(candidates) - len(unknown), near + len(unknown) - len(below)
        far.append([corpus[place] for place in below])
    judged = _Judged(teacher, anchors, positives, settings, show_progress) if teacher else None
    negatives = judged.first(far) if judged else [texts[: settings.negatives] for texts in far]
    with_negatives = [row for row, texts in enumerate(negatives) if texts]
    if not with_negatives:
        raise InputError(
            pairs.files[0], "no row has a negative", "at least one", "lower the margins or raise the depth"
        )
    rows = list(range(len(negatives))) if settings.keep_all else with_negatives
    table = scratch_table(TRIPLETS, _batches(pairs, negatives, rows))
    how = f"mined {settings!r} {encoder.fingerprint()} {sha256(chr(0).join(corpus).encode()).hexdigest()}"
    how += f" {guide.fingerprint()}" if guide else ""
    how += f" {teacher.identity}" if teacher else ""
    counts = len(pairs), len(with_negatives), sum(map(len, negatives))
    report = MineReport(*counts, known, near, judged.rejected if judged else 0)
    return pairs.derive(table, how, Shape.TRIPLETS), report


@dataclass(frozen=True)
class _View:
    """Anchors and corpus as an encoder sees them, at unit length, and the greatest cosine of each row's negatives."""

    queries: Vectors  # (n, d)
    documents: Vectors  # (m, d)
    limits: Vectors  # (n,)

    @classmethod
    def of(
        cls, encoder: Encoder, anchors: list[str], positives: list[str], corpus: list[str], settings: MineSettings,
        show_progress: bool,
    ) -> "_View":  # fmt: skip
        documents = normalised(encoder.encode(corpus, role="document", show_progress=show_progress))
        queries = normalised(encoder.encode(anchors, role="query", show_progress=show_progress))
        own = np.einsum("nd,nd->n", queries, normalised(encoder.encode(positives, role="document")))
        return cls(queries, documents, settings.limits(own))

    def far(self, row: int, places: list[int]) -> list[int]:
        """The places of the corpus whose cosine with the row's anchor is not above its limit."""
        cosines = self.documents[places] @ self.queries[row]
        return [place for place, value in zip(places, cosines, strict=True) if value <= self.limits[row]]


class _Judged:
    """Anchors and positives as a cross-encoder sees them, and how many candidates it rejects."""

    def __init__(
        self, teacher: CrossEncoder, anchors: list[str], positives: list[str], settings: MineSettings,
        show_progress: bool,
    ) -> None:  # fmt: skip
        self.anchors, self.negatives, self.rejected = anchors, settings.negatives, 0
        self.score = partial(pair_scores, teacher, show_progress=show_progress)
        self.limits = self.score(list(zip(anchors, positives, strict=True))) - settings.teacher_margin

    def first(self, candidates: list[list[str]]) -> list[list[str]]:
        """For each row, the first candidates that are not above its limit.

        A cross-encoder is slow, so each round scores only the number that a row still lacks.
        """
        accepted: list[list[str]] = [[] for _ in candidates]
        tried = [0] * len(candidates)
        while asked := [
            (row, text)
            for row, texts in enumerate(candidates)
            for text in texts[tried[row] : tried[row] + self.negatives - len(accepted[row])]
        ]:
            scores = self.score([(self.anchors[row], text) for row, text in asked])
            for (row, text), score in zip(asked, scores, strict=True):
                tried[row] += 1
                if score <= self.limits[row]:
                    accepted[row].append(text)
        self.rejected = sum(tried) - sum(map(len, accepted))
        return accepted


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


def _batches(pairs: Dataset, negatives: list[list[str]], kept_rows: list[int]) -> Iterator[pa.RecordBatch]:
    for start in range(0, len(kept_rows), BATCH_ROWS):
        rows = kept_rows[start : start + BATCH_ROWS]
        part = take_rows(pairs.table.select(["anchor", "positive", FILE, LINE]), np.array(rows))
        columns = {name: part.column(name).combine_chunks() for name in part.column_names}
        columns["negatives"] = pa.array([negatives[row] for row in rows], arrow_type("negatives"))
        yield pa.record_batch([columns[name] for name in TRIPLETS.names], schema=TRIPLETS)
