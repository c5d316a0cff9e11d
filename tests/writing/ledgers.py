"""Ledgers for tests: a backend whose texts and scores are hashes of what it is asked, and what lies in a ledger."""

import hashlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from sentloom.data.dataset import Dataset
from sentloom.data.shapes import Shape
from sentloom.writing.ledger import Ledger, LedgerPlan
from sentloom.writing.sampling import Sampling
from sentloom.writing.synthesize import make_block
from sentloom.writing.writer import Kind, SourceText, Wording, WritingPrompt, Written, prompts_for
from tests.small_data import build_dataset
from tests.writing.small_synthesizers import TRIPLETS

PROMPTS = prompts_for(("entailment", "contradiction"), None, None, Wording())


class Hashes:
    """Any text and any score, decided by the request alone; now and then an empty text, or the source itself."""

    name = "hashes"

    def write(self, sources: Sequence[SourceText], kind: Kind, prompt: WritingPrompt) -> list[Written]:
        return [Written(self._text(source, kind)) for source in sources]

    def judge(self, pairs: Sequence[tuple[str, str]]) -> np.ndarray:
        return np.array([int.from_bytes(digest(*pair)[:4]) / 2**32 for pair in pairs])

    def _text(self, source: SourceText, kind: Kind) -> str:
        number = digest(source.row, kind, source.candidate)[0]
        return {0: "", 1: source.text.upper()}.get(number % 16, f"{kind} {number % 64} of {source.text}")


def digest(*parts: object) -> bytes:
    return hashlib.sha256(repr(parts).encode()).digest()


def raw_texts(rows: int = 30) -> Dataset:
    return build_dataset(
        Shape.TEXTS, [(f"{TRIPLETS[row % len(TRIPLETS)][0]} {row}",) for row in range(rows)], "raw.txt"
    )


def plan_of(texts: Dataset, /, **changes: object) -> LedgerPlan:
    values = {"writer": "a" * 64, "prompts": PROMPTS, "judge": "if {}, {}?", "sampling": Sampling(candidates=2), "backend": "hashes", "block": 4}  # fmt: skip
    return LedgerPlan(**{"raw": texts.sha256, "rows": len(texts), **values, **changes})


def fill(ledger: Ledger, raw: Dataset, rows: int | None = None) -> None:
    """What a run does, without a model."""
    count = len(raw) if rows is None else rows
    for number in ledger.missing(count):
        span = ledger.span(number, count)
        ledger.write(number, make_block(ledger.plan, span, raw.take(span)["text"], Hashes()))


def rows_of(folder: Path) -> list[dict]:
    """Every row that lies in a ledger, in order."""
    return pa.concat_tables(Ledger.open(folder).tables()).to_pylist()


def derived(folder: Path) -> dict[str, bytes]:
    names = ("triplets.parquet", "pairs.parquet", "reasons.parquet", "summary.json")
    return {name: (folder / name).read_bytes() for name in names}
