"""Triplets out of a ledger: joined best with best, readable as data, filtered anew without a model."""

import json
import os
import resource

import pyarrow.parquet as pq
import pytest

from sentloom.data import read
from sentloom.data.shapes import Shape
from sentloom.errors import DiskError, InputError
from sentloom.writing.filters import KEPT, Candidate, Filtering, verdicts
from sentloom.writing.ledger import Ledger
from sentloom.writing.triplets import draw, join
from tests.training.killing import start
from tests.writing.ledgers import derived, fill, plan_of, raw_texts, rows_of

LOOSE = Filtering(threshold=0.5)


@pytest.fixture(scope="module")
def ledger(tmp_path_factory):
    raw = raw_texts(60)
    made = Ledger.begin(tmp_path_factory.mktemp("drawn") / "ledger", plan_of(raw, block=7))
    fill(made, raw)
    return made


def kept(kind, *scored):
    return [Candidate(0, "source", kind, at, text, score) for at, (text, score) in enumerate(scored)]


def test_best_is_joined_with_best():
    rows = kept("entailment", ("e1", 0.91), ("e2", 0.99), ("e3", 0.95)) + kept(
        "contradiction", ("c1", 0.9), ("c2", 1.0)
    )
    assert join(rows) == [("source", "e2", "c2"), ("source", "e3", "c1")]


def test_equal_scores_keep_their_order():
    rows = kept("entailment", ("e1", 0.9), ("e2", 0.9)) + kept("contradiction", ("c1", 0.9), ("c2", 0.9))
    assert join(rows) == [("source", "e1", "c1"), ("source", "e2", "c2")]


def test_a_source_without_a_contradiction_gives_pairs():
    assert join(kept("entailment", ("e1", 0.91), ("e2", 0.99))) == [("source", "e2"), ("source", "e1")]


def test_a_source_without_an_entailment_gives_nothing():
    assert join(kept("contradiction", ("c1", 0.99))) == []
    assert join([]) == []


def slowly(folder, by):
    """Triplets and pairs by loops over all rows."""
    rows = [Candidate(*(row[name] for name in Candidate._fields)) for row in rows_of(folder)]
    triplets, pairs = [], []
    for source in sorted({row.source for row in rows}):
        own = [row for row in rows if row.source == source]
        good = [row for row, why in zip(own, verdicts(own, by), strict=True) if why == KEPT]
        sides = {kind: [] for kind in ("entailment", "contradiction")}
        for row in sorted(good, key=lambda row: -row.score):
            sides[row.kind].append(row.text)
        anchor = own[0].source_text
        for positive, negative in zip(sides["entailment"], sides["contradiction"], strict=False):
            triplets.append((anchor, positive, [negative]))
        if not sides["contradiction"]:
            pairs += [(anchor, positive) for positive in sides["entailment"]]
    return triplets, pairs


def test_the_files_read_as_triplets_and_pairs(ledger):
    summary = draw(ledger, LOOSE)
    triplets, pairs = slowly(ledger.folder, LOOSE)
    assert triplets
    assert pairs
    data = read(ledger.folder / "triplets.parquet")
    assert data.shape is Shape.TRIPLETS
    assert list(zip(*data.take(range(len(data))).values(), strict=True)) == triplets
    data = read(ledger.folder / "pairs.parquet")
    assert data.shape is Shape.PAIRS
    assert list(zip(*data.take(range(len(data))).values(), strict=True)) == pairs
    assert (summary.triplets, summary.pairs) == (len(triplets), len(pairs))


def test_every_candidate_has_its_reason(ledger):
    draw(ledger, LOOSE)
    rows = rows_of(ledger.folder)
    reasons = pq.read_table(ledger.folder / "reasons.parquet")
    assert json.loads(reasons.schema.metadata[b"filtering"])["threshold"] == 0.5
    names = ("source", "kind", "candidate")
    assert [tuple(reason[name] for name in names) for reason in reasons.to_pylist()] == [
        tuple(row[name] for name in names) for row in rows
    ]
    for row, reason in zip(rows, reasons.to_pylist(), strict=True):
        if reason["reason"] == "score":
            assert row["score"] < 0.5
        elif reason["reason"] == KEPT:
            assert row["score"] >= 0.5


def test_filtering_anew_is_the_same_as_filtering_first(ledger):
    draw(ledger, LOOSE)
    first = derived(ledger.folder)
    draw(ledger, Filtering(threshold=0.95, words=3))
    assert derived(ledger.folder) != first
    draw(ledger, LOOSE)
    assert derived(ledger.folder) == first


def test_fewer_sources_are_drawn_on_request(ledger):
    summary = draw(ledger, LOOSE, rows=20)
    assert summary.sources == 20
    anchors = read(ledger.folder / "triplets.parquet").column("anchor").to_pylist()
    assert {int(anchor.split()[-1]) for anchor in anchors} <= set(range(20))


def test_scores_that_the_ledger_does_not_have_are_no_filter(ledger):
    draw(ledger, LOOSE)
    before = derived(ledger.folder)
    with pytest.raises(InputError, match=r"(?s)needs scores of a cross-encoder.*--execution teacher=reranker"):
        draw(ledger, Filtering(cross_encoder=0.0))
    assert derived(ledger.folder) == before


def test_a_ledger_without_blocks_gives_empty_files(tmp_path):
    summary = draw(Ledger.begin(tmp_path, plan_of(raw_texts())))
    assert (summary.sources, summary.triplets, summary.pairs) == (0, 0, 0)
    assert pq.read_table(tmp_path / "triplets.parquet").column_names == ["anchor", "positive", "negative"]


def test_a_full_disk_leaves_what_was_there(ledger, tmp_path):
    draw(ledger, LOOSE)
    before = derived(ledger.folder)

    def full():
        resource.setrlimit(resource.RLIMIT_FSIZE, (200, 200))  # the kernel refuses to write more, as a full disk does
        with pytest.raises(DiskError, match=r"(?s)\.parquet: File too large.*[Ff]ree some space"):
            draw(ledger, Filtering(threshold=0.1))

    assert os.waitpid(start(full, tmp_path), 0)[1] == 0, (tmp_path / "fault.txt").read_text()
    assert derived(ledger.folder) == before
    assert not list(ledger.folder.glob(".*"))
