"""The ledger: blocks whole or missing, damage found, another plan refused, growth without a row lost or doubled."""

import os
import time

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sentloom.errors import DiskError, InputError
from sentloom.files import STALE
from sentloom.writing.ledger import SCHEMA, Ledger
from sentloom.writing.sampling import Sampling
from sentloom.writing.synthesize import make_block
from sentloom.writing.writer import WritingPrompt, Written
from tests.writing.ledgers import PROMPTS, Hashes, fill, plan_of, raw_texts, rows_of


@pytest.fixture
def raw():
    return raw_texts(30)


@pytest.fixture
def ledger(raw, tmp_path):
    made = Ledger.begin(tmp_path / "ledger", plan_of(raw))
    fill(made, raw)
    return made


def test_every_candidate_is_a_row(ledger, raw):
    rows = rows_of(ledger.folder)
    names = [(row["source"], row["kind"], row["candidate"]) for row in rows]
    assert names == [(s, k, c) for s in range(30) for k in ("entailment", "contradiction") for c in (0, 1)]
    texts = raw.column("text").to_pylist()
    assert all(row["source_text"] == texts[row["source"]] for row in rows)
    assert {row["writer"] for row in rows} == {"a" * 64}
    assert {row["seed"] for row in rows} == {1}
    first = {row["prompt"] for row in rows if row["kind"] == "entailment"}
    assert first == {'Write two sentences that are entailment. Sentence 1: "{}" Sentence 2:'}


def test_a_score_is_of_the_wanted_verdict(ledger):
    for row in rows_of(ledger.folder):
        true = Hashes().judge([(row["source_text"], row["text"])])[0]
        assert row["score"] == (true if row["kind"] == "entailment" else 1 - true)


def test_blocks_are_cut_by_row_number(ledger):
    assert sorted(path.name for path in (ledger.folder / "blocks").iterdir()) == [f"{n:06d}.parquet" for n in range(8)]
    assert [ledger.read(7)["source"][at].as_py() for at in (0, -1)] == [28, 29]
    assert len(ledger) == 8
    assert ledger.missing(30) == []


def test_missing_blocks_are_made_and_others_left(ledger, raw):
    before = rows_of(ledger.folder)
    (ledger.folder / "blocks/000002.parquet").unlink()
    (ledger.folder / "blocks/000007.parquet").write_bytes(b"PAR1 not really PAR1")
    assert ledger.missing(30) == [2, 7]
    stamp = (ledger.folder / "blocks/000001.parquet").stat().st_mtime_ns
    fill(ledger, raw)
    assert rows_of(ledger.folder) == before
    assert (ledger.folder / "blocks/000001.parquet").stat().st_mtime_ns == stamp


def test_a_half_written_block_does_not_count(ledger):
    (ledger.folder / "blocks/.000009.parquet.x1.parquet").write_bytes(b"half")
    assert len(rows_of(ledger.folder)) == 120


def test_what_killed_runs_left_goes_when_it_is_old(ledger, raw):
    old, new = (ledger.folder / f"blocks/.000009.parquet.{name}.parquet" for name in ("old", "new"))
    for path in (old, new):
        path.write_bytes(b"half")
    os.utime(old, (time.time() - STALE - 1,) * 2)
    Ledger.begin(ledger.folder, plan_of(raw))
    assert not old.exists()
    assert new.exists()


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(at=st.floats(0, 1, exclude_max=True), bit=st.integers(0, 7))
def test_a_damaged_block_is_found_or_harmless(ledger, at, bit):
    path = ledger.folder / "blocks/000003.parquet"
    sound, table = path.read_bytes(), ledger.read(3)
    bytes_ = bytearray(sound)
    bytes_[int(at * len(bytes_))] ^= 1 << bit
    path.write_bytes(bytes_)
    try:
        again = ledger.read(3)
        assert again is None or again.equals(table)
    finally:
        path.write_bytes(sound)


@pytest.mark.parametrize("keep", [0, 1, 100, -8, -1])
def test_a_cut_block_is_found(ledger, keep):
    path = ledger.folder / "blocks/000003.parquet"
    path.write_bytes(path.read_bytes()[:keep])
    assert ledger.read(3) is None
    with pytest.raises(InputError, match=r"000003.parquet: the block is damaged") as caught:
        list(ledger.tables())
    assert "only missing blocks are written" in str(caught.value)


