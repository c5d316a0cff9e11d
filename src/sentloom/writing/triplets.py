"""From a ledger to training data: `draw` filters the candidates, joins the rest to triplets and pairs, and sums up.

triplets.parquet   anchor, positive, negative
pairs.parquet      anchor, positive
reasons.parquet    why each candidate was dropped; empty: it was kept
summary.json       candidates dropped per filter, the distribution of scores, and random samples
"""

import hashlib
import heapq
import json
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
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
from sentloom.writing.writer import Kind

TRIPLETS, PAIRS, REASONS_FILE, SUMMARY = "triplets.parquet", "pairs.parquet", "reasons.parquet", "summary.json"
TEXTS = pa.large_string()
TRIPLET_SCHEMA = pa.schema([("anchor", TEXTS), ("positive", TEXTS), ("negative", TEXTS)])
PAIR_SCHEMA = pa.schema([("anchor", TEXTS), ("positive", TEXTS)])
REASON_SCHEMA = pa.schema(
    [("source", pa.int64()), ("kind", pa.string()), ("candidate", pa.int32()), ("reason", pa.string())]
)
GROUP = 1 << 14  # rows held before they are written
BINS = 20  # of scores, from 0 to 1
SAMPLES = 20  # of each kind, kept and dropped
VERDICT, RANK = "probability of the expected verdict", "1 / rank of the source"


@dataclass(frozen=True)
class Sample:
    """A candidate with its source; `reason` is empty if it was kept."""

    source: str
    text: str
    score: float
    reason: str
    style: str = ""
    cross_encoder: float | None = None


@dataclass(frozen=True)
class KindSummary:
    """The candidates of one kind."""

    kept: int
    dropped: dict[str, int]  # reason -> candidates
    histogram: list[int]  # candidates by score, in bins of equal width from 0 to 1
    kept_samples: list[Sample]
    dropped_samples: list[Sample]
    tokens_read: int = 0  # to write, without judgements
    tokens_written: int = 0
    relevance: dict[int, int] = field(default_factory=dict)  # queries by the cross-encoder's score, rounded down

    @property
    def written(self) -> int:
        """All candidates."""
        return self.kept + sum(self.dropped.values())


@dataclass(frozen=True)
class Summary:
    """A whole ledger under one set of filters."""

    sources: int  # that have been written for
    raw_rows: int  # of the raw data
    triplets: int
    pairs: int
    filtering: Filtering
    kinds: dict[Kind, KindSummary]
    endpoint_tokens: int = 0  # of all requests to an endpoint, with judgements and failures
    endpoint_cost: float = 0.0  # of these tokens, at the user's prices; 0 without prices
    unusable: dict[str, int] = field(default_factory=dict)  # reason -> answers of an endpoint

    @property
    def score(self) -> str:
        """What the scores of these kinds are."""
        if "query" not in self.kinds:
            return f"score: {VERDICT}"
        return f"score: {RANK}" if len(self.kinds) == 1 else f"score: {VERDICT}; of a query, {RANK}"

    @property
    def least_score(self) -> tuple[float, str]:
        """The lowest score that is kept, and what it is called."""
        if set(self.kinds) != {"query"}:
            return self.filtering.threshold, f"threshold {self.filtering.threshold:g}"
        first = self.filtering.round_trip
        place = "first" if first == 1 else f"among the first {first}"
        return (1 / first, f"a query must find its source {place}") if first else (0.0, "no round trip")

    def write(self, path: Path) -> None:
        """Write JSON; the same ledger and filters give the same bytes."""
        values = {**vars(self), "filtering": self.filtering.model_dump()}
        values["kinds"] = {kind: asdict(summary) for kind, summary in self.kinds.items()}
        with new_file(path) as part:
            part.write_text(json.dumps(values, indent=1, ensure_ascii=False) + "\n", "utf-8")


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
        fix = "leave it out, or write queries to another folder with --execution teacher=reranker"
        raise InputError("filters", problem, "", fix)


