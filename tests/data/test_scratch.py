"""Scratch tables return the same rows, leave no files, take no memory, and report a full disk clearly."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sentloom.data.dataset import keep_rows, scratch_folder, scratch_table, take_rows
from sentloom.errors import SentloomError

SCHEMA = pa.schema([("text", pa.large_string()), ("negatives", pa.list_(pa.large_string()))])


def batch(*texts: str) -> pa.RecordBatch:
    return pa.record_batch([pa.array(list(texts), pa.large_string()), pa.array([[t] for t in texts])], schema=SCHEMA)


def test_rows_are_returned_in_order() -> None:
    table = scratch_table(SCHEMA, iter([batch("b", "ä"), batch("a")]))
    assert table.schema == SCHEMA
    assert table.to_pydict() == {"text": ["b", "ä", "a"], "negatives": [["b"], ["ä"], ["a"]]}


def test_no_batches_give_an_empty_table() -> None:
    assert scratch_table(SCHEMA, []).num_rows == 0


def test_no_file_remains(scratch: Path) -> None:
    table = scratch_table(SCHEMA, [batch("a")])
    assert scratch.is_dir()
    assert not list(scratch.iterdir())
    assert table.num_rows == 1


def test_the_table_takes_no_arrow_memory() -> None:
    before = pa.total_allocated_bytes()
    table = scratch_table(SCHEMA, (batch("x" * 1_000_000) for _ in range(20)))
    assert table.nbytes > 20_000_000
    assert pa.total_allocated_bytes() - before < 1_000_000


def test_errors_of_the_producer_pass_unchanged() -> None:
    def broken() -> Iterator[pa.RecordBatch]:
        yield batch("a")
        raise FileNotFoundError("the source is gone")

    with pytest.raises(FileNotFoundError, match="the source is gone"):
        scratch_table(SCHEMA, broken())


def test_the_error_names_a_folder_that_cannot_be_created(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("SENTLOOM_SCRATCH", str(tmp_path / "file" / "below"))
    with pytest.raises(SentloomError, match=r"(?s)file/below.*SENTLOOM_SCRATCH") as caught:
        scratch_table(SCHEMA, [batch("a")])
    assert caught.value.exit_code == 2


FULL_DISK = """
import resource, pyarrow as pa
from sentloom.data.dataset import scratch_table
from sentloom.errors import SentloomError
resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))  # the kernel refuses to write more, as a full disk does
schema = pa.schema([("text", pa.large_string())])
try:
    scratch_table(schema, (pa.record_batch([pa.array(["x" * 100_000], pa.large_string())], schema=schema)
                           for _ in range(100)))
except SentloomError as error:
    print(error)
"""


def test_the_error_for_a_full_disk_names_folder_and_variable(scratch: Path) -> None:
    done = subprocess.run([sys.executable, "-c", FULL_DISK], check=False, capture_output=True, text=True)
    assert str(scratch) in done.stdout, done.stderr
    assert "SENTLOOM_SCRATCH" in done.stdout
    assert "Traceback" not in done.stderr


def test_the_folder_follows_the_variables(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert scratch_folder() == tmp_path / "scratch"
    monkeypatch.delenv("SENTLOOM_SCRATCH")
    monkeypatch.setenv("SENTLOOM_CACHE", "/own")
    assert scratch_folder() == Path("/own")
    monkeypatch.delenv("SENTLOOM_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", "/cache")
    assert scratch_folder() == Path("/cache/sentloom")
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", "/home/someone")
    assert scratch_folder() == Path("/home/someone/.cache/sentloom")


TABLE = pa.Table.from_batches([batch("a", "b"), batch(), batch("c"), batch("d", "e", "f")])


@given(st.lists(st.integers(0, 5)))
def test_rows_are_taken_in_the_requested_order(rows: list[int]) -> None:
    taken = take_rows(TABLE, np.array(rows, np.int64))
    assert taken.column("text").to_pylist() == ["abcdef"[row] for row in rows]
    assert taken.column("negatives").to_pylist() == [["abcdef"[row]] for row in rows]


def test_taking_rows_copies_only_these() -> None:
    table = scratch_table(SCHEMA, (batch("x" * 1_000_000) for _ in range(60)))  # 120 MB
    pool = pa.proxy_memory_pool(pa.default_memory_pool())
    usual = pa.default_memory_pool()
    pa.set_memory_pool(pool)
    try:
        assert take_rows(table, np.array([19, 3])).num_rows == 2
    finally:
        pa.set_memory_pool(usual)
    assert pool.max_memory() < 20_000_000


def test_kept_rows_stay_in_order() -> None:
    kept = keep_rows(TABLE, np.array([True, False, True, False, False, True]))
    assert kept.column("text").to_pylist() == ["a", "c", "f"]
    assert kept.schema == TABLE.schema
