"""Damaged files: whatever the bytes, a file is read well or refused with an error that a user can act on."""

import csv
import gzip
import io
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sentloom.data import limits, read
from sentloom.errors import DataError, SentloomError

FAULT = "5. malformed data files"
ASKED = 10_000

SOURCE = str(Path(limits.__file__).parents[2])
ROWS = [(f"was ist {n}?", f'ein "Bär", {n}', n / 7) for n in range(30)]
NAMES = ("sentence1", "sentence2", "score")
# Of thirteen tests: some ten thousand files in `make faults`.
FUZZED = settings(max_examples=min(settings.default.max_examples, 800))


def as_txt() -> bytes:
    return "".join(f"{row[0]}\n" for row in ROWS).encode()


def as_tsv() -> bytes:
    return "".join("\t".join(map(str, row)) + "\n" for row in [NAMES, *ROWS]).encode()


def as_csv() -> bytes:
    file = io.StringIO()
    csv.writer(file).writerows([NAMES, *((one, f"{two}\nund mehr", score) for one, two, score in ROWS)])
    return file.getvalue().encode()


def as_jsonl() -> bytes:
    return "".join(json.dumps(dict(zip(NAMES, row, strict=True))) + "\n" for row in ROWS).encode()


def as_table() -> pa.Table:
    return pa.table(dict(zip(NAMES, map(list, zip(*ROWS, strict=True)), strict=True)))


def as_parquet() -> bytes:
    file = io.BytesIO()
    pq.write_table(as_table(), file, compression="none")
    return file.getvalue()


def as_arrow() -> bytes:
    file = io.BytesIO()
    with pa.ipc.new_stream(file, as_table().schema) as stream:
        stream.write_table(as_table())
    return file.getvalue()


KINDS: dict[str, Callable[[], bytes]] = {
    "a.txt": as_txt,
    "a.tsv": as_tsv,
    "a.csv": as_csv,
    "a.jsonl": as_jsonl,
    "a.tsv.gz": lambda: gzip.compress(as_tsv()),
    "a.parquet": as_parquet,
    "saved/data.arrow": as_arrow,
}


def put(folder: Path, name: str, raw: bytes) -> Path:
    """Write the file and give the path to read; an Arrow stream is read as the saved data set around it."""
    path = folder / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(raw)
    if path.suffix != ".arrow":
        return path
    (path.parent / "dataset_info.json").write_text("{}")
    (path.parent / "state.json").write_text(json.dumps({"_data_files": [{"filename": path.name}]}))
    return path.parent


# The bytes that mean something to a reader come more often than chance would have it.
BYTE = st.one_of(st.sampled_from(b'\0\t\n\r",{}[]\\\xff\xc3\xed'), st.integers(0, 255))
CHANGE = st.tuples(
    st.sampled_from(["flip", "cut", "insert", "end"]), st.floats(0, 1), st.lists(BYTE, min_size=1, max_size=8)
)


def changed(raw: bytes, changes: list[tuple[str, float, list[int]]]) -> bytes:
    for what, where, new in changes:
        at = int(where * len(raw))
        tail = {"flip": raw[at + len(new) :], "cut": raw[at + 5 * len(new) :], "insert": raw[at:], "end": b""}[what]
        raw = raw[:at] + (b"" if what in ("cut", "end") else bytes(new)) + tail
    return raw


@pytest.mark.parametrize("name", KINDS)
def test_the_whole_file_is_read(name: str, tmp_path: Path) -> None:
    assert len(read(put(tmp_path, name, KINDS[name]()))) == len(ROWS)