def _draw(ledger: Ledger, by: Filtering, rows: int | None, show_progress: bool) -> Summary:
    tally, folder = Tally(tuple(ledger.plan.prompts)), ledger.folder
    with (
        progress("filtering", len(ledger), "blocks", show_progress) as advance,
        _rows_to(folder / TRIPLETS, TRIPLET_SCHEMA, by) as triplets,
        _rows_to(folder / PAIRS, PAIR_SCHEMA, by) as pairs,
        _rows_to(folder / REASONS_FILE, REASON_SCHEMA, by) as reason_rows,
    ):
        for table in ledger.tables(rows):
            for candidates in _by_source(table):
                reasons = verdicts(candidates, by)
                tally.add(candidates, reasons)
                judged = list(zip(candidates, reasons, strict=True))
                reason_rows.add((row.source, row.kind, row.candidate, reason) for row, reason in judged)
                joined = join([row for row, reason in judged if reason == KEPT])
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


class Tally:
    """Counts candidates in a stream."""

    def __init__(self, kinds: Sequence[Kind]) -> None:
        self.sources = 0
        self._kinds = {kind: _KindTally() for kind in kinds}

    def add(self, rows: Sequence[Candidate], reasons: Sequence[str]) -> None:
        """Count the candidates of one source."""
        self.sources += 1
        for row, reason in zip(rows, reasons, strict=True):
            self._kinds[row.kind].add(row, reason)

    def summary(
        self,
        raw_rows: int,
        triplets: int,
        pairs: int,
        filtering: Filtering,
        answers: Answers | None = None,
    ) -> Summary:
        """The counts so far, with what the answers of an endpoint cost."""
        kinds = {kind: tally.summary() for kind, tally in self._kinds.items()}
        paid = (answers.usage.total, answers.cost, dict(sorted(answers.unusable.items()))) if answers else ()
        return Summary(self.sources, raw_rows, triplets, pairs, filtering, kinds, *paid)


class _KindTally:
    def __init__(self) -> None:
        self.reasons: Counter[str] = Counter()
        self.histogram = [0] * BINS
        self.relevance: Counter[int] = Counter()
        self.read = self.written = 0
        self.kept, self.dropped = _Sampled(), _Sampled()

    def add(self, row: Candidate, reason: str) -> None:
        self.reasons[reason] += 1
        self.read, self.written = self.read + row.tokens_read, self.written + row.tokens_written
        if row.cross_encoder is not None:
            self.relevance[math.floor(row.cross_encoder)] += 1
        if math.isfinite(row.score):
            self.histogram[min(int(row.score * BINS), BINS - 1)] += 1
        (self.dropped if reason else self.kept).add(row, reason)

    def summary(self) -> KindSummary:
        dropped = {reason: count for reason, count in self.reasons.most_common() if reason != KEPT}
        return KindSummary(
            self.reasons[KEPT], dropped, self.histogram, self.kept.samples(), self.dropped.samples(),
            self.read, self.written, dict(sorted(self.relevance.items())),
        )  # fmt: skip


class _Sampled:
    """A uniform sample of a stream: the rows with the greatest hashes, whatever their order."""

    def __init__(self) -> None:
        self._heap: list[tuple[bytes, Sample]] = []

    def add(self, row: Candidate, reason: str) -> None:
        key = hashlib.blake2b(f"{row.source} {row.kind} {row.candidate}".encode(), digest_size=16).digest()
        sample = Sample(row.source_text, row.text, row.score, reason, row.style, row.cross_encoder)
        if len(self._heap) < SAMPLES:
            heapq.heappush(self._heap, (key, sample))
        elif key > self._heap[0][0]:
            heapq.heapreplace(self._heap, (key, sample))

    def samples(self) -> list[Sample]:
        return [sample for _, sample in sorted(self._heap, key=lambda pair: pair[0], reverse=True)]
