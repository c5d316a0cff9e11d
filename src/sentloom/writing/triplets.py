"""Triplets and pairs from a ledger: filtered, joined and written block by block, without a model.

triplets.parquet  anchor, positive, negative: a source, its entailment and its contradiction
pairs.parquet     anchor, positive: from sources whose contradictions were all dropped; a query and its source; a source
                  and its paraphrase
reasons.parquet   source, kind, candidate, reason: for every candidate, empty if it was kept
summary.json      written last
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from sentloom.errors import InputError
from sentloom.files import new_file
from sentloom.locks import in_turn
from sentloom.progress import progress
from sentloom.writing.answers import ANSWERS, Answers
from sentloom.writing.filters import KEPT, Candidate, Filtering, verdicts
from sentloom.writing.ledger import Ledger, LedgerPlan
from sentloom.writing.summary import Summary, Tally

TRIPLETS, PAIRS, REASONS_FILE, SUMMARY = "triplets.parquet", "pairs.parquet", "reasons.parquet", "summary.json"
TEXTS = pa.large_string()
TRIPLET_SCHEMA = pa.schema([("anchor", TEXTS), ("positive", TEXTS), ("negative", TEXTS)])
PAIR_SCHEMA = pa.schema([("anchor", TEXTS), ("positive", TEXTS)])
REASON_SCHEMA = pa.schema(
    [("source", pa.int64()), ("kind", pa.string()), ("candidate", pa.int32()), ("reason", pa.string())]
)
GROUP = 1 << 14  # rows held before they are written


def draw(
    ledger: Ledger, filtering: Filtering | None = None, *, rows: int | None = None, show_progress: bool = True
) -> Summary:
    """Filter the ledger, for the first `rows` sources or for all, and write the files listed above.

    Two processes take turns, so that all files come from one of them.
    """
    check_filters(ledger.plan, filtering or Filtering())
    with in_turn(ledger.folder / SUMMARY):
        return _draw(ledger, filtering or Filtering(), rows, show_progress)


def check_filters(plan: LedgerPlan, by: Filtering) -> None:
    """Refuse to filter by scores that the ledger does not have."""
    if by.cross_encoder is not None and plan.teacher is None:
        problem = "cross_encoder needs scores of a cross-encoder, and this ledger has none"
        fix = "leave it out, or write queries to another folder with --execution teacher=embedded"
        raise InputError("filters", problem, "", fix)


def _draw(ledger: Ledger, by: Filtering, rows: int | None, show_progress: bool) -> Summary:
    tally, folder = Tally(tuple(ledger.plan.prompts)), ledger.folder
    with (
        progress("filtering", len(ledger), "blocks", show_progress) as advance,
        _rows_to(folder / TRIPLETS, TRIPLET_SCHEMA, by) as triplets,
        _rows_to(folder / PAIRS, PAIR_SCHEMA, by) as pairs,
        _rows_to(folder / REASONS_FILE, REASON_SCHEMA, by) as reasons,
    ):
        for table in ledger.tables(rows):
            for candidates in _by_source(table):
                found = verdicts(candidates, by)
                tally.add(candidates, found)
                reasons.add(
                    (row.source, row.kind, row.candidate, why) for row, why in zip(candidates, found, strict=True)
                )
                joined = join([row for row, why in zip(candidates, found, strict=True) if why == KEPT])
                triplets.add(row for row in joined if len(row) == 3)
                pairs.add(row for row in joined if len(row) == 2)
            advance(1)
    paid = Answers(folder / ANSWERS)
    summary = tally.summary(ledger.plan.rows, triplets.total, pairs.total, by, paid)
    summary.write(folder / SUMMARY)
    return summary


def join(kept: Sequence[Candidate]) -> list[tuple[str, ...]]:
    """The rows of one source: triplets or pairs of its sentences, and pairs of queries and paraphrases."""
    ranked = sorted(kept, key=lambda row: (-row.score, row.candidate))
    queries = [(row.text, row.source_text) for row in ranked if row.kind == "query"]
    paraphrases = [(row.source_text, row.text) for row in ranked if row.kind == "paraphrase"]
    return [*_triplets(ranked), *queries, *paraphrases]


def _triplets(ranked: Sequence[Candidate]) -> list[tuple[str, ...]]:
    """Entailments and contradictions, best with best; pairs without contradictions."""
    positives, negatives = (
        [row.text for row in ranked if row.kind == kind] for kind in ("entailment", "contradiction")
    )
    anchors = [row.source_text for row in ranked]
    if not negatives:
        return list(zip(anchors, positives, strict=False))
    return list(zip(anchors, positives, negatives, strict=False))  # as many as the shorter list


def _by_source(table: pa.Table) -> Iterator[list[Candidate]]:
    columns = [table[name].to_pylist() for name in Candidate._fields]
    rows = (Candidate(*cells) for cells in zip(*columns, strict=True))
    for _, group in groupby(rows, attrgetter("source")):
        yield list(group)


class _Rows:
    """Buffers rows for a Parquet file."""

    def __init__(self, writer: pq.ParquetWriter, schema: pa.Schema) -> None:
        self._writer, self._schema = writer, schema
        self._held: list[tuple[Any, ...]] = []
        self.total = 0

    def add(self, rows: Iterator[tuple[Any, ...]]) -> None:
        self._held += rows
        if len(self._held) >= GROUP:
            self.flush()

    def flush(self) -> None:
        if self._held:
            columns = zip(zip(*self._held, strict=True), self._schema.types, strict=True)
            arrays = [pa.array(cells, kind) for cells, kind in columns]
            self._writer.write_table(pa.table(arrays, schema=self._schema))
        self.total, self._held = self.total + len(self._held), []


@contextmanager
def _rows_to(path: Path, schema: pa.Schema, by: Filtering) -> Iterator[_Rows]:
    """A Parquet file that is renamed when complete, with the filters in its metadata."""
    described = schema.with_metadata({"filtering": by.model_dump_json()})
    with new_file(path) as part, pq.ParquetWriter(part, described, compression="zstd") as writer:
        rows = _Rows(writer, described)
        yield rows
        rows.flush()
