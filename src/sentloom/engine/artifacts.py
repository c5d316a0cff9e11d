"""What stages take and produce: an encoder, a writer (a text-to-text model) or a dataset.

An artifact is stored in a folder whose name ends in the content hash of everything that went into it:

    DIR/stages/sg-1f0c.../model/         an encoder or a writer
                         /data.parquet   a dataset (`synthesize` writes triplets.parquet and pairs.parquet instead)
                         /result.json    the record, written last: what went in, what came out, how long it took
"""

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pyarrow.parquet as pq

from sentloom.data.dataset import BATCH_ROWS, Dataset, scratch_table
from sentloom.data.shapes import Shape
from sentloom.files import new_file

Kind = Literal["encoder", "writer", "dataset"]
MODEL, DATA = "model", "data.parquet"
FACTS = b"sentloom"  # key of the Parquet metadata that holds what a Dataset knows besides its rows
STORED = ("files", "place_name", "sha256", "used", "skipped", "notes", "sources")
PREFIX = "stage:"  # before the name of a stage whose artifact is meant


def _no_rows(part: str) -> Dataset:
    raise LookupError(f"a model has no rows {part}")


@dataclass(frozen=True)
class Artifact:
    """What a stage produced, or a model that the plan names."""

    kind: Kind
    source: str  # an encoder or a writer: its model folder or name; a dataset: its folder
    fingerprint: str  # of its content
    record: Mapping[str, Any] = field(default_factory=dict)  # result.json; empty if no stage produced it
    rows: Callable[[str], Dataset] = _no_rows  # part ("" or "pairs") -> the rows of a dataset


def content_key(**parts: Any) -> str:
    """The hash of plain values."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:20]


def store_dataset(data: Dataset, path: Path) -> None:
    """Write a dataset as Parquet, with the origin of every row: opened again, it is the same dataset."""
    facts = {name: getattr(data, name) for name in STORED} | {"shape": str(data.shape)}
    facts |= {name: dict(facts[name]) for name in ("used", "skipped")}
    schema = data.table.schema.with_metadata({FACTS: json.dumps(facts).encode()})
    with new_file(path) as part, pq.ParquetWriter(part, schema, compression="zstd", write_page_checksum=True) as writer:
        for batch in data.table.to_batches(max_chunksize=BATCH_ROWS):
            writer.write_batch(batch.cast(schema))


def open_dataset(path: Path) -> Dataset:
    """A dataset that `store_dataset` wrote."""
    file = pq.ParquetFile(path)
    facts: dict[str, Any] = json.loads(file.schema_arrow.metadata[FACTS])
    schema = pa.schema(list(file.schema_arrow))
    batches = (batch.cast(schema) for batch in file.iter_batches(BATCH_ROWS))
    facts |= {name: tuple(facts[name]) for name in ("files", "notes", "sources")}
    return Dataset(**facts | {"shape": Shape(facts["shape"]), "table": scratch_table(schema, batches)})


def named_stage(value: str) -> str | None:
    """The stage that a value names; None if it is a file, a folder or a name of another kind."""
    return value.removeprefix(PREFIX).partition("/")[0] if value.startswith(PREFIX) else None


def named_part(value: str) -> str:
    """The part of a stage's dataset that a value names: "" or "pairs"."""
    return value.partition("/")[2]
