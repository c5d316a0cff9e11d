"""Pairs of a sentence and its view, or of two views: made, or read from the user's file.

Views are cached on disk, in small Arrow files (text, view) that are written atomically.
"""

import hashlib
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sentloom.data.dataset import BATCH_ROWS, FILE, LINE, Dataset, scratch_folder, scratch_table, take_rows
from sentloom.data.nli import pairs_from_nli
from sentloom.data.readers import read
from sentloom.data.sentences import distinct, distinct_sentences, texts_at
from sentloom.data.shapes import Shape
from sentloom.errors import SHOWN_PROBLEMS, DataError, InputError, Problem
from sentloom.files import new_file, sha256
from sentloom.progress import note, progress
from sentloom.writing.views.passages import PAIRS, passage_pairs
from sentloom.writing.views.settings import (
    BackTranslation,
    Entailment,
    MaskFill,
    Neighbours,
    ReadyPairs,
    Sentences,
    Spans,
    Synonyms,
    ViewSettings,
)

SCHEMA = pa.schema([("text", pa.large_string()), ("view", pa.large_string())])

Rows = NDArray[np.int64]


class Maker(Protocol):
    """Makes one view per text. A view depends only on the maker's identity and the text, never on the batch."""

    @property
    def identity(self) -> str:
        """Everything besides the text that a view depends on: hashes of models, settings, seed."""

    @property
    def shard(self) -> int:
        """How many views are cached at a time; an interrupted run loses at most this many."""

    def views(self, texts: Sequence[str]) -> Iterator[str]:
        """Yield the views of the texts, in the same order."""


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
    if isinstance(settings, Neighbours | Spans | Sentences):
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


def makers_for(settings: BackTranslation | Synonyms | MaskFill) -> list[Maker]:
    """One maker, whose views are paired with the originals, or two, whose views are paired with each other."""
    if isinstance(settings, Synonyms):
        from sentloom.writing.views.synonyms import SynonymReplacement

        return [SynonymReplacement(settings)]
    if isinstance(settings, MaskFill):
        from sentloom.writing.views.mask_fill import MaskFiller

        return [MaskFiller(settings)]
    if settings.pivots:
        from sentloom.writing.views.translation import PivotTranslator

        return [PivotTranslator(pivot, settings) for pivot in settings.pivots]
    from sentloom.writing.views.translation import EmbeddedTranslator

    return [EmbeddedTranslator()]


@dataclass(frozen=True)
class _Side:
    """One side of the pairs: sentence i has row `rows[i]` of the only column of `texts`, or no text if that is -1."""

    name: str
    identity: str
    texts: pa.Table
    rows: Rows

    def at(self, sentences: Rows) -> pa.Array:
        return take_rows(self.texts, self.rows[sentences]).column(0).combine_chunks()


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


class ViewCache:
    """The cached views of one maker identity, in files named by their SHA-256."""

    def __init__(self, cache: Path, identity: str) -> None:
        self.folder = cache / hashlib.sha256(identity.encode()).hexdigest()[:32]
        self.identity = identity

    def table(self) -> pa.Table:
        """Open all views, memory-mapped; a text may appear twice if two runs made its view at the same time."""
        shards = sorted(self.folder.glob("[0-9a-f]*.arrow"))  # names of incomplete files start with a dot
        opened = [table for shard in shards if (table := _open(shard)) is not None]
        return pa.concat_tables([SCHEMA.empty_table(), *opened])

    def add(self, texts: Sequence[str], views: Sequence[str]) -> None:
        """Write the views of some texts to the cache."""
        sink = pa.BufferOutputStream()
        with pa.ipc.new_file(sink, SCHEMA) as writer:
            writer.write_table(pa.table([pa.array(texts), pa.array(views)], names=SCHEMA.names).cast(SCHEMA))
        content = sink.getvalue()
        with new_file(self.folder / f"{hashlib.sha256(content).hexdigest()}.arrow") as part:
            part.write_bytes(content)


def _open(shard: Path) -> pa.Table | None:
    """Open a file of views; a damaged file is removed and gives None."""
    if sha256(shard) != shard.stem:
        note(f"{shard} is damaged: its views are made again")
        shard.unlink(missing_ok=True)
        return None
    return pa.ipc.open_file(pa.memory_map(str(shard))).read_all()


def find(known: pa.ChunkedArray, texts: pa.ChunkedArray) -> NDArray[np.int64]:
    """For each text the first row of `known` with that text, or -1."""
    both = pa.chunked_array([*known.chunks, *texts.chunks], type=pa.large_string())
    _, first = distinct(both)
    at = first[len(known) :]
    return np.where(at < len(known), at, -1)


def make_missing(maker: Maker, texts: pa.ChunkedArray, cache: ViewCache, title: str) -> None:
    """Make and cache the missing views, shard by shard: an interrupted run resumes after the last complete shard."""
    missing = np.flatnonzero(find(cache.table().column("text"), texts) < 0)
    with progress(title, len(missing), "sentences") as advance:
        for start in range(0, len(missing), maker.shard):
            part = texts_at(texts, missing[start : start + maker.shard])
            views = []
            for view in maker.views(part):
                views.append(view)
                advance(1)
            cache.add(part, views)


def seed_for(seed: int, text: str) -> int:
    """Derive a 63-bit seed for one text, so that sampling does not depend on order or batch."""
    return int.from_bytes(hashlib.blake2b(f"{seed} {text}".encode(), digest_size=8).digest()) >> 1
