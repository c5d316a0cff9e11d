"""A cache of views on disk, in small Arrow files (text, view) that are written atomically."""

import hashlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sentloom.data.distinct import distinct, texts_at
from sentloom.files import new_file, sha256
from sentloom.progress import note, progress
from sentloom.views.maker import Maker

SCHEMA = pa.schema([("text", pa.large_string()), ("view", pa.large_string())])


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


def find(known: pa.ChunkedArray, wanted: pa.ChunkedArray) -> NDArray[np.int64]:
    """Return for each wanted text the first row of `known` with that text, or -1."""
    both = pa.chunked_array([*known.chunks, *wanted.chunks], type=pa.large_string())
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
