"""The command that writes with an endpoint, and what a ledger holds afterwards."""

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from sentloom.writing.answers import NO_CHANCE

KEY = "SENTLOOM_WRITER_KEY"
SECRET = "sk-Very-Secret-0123456789"
TEXTS = [f"Parcel {number} waits at the office." for number in range(6)]


def arguments(folder: Path, url: str, execution: str = "block=2") -> list[object]:
    """Writes entailments and contradictions for a few texts; whatever is not empty passes the filters."""
    (folder / "raw.txt").write_text("\n".join(TEXTS) + "\n", "utf-8")
    keeping = "threshold=0,copied=1,language=false,near_duplicates=1"
    options = ["--writer", url, "--writer-model", "small", "--filters", keeping, "--execution", execution]
    return ["lab", "synthesize", folder / "raw.txt", "-o", folder / "ledger", *options]


def rows(folder: Path) -> list[dict[str, object]]:
    blocks = sorted((folder / "ledger/blocks").glob("0*.parquet"))
    return pa.concat_tables([pq.read_table(path) for path in blocks]).to_pylist()


def texts(folder: Path) -> list[object]:
    return [row["text"] for row in rows(folder)]


def unusable(folder: Path) -> dict[str, int]:
    """Unusable answers by reason. The server of these tests states no token probabilities, which is no fault here."""
    reasons = json.loads((folder / "ledger/summary.json").read_text("utf-8"))["unusable"]
    return {reason: count for reason, count in reasons.items() if reason != NO_CHANCE}


def contents(folder: Path) -> Iterator[str]:
    """Every file below a folder as text; Parquet files, which are compressed, as their cells."""
    for path in (path for path in folder.rglob("*") if path.is_file()):
        if path.suffix == ".parquet":
            table = pq.read_table(path)
            yield f"{table.to_pylist()} {table.schema.metadata}"
        else:
            yield path.read_bytes().decode("latin-1")


def digest(table: pa.Table) -> bytes:
    """The hash of a block's cells that is stored with it."""
    columns = ((table[name], kind) for name, kind in zip(table.schema.names, table.schema.types, strict=True))
    cells = ("\0".join(column.to_pylist()).encode() if pa.types.is_string(kind) else column.to_numpy().tobytes() for column, kind in columns)  # fmt: skip
    return hashlib.sha256(b"".join(cell + b"\0" for cell in cells)).hexdigest().encode()
