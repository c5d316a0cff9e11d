"""The ledger of a synthesis: one row per candidate, in blocks of sources that are complete or absent.

    plan.json              what every row depends on, written first
    blocks/000012.parquet  all candidates of the thirteenth block of sources, with the plan's hash and their own

Only the blocks that exist determine what is done. A block is a pure function of the plan and its number: it can be
written again, even by another process at the same time, and is renamed when it is complete.
"""

import hashlib
import re
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from sentloom.errors import InputError
from sentloom.files import STALE, new_file
from sentloom.writing.answers import PRINTED_LIST
from sentloom.writing.sampling import Sampling
from sentloom.writing.writer import Kind, WritingPrompt

PLAN, BLOCKS = "plan.json", "blocks"
SCHEMA = pa.schema(
    [
        ("source", pa.int64()),  # row of the raw data, from 0
        ("source_text", pa.string()),
        ("kind", pa.string()),
        ("style", pa.string()),  # of a query: question, keywords, title, statement
        ("candidate", pa.int32()),
        ("prompt", pa.string()),  # with {} for the source
        ("seed", pa.int64()),
        ("writer", pa.string()),  # the SHA-256 of the model, or the endpoint
        ("text", pa.string()),
        ("finished", pa.bool_()),  # false: it was cut at its greatest length
        ("tokens_read", pa.int32()),
        ("tokens_written", pa.int32()),
        ("score", pa.float64()),  # the probability of the judgement that the kind needs; of a query, 1 / its rank
        ("bm25_rank", pa.int32()),  # of the source among all texts, for a query; 0: not among the first hundred
        ("encoder_rank", pa.int32()),
        ("cross_encoder", pa.float32()),  # the score of a query and its source; null without a cross-encoder
    ]
)
BLOCK_NAME = re.compile(r"(\d{6,})\.parquet")
SHOWN_HASH, SHOWN_TEXT = 12, 45  # characters
RESUME = "give the raw text and the model again: only missing blocks are written"


