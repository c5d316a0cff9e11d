"""Build pairs from any data set: each distinct sentence with its view, or two views of it."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sentloom.data.dataset import FILE, LINE, Dataset
from sentloom.data.nli import pairs_from_nli
from sentloom.data.scratch import BATCH_ROWS, scratch_folder, scratch_table, take_rows
from sentloom.data.sentences import distinct_sentences
from sentloom.data.shapes import Shape
from sentloom.errors import InputError
from sentloom.views.cache import ViewCache, find, make_missing
from sentloom.views.maker import Maker
from sentloom.views.passages import PAIRS, passage_pairs
from sentloom.views.ready_pairs import ready_views
from sentloom.views.settings import (
    BackTranslation,
    Entailment,
    MaskFill,
    Neighbours,
    ReadyPairs,
    Spans,
    Synonyms,
    ViewSettings,
)

Rows = NDArray[np.int64]


@dataclass(frozen=True)
class _Side:
    """One side of the pairs: sentence i has row `rows[i]` of the only column of `texts`, or no text if that is -1."""

    name: str
    identity: str
    texts: pa.Table
    rows: Rows

    def at(self, sentences: Rows) -> pa.Array:
        return take_rows(self.texts, self.rows[sentences]).column(0).combine_chunks()


def make_pairs(
    dataset: Dataset,
    settings: ViewSettings,
    *,
    cache: Path | None = None,
    batch_rows: int = BATCH_ROWS,
) -> Dataset:
    """Make pairs (anchor, positive) of an original and its view, or of two views, one row per distinct sentence.

    A row's origin is the first row with the sentence. Sentences without a view or with an empty one are dropped;
    pairs of two equal texts stay, because dropout still tells them apart. `skipped` counts both. Views are cached in
    the folder `cache`, so an interrupted run resumes without making them again.
    """
    if isinstance(settings, Entailment):
        return pairs_from_nli(dataset)
    if isinstance(settings, Neighbours | Spans):
        return passage_pairs(dataset, settings)
    sentences = distinct_sentences(dataset)
    if isinstance(settings, ReadyPairs):
        ready, rows = ready_views(settings, dataset, sentences)
        sides = [_originals(sentences), _Side("view", f"file {ready.sha256}", ready.table.select(["positive"]), rows)]
    else:
        sides = _made(settings, sentences, cache)
    return _paired(dataset, sentences, *sides, batch_rows=batch_rows)


def make_translations(dataset: Dataset, maker: Maker, *, cache: Path | None = None) -> Dataset:
    """Make parallel data (source, target) of every distinct sentence and its translation, cached like views."""
    sentences = distinct_sentences(dataset)
    with _folder(cache) as folder:
        made = _side("translation", maker, sentences, folder)
        pairs = _paired(dataset, sentences, _originals(sentences), made)
    table = pairs.table.rename_columns(["source", "target", FILE, LINE])
    return replace(pairs, table=table, shape=Shape.PARALLEL, used={"source": "original", "target": "translation"})


def _paired(
    dataset: Dataset, sentences: pa.Table, left: _Side, right: _Side, *, batch_rows: int = BATCH_ROWS
) -> Dataset:
    counts: Counter[str] = Counter()
    table = scratch_table(PAIRS, _batches(sentences, left, right, counts, batch_rows))
    if not len(table):
        raise InputError(dataset.files[0], "no sentence has a view", "at least one", "choose another kind of view")
    pairs = dataset.derive(table, f"pairs of {left.identity} and {right.identity}", Shape.PAIRS)
    return replace(
        pairs,
        used={"anchor": left.name, "positive": right.name},
        ignored=(),
        skipped={**dataset.skipped, **+counts},
    )


def makers_for(settings: BackTranslation | Synonyms | MaskFill) -> list[Maker]:
    """Return one maker, whose views are paired with the originals, or two, whose views are paired."""
    if isinstance(settings, Synonyms):
        from sentloom.views.synonyms import SynonymReplacement

        return [SynonymReplacement(settings)]
    if isinstance(settings, MaskFill):
        from sentloom.views.mask_fill import MaskFiller

        return [MaskFiller(settings)]
    if settings.pivots:
        from sentloom.views.translation_models import PivotTranslator

        return [PivotTranslator(pivot, settings) for pivot in settings.pivots]
    from sentloom.views.embedded_translator import EmbeddedTranslator

    return [EmbeddedTranslator()]


def _originals(sentences: pa.Table) -> _Side:
    return _Side("original", "originals", sentences.select(["text"]), np.arange(len(sentences)))


def _made(settings: BackTranslation | Synonyms | MaskFill, sentences: pa.Table, cache: Path | None) -> list[_Side]:
    """Collect the views of one or two makers, from the cache or made now."""
    makers = makers_for(settings)
    names = [settings.kind] if len(makers) == 1 else [f"{settings.kind} {number}" for number in (1, 2)]
    sides = [_originals(sentences)] if len(makers) == 1 else []
    with _folder(cache) as folder:
        for name, maker in zip(names, makers, strict=True):
            sides.append(_side(name, maker, sentences, folder))
    return sides


def _side(name: str, maker: Maker, sentences: pa.Table, folder: Path) -> _Side:
    """Collect the views of one maker, making those that are not cached."""
    texts, cache = sentences.column("text"), ViewCache(folder, maker.identity)
    make_missing(maker, texts, cache, name)
    table = cache.table()
    return _Side(name, maker.identity, table.select(["view"]), find(table.column("text"), texts))


@contextmanager
def _folder(cache: Path | None) -> Iterator[Path]:
    """Yield the cache folder, or a temporary one; mapped files stay readable after it is deleted."""
    if cache is not None:
        yield cache
        return
    scratch_folder().mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=scratch_folder(), ignore_cleanup_errors=True) as name:
        yield Path(name)


def _batches(
    sentences: pa.Table, left: _Side, right: _Side, counts: Counter[str], batch_rows: int
) -> Iterator[pa.RecordBatch]:
    """Yield the pairs batch by batch, counting dropped sentences and equal texts."""
    known = np.flatnonzero((left.rows >= 0) & (right.rows >= 0))
    counts["sentences without a view"] = len(sentences) - len(known)
    for start in range(0, len(known), batch_rows):
        part = known[start : start + batch_rows]
        origin = take_rows(sentences.select([FILE, LINE]), part).combine_chunks()
        columns = [left.at(part), right.at(part), *(origin.column(name).combine_chunks() for name in (FILE, LINE))]
        batch = pa.RecordBatch.from_arrays(columns, schema=PAIRS)
        full = batch.filter(pc.and_(*(pc.greater(pc.utf8_length(batch.column(side)), 0) for side in (0, 1))))
        counts["sentences with an empty view (dropped)"] += len(part) - full.num_rows
        equal = "views equal to the original (kept)" if left.name == "original" else "equal views (kept)"
        counts[equal] += pc.sum(pc.equal(full.column(0), full.column(1))).as_py() or 0
        yield full