def test_a_block_of_another_plan_does_not_count(ledger, raw, tmp_path):
    other = Ledger.begin(tmp_path / "other", plan_of(raw, sampling=Sampling(candidates=2, seed=2)))
    fill(other, raw)
    path = "blocks/000001.parquet"
    (ledger.folder / path).write_bytes((other.folder / path).read_bytes())
    assert ledger.missing(30) == [1]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"writer": "b" * 64}, "writer aaaaaaaaaaaa... (now bbbbbbbbbbbb...)"),
        ({"raw": "1" * 64, "rows": 31}, "raw 000000000000... (now 111111111111...); rows 30 (now 31)"),
        ({"sampling": Sampling(candidates=2, top_p=0.8)}, "sampling.top_p 0.9 (now 0.8)"),
        ({"block": 5}, "block 4 (now 5)"),
        ({"backend": "ctranslate2"}, "backend 'hashes' (now 'ctranslate2')"),
        ({"judge": "so {}, {}?"}, "judge 'if {}, {}?' (now 'so {}, {}?')"),
        ({"encoder": "b" * 64}, "encoder None (now bbbbbbbbbbbb...)"),
        (
            {"prompts": {**PROMPTS, "entailment": (WritingPrompt(parts=("a", "b")),)}},
            "prompts.entailment.0.parts.0 'Write two sentences that are entailment. S...' (now 'a'); "
            "prompts.entailment.0.parts.1 '\" Sentence 2:' (now 'b')",
        ),
    ],
)
def test_another_plan_is_refused_and_told(ledger, raw, changes, said):
    with pytest.raises(InputError) as caught:
        Ledger.begin(ledger.folder, plan_of(raw, **changes))
    assert f"the ledger was made with {said}. Expected" in str(caught.value)
    assert "choose another folder" in str(caught.value)
    assert Ledger.open(ledger.folder).plan == ledger.plan


def test_more_rows_extend_a_ledger(raw, tmp_path, ledger):
    grown = Ledger.begin(tmp_path / "grown", plan_of(raw))
    fill(grown, raw, rows=10)
    assert len(rows_of(grown.folder)) == 40  # two blocks, and half of the third
    assert grown.missing(10) == []
    assert grown.missing(8) == []
    assert grown.missing(11) == [2]
    stamp = (grown.folder / "blocks/000001.parquet").stat().st_mtime_ns
    fill(grown, raw, rows=23)
    fill(grown, raw)
    assert rows_of(grown.folder) == rows_of(ledger.folder)
    assert (grown.folder / "blocks/000001.parquet").stat().st_mtime_ns == stamp


def test_fewer_rows_read_only_those(ledger, raw, tmp_path):
    small = Ledger.begin(tmp_path / "small", plan_of(raw))
    fill(small, raw, rows=10)
    first = pa.concat_tables(ledger.tables(10)).to_pylist()
    assert first == rows_of(small.folder)


def test_a_shorter_block_never_replaces_a_longer_one(ledger, raw):
    before = rows_of(ledger.folder)
    ledger.write(2, make_block(ledger.plan, range(8, 10), raw.take([8, 9])["text"], Hashes()))
    assert rows_of(ledger.folder) == before


def test_what_is_no_ledger_is_told(tmp_path):
    with pytest.raises(InputError, match=r"there is no plan.json. Expected a ledger"):
        Ledger.open(tmp_path)
    (tmp_path / "plan.json").write_text("{}")
    with pytest.raises(InputError, match="the plan cannot be read"):
        Ledger.open(tmp_path)


def test_a_folder_that_cannot_be_written_is_told(raw, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(DiskError, match=r"file/ledger/plan\.json: Not a directory"):
        Ledger.begin(tmp_path / "file/ledger", plan_of(raw))


def test_texts_that_no_reader_takes_are_mended(raw):
    class Odd(Hashes):
        def write(self, sources, kind, prompt):
            return [Written("a\0b") for _ in sources]

    table = make_block(plan_of(raw), range(2), raw.take([0, 1])["text"], Odd())
    assert set(table["text"].to_pylist()) == {"ab"}
    assert table.schema.equals(SCHEMA)