class LedgerPlan(BaseModel):
    """What every row of a ledger depends on."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    version: Literal[3] = 3
    raw: str  # SHA-256 of the raw data
    rows: int  # of the raw data
    writer: str  # SHA-256 of the model, or an endpoint with the name of its model
    prompts: dict[Kind, tuple[WritingPrompt, ...]]
    judge: str  # the prompt of the judgements, with {} for each sentence
    encoder: str | None = None  # the fingerprint of the encoder that queries are searched with
    teacher: str | None = None  # the identity of the cross-encoder that scores queries
    sampling: Sampling
    backend: str
    block: int = Field(ge=1)  # sources


class Ledger:
    """A folder of blocks of one plan. Blocks carry the hash of its file, so that later versions can read them."""

    def __init__(self, folder: Path, plan: str) -> None:
        """`plan` is the text of plan.json."""
        self.folder, self.plan = folder, LedgerPlan.model_validate_json(plan)
        self._fingerprint = hashlib.sha256(plan.encode()).hexdigest().encode()

    @classmethod
    def open(cls, folder: Path) -> "Ledger":
        """Open an existing ledger."""
        try:
            return cls(folder, (folder / PLAN).read_text("utf-8"))
        except FileNotFoundError:
            expected = "a ledger, with a plan and blocks"
            raise InputError(
                str(folder), f"there is no {PLAN}", expected, "check the folder, or give raw text to begin"
            ) from None
        except (ValidationError, UnicodeDecodeError) as error:
            problem = f"the plan cannot be read ({_reason(error)})"
            raise InputError(str(folder / PLAN), problem, "a plan of this version", "choose another folder") from None

    @classmethod
    def begin(cls, folder: Path, plan: LedgerPlan) -> "Ledger":
        """Start a ledger, or open the existing one if it has the same plan."""
        if not (folder / PLAN).exists():
            with new_file(folder / PLAN) as part:
                part.write_text(plan.model_dump_json(indent=1) + "\n", "utf-8")
        ledger = cls.open(folder)
        if differences := _differences(ledger.plan, plan):
            fix = "give what it was made with, or choose another folder for what is new"
            raise InputError(str(folder), f"the ledger was made with {'; '.join(differences)}", "the same values", fix)
        ledger._sweep()
        return ledger

    def span(self, number: int, rows: int | None = None) -> range:
        """The sources of a block, among the first `rows`."""
        start = number * self.plan.block
        return range(start, min(start + self.plan.block, self.plan.rows if rows is None else rows))

    def missing(self, rows: int) -> list[int]:
        """The blocks that lack some of the first `rows` sources."""
        return [number for number in range(-(-rows // self.plan.block)) if not self.has(number, rows)]

    def has(self, number: int, rows: int) -> bool:
        """Whether a block has all of its sources among the first `rows`."""
        table = self.read(number)
        return table is not None and len(self.span(number, rows)) <= _sources(table)

    def read(self, number: int) -> pa.Table | None:
        """A block's rows; None if it is missing, damaged, or of another plan."""
        try:
            table = pq.ParquetFile(pa.BufferReader(self._place(number).read_bytes())).read()
            facts = table.schema.metadata
            sound = facts[b"sha256"] == _digest(table) and facts[b"plan"] == self._fingerprint
            return table if sound and table.schema.equals(SCHEMA) and not self._printed(table) else None
        except (OSError, pa.ArrowException, ValueError, KeyError, TypeError):
            return None

    def _printed(self, table: pa.Table) -> bool:
        """Whether an endpoint's block has a list of parts for a text, as earlier versions kept them."""
        of_endpoint = self.plan.backend == "endpoint"
        return of_endpoint and bool(pc.any(pc.match_substring_regex(table["text"], PRINTED_LIST)).as_py())

    def write(self, number: int, table: pa.Table) -> None:
        """Write a block, completely or not at all. One with as many sources stays: others may have read it already."""
        kept = self.read(number)
        if kept is not None and _sources(kept) >= _sources(table):
            return
        facts = {b"plan": self._fingerprint, b"sha256": _digest(table)}
        sink = pa.BufferOutputStream()
        pq.write_table(table.replace_schema_metadata(facts), sink, compression="zstd")
        with new_file(self._place(number)) as part:
            part.write_bytes(sink.getvalue())

    def tables(self, rows: int | None = None) -> Iterator[pa.Table]:
        """The rows of all existing blocks, block by block; with `rows`, only those of the first sources."""
        for number in self._numbers():
            if rows is not None and not self.span(number, rows):
                return
            table = self.read(number)
            if table is None:
                raise InputError(
                    str(self._place(number)), "the block is damaged", "the block as it was written", RESUME
                )
            yield table if rows is None else table.filter(pc.field("source") < rows)

    def __len__(self) -> int:
        """The number of existing blocks."""
        return len(self._numbers())

    def _numbers(self) -> list[int]:
        names = [BLOCK_NAME.fullmatch(path.name) for path in (self.folder / BLOCKS).glob("*.parquet")]
        return sorted(int(name[1]) for name in names if name)  # a name that starts with a dot is incomplete

    def _place(self, number: int) -> Path:
        return self.folder / BLOCKS / f"{number:06d}.parquet"

    def _sweep(self) -> None:
        """Remove half-written files of killed runs, once nobody can be writing them."""
        for path in [*self.folder.glob(".*.parquet"), *(self.folder / BLOCKS).glob(".*.parquet")]:
            with suppress(FileNotFoundError):  # another run removed it
                if path.stat().st_mtime < time.time() - STALE:
                    path.unlink()


def _reason(error: ValueError) -> str:
    if not isinstance(error, ValidationError):
        return str(error)
    first = error.errors()[0]
    return f"{'.'.join(map(str, first['loc'])) or 'JSON'}: {first['msg']}"


def _sources(table: pa.Table) -> int:
    return len(table["source"].unique())


def _digest(table: pa.Table) -> bytes:
    """A hash of the cells, which does not depend on the version of Arrow."""
    digest = hashlib.sha256()
    for name, kind in zip(SCHEMA.names, SCHEMA.types, strict=True):
        column = table[name]
        cells = "\0".join(column.to_pylist()).encode() if pa.types.is_string(kind) else column.to_numpy().tobytes()
        digest.update(cells + b"\0")
    return digest.hexdigest().encode()


def _differences(there: LedgerPlan, now: LedgerPlan) -> list[str]:
    """As in "sampling.top_p 0.9 (now 0.95)"."""
    old, new = (_flat(plan.model_dump(mode="json")) for plan in (there, now))
    names = [name for name in dict.fromkeys([*old, *new]) if old.get(name) != new.get(name)]
    return [f"{name} {_shown(old.get(name))} (now {_shown(new.get(name))})" for name in names]


def _flat(values: Mapping[Any, Any], before: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in values.items():
        nested = dict(enumerate(value)) if isinstance(value, list) else value
        flat |= _flat(nested, f"{before}{name}.") if isinstance(nested, dict) else {f"{before}{name}": value}
    return flat


def _shown(value: Any) -> str:
    is_hash = isinstance(value, str) and re.fullmatch("[0-9a-f]{64}", value)
    if is_hash:
        return f"{value[:SHOWN_HASH]}..."
    return repr(value) if len(str(value)) <= SHOWN_TEXT else repr(f"{value[: SHOWN_TEXT - 3]}...")