@pytest.mark.parametrize("name", KINDS)
@FUZZED
@given(changes=st.lists(CHANGE, min_size=1, max_size=4))
def test_a_changed_file_is_read_or_refused(
    name: str, changes: list[tuple[str, float, list[int]]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = put(tmp_path_factory.mktemp("changed"), name, changed(KINDS[name](), changes))
    try:
        dataset = read(path)
    except SentloomError as error:
        str(error).encode()  # it can be printed
        assert str(path) in str(error)  # noqa: PT017
    else:
        texts = [text for _, _, text in dataset.sentences()]
        assert len(dataset) > 0
        assert all(text.strip() and "\0" not in text for text in texts)


@pytest.mark.parametrize("name", ["a.txt", "a.tsv", "a.csv", "a.jsonl", "a.txt.gz", "a.parquet"])
@FUZZED
@given(raw=st.binary(max_size=60))
def test_any_bytes_are_read_or_refused(name: str, raw: bytes, tmp_path_factory: pytest.TempPathFactory) -> None:
    try:
        assert len(read(put(tmp_path_factory.mktemp("any"), name, raw))) > 0
    except SentloomError as error:
        assert name in str(error)  # noqa: PT017


@pytest.mark.parametrize("name", ["a.csv", "a.tsv", "a.jsonl"])
def test_a_damaged_row_never_comes_through(name: str, tmp_path: Path) -> None:
    """Every byte of a text file set to one that is never in UTF-8: the file is refused, and the line is right."""
    raw = KINDS[name]()[:400]
    raw = raw[: raw.rindex(b"}\n" if name == "a.jsonl" else b"\n")]
    for at in range(len(raw)):
        if raw[at : at + 1] == b"\n":
            continue
        with pytest.raises(DataError) as caught:
            read(put(tmp_path, name, raw[:at] + b"\xff" + raw[at + 1 :]))
        line = raw.count(b"\n", 0, at) + 1
        assert f"line {line}" in [problem.place for problem in caught.value.problems]


# --- memory, disk and kills, each in a process of its own ---


def run(code: str, *arguments: object, **variables: str) -> str:
    command = [sys.executable, "-c", code, *map(str, arguments)]
    environment = {**os.environ, "PYTHONPATH": SOURCE, **variables}
    return subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout


# VmHWM rather than ru_maxrss: the latter starts at the size that the parent had when it forked.
PEAK = """
import sys
from pathlib import Path
from sentloom.data import read
from sentloom.errors import SentloomError

def peak():
    return next(int(line.split()[1]) for line in Path("/proc/self/status").read_text().splitlines() if "VmHWM" in line)

small, large = sys.argv[1:]
read(small)
before = peak()
try:
    read(large)
except SentloomError as error:
    print(error.where, error.problem, sep=": ")
print((peak() - before) // 1024)
"""
FIFTY = 50_000_000


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="peak memory is read from /proc")
@pytest.mark.parametrize(
    ("name", "start", "unit", "end", "said"),
    [
        pytest.param(
            "a.txt",
            b"one\n",
            b"x",
            b"\ntwo\n",
            "line 2: the line has more than 10,000,000 bytes",
            marks=pytest.mark.long,
        ),
        pytest.param(
            "a.tsv", b"text\n", b"x", b"", "line 2: the line has more than 10,000,000 bytes", marks=pytest.mark.long
        ),
        ("a.csv", b"text\n", b'"",', b"\n", "line 2: the line has more than 10,000,000 bytes"),
        pytest.param(
            "a.jsonl",
            b'{"text": "',
            b"x",
            b'"}\n',
            "line 1: the line has more than 10,000,000 bytes",
            marks=pytest.mark.long,
        ),
        ("a.txt.gz", b"one\n", b"x", b"\n", "line 2: the line has more than 10,000,000 bytes"),
        (
            "a.csv",
            b'text\na\n"',
            b"some line\n",
            b"",
            "line 3: quote that is not closed within 10,000,000 characters",
        ),
    ],
    ids=["txt", "tsv", "csv", "jsonl", "gzip", "quote"],
)
def test_fifty_megabytes_without_an_end_take_little_memory(
    name: str, start: bytes, unit: bytes, end: bytes, said: str, tmp_path: Path
) -> None:
    raw = start + unit * (FIFTY // len(unit)) + end
    path = put(tmp_path, name, gzip.compress(raw, 1) if name.endswith(".gz") else raw)
    found, grown = run(PEAK, put(tmp_path, "small.txt", b"one\n"), path).splitlines()
    assert found == f"{path}, {said}"
    assert int(grown) < 60  # megabytes: the ten of the limit, and what is made of them


def test_a_long_line_within_the_limit_is_read(tmp_path: Path) -> None:
    raw = b"x" * limits.LONGEST
    assert len(read(put(tmp_path, "a.txt", raw + b"\n")).take([0])["text"][0]) == limits.LONGEST
    with pytest.raises(DataError, match="line 1: the line has more than 10,000,000 bytes"):
        read(put(tmp_path, "a.txt", raw + b"x\n"))


def test_a_full_disk_is_told(tmp_path: Path) -> None:
    code = """
import resource, sys
from sentloom.data import read
from sentloom.errors import SentloomError
resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))
try:
    read(sys.argv[1])
except SentloomError as error:
    print(error)
"""
    path = put(tmp_path, "a.txt", b"a line of text\n" * 200_000)
    scratch = tmp_path / "scratch"
    assert "SENTLOOM_SCRATCH" in run(code, path, SENTLOOM_SCRATCH=str(scratch))
    assert list(scratch.iterdir()) == []


def test_a_kill_leaves_nothing_behind(tmp_path: Path) -> None:
    code = "import sys, time; from sentloom.data import read; data = read(sys.argv[1]); print(len(data), flush=True); time.sleep(60)"
    path = put(tmp_path, "a.txt", b"a line of text\n" * 1000)
    scratch = tmp_path / "scratch"
    environment = {**os.environ, "PYTHONPATH": SOURCE, "SENTLOOM_SCRATCH": str(scratch)}
    with subprocess.Popen([sys.executable, "-c", code, str(path)], env=environment, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"1000\n"
        process.send_signal(signal.SIGKILL)
    assert list(scratch.iterdir()) == []
