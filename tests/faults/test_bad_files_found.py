"""Damaged files through the command and in a batch: exit code 2, nothing written, little memory, and the right line."""

import csv
import gzip
import io
import json
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from sentloom.data import read
from sentloom.errors import DataError
from tests.faults.conftest import Act, Tally
from tests.faults.test_bad_files import KINDS, NAMES, ROWS, changed, put, run

FAULT = "5. malformed data files"
SPECIAL = b'\0\t\n\r",{}[]\\\xff\xc3\xed'
PROC = pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is read from /proc")


def damaged(folder: Path, each: int) -> list[Path]:
    """So many files of each kind with random changes, the same in every run."""
    found = []
    for kind, make in KINDS.items():
        draw = random.Random(kind)
        for number in range(each):
            changes = [
                (
                    draw.choice(["flip", "cut", "insert", "end"]),
                    draw.random(),
                    draw.choices(SPECIAL, k=draw.randint(1, 8)),
                )
                for _ in range(draw.randint(1, 4))
            ]
            (folder / f"{number}").mkdir(exist_ok=True)
            found.append(put(folder / f"{number}", kind, changed(make(), changes)))
    return found


@PROC
@pytest.mark.long
def test_check_reads_or_refuses_a_damaged_file(act: Act, tally: Tally, tmp_path: Path) -> None:
    """In a child that may take 1 GB; refused files leave no findings behind."""
    (tmp_path / "data").mkdir()
    codes = set()
    for number, path in enumerate(damaged(tmp_path / "data", 15)):
        with tally.case(str(path.relative_to(tmp_path))):
            output = tmp_path / f"{number}.json"
            found = act("check", path, output)
            assert "Traceback" not in found["said"], found["said"]
            assert found["code"] in (0, 2), found
            assert output.exists() == (found["code"] == 0)
            assert found["code"] == 0 or str(path) in found["said"], found["said"]
            codes.add(found["code"])
    assert 2 in codes


BATCH = """
import resource, sys
from pathlib import Path
from sentloom.data import read
from sentloom.errors import SentloomError

def status(name):
    return next(int(line.split()[1]) for line in Path("/proc/self/status").read_text().splitlines() if name in line)

read(sys.argv[1])
room = (status("VmSize") << 10) + (1 << 30)
resource.setrlimit(resource.RLIMIT_AS, (room, room))
before, refused = status("VmHWM"), 0
for path in sys.argv[2:]:
    try:
        read(path)
    except SentloomError:
        refused += 1
print(refused, (status("VmHWM") - before) // 1024)
"""


@PROC
@pytest.mark.parametrize("each", [20, pytest.param(400, marks=pytest.mark.long)])
def test_a_batch_of_damaged_files_takes_little_memory(each: int, tmp_path: Path) -> None:
    """In one process, which may not take 1 GB more at any moment, and in fact takes far less."""
    (tmp_path / "data").mkdir()
    paths = damaged(tmp_path / "data", each)
    refused, grown = map(int, run(BATCH, put(tmp_path, "whole.tsv", KINDS["a.tsv"]()), *paths).split())
    assert refused > len(paths) / 4
    assert grown < 100  # megabytes


# --- the line ---


def lines_of(ending: str) -> list[bytes]:
    """One row a line, behind a header if the format has one."""
    if ending == "txt":
        return [row[0].encode() for row in ROWS]
    if ending == "jsonl":
        return [json.dumps(dict(zip(NAMES, row, strict=True))).encode() for row in ROWS]
    if ending == "tsv":
        return KINDS["a.tsv"]().splitlines()
    file = io.StringIO()
    csv.writer(file, lineterminator="\n").writerows([NAMES, *ROWS])
    return file.getvalue().encode().splitlines()


Damage = Callable[[bytes], bytes]
ANYWHERE: dict[str, Damage] = {
    "bytes that are not UTF-8": lambda line: line[:9] + b"\xff" + line[9:],
    "a NUL": lambda line: line[:9] + b"\0" + line[9:],
    "half of a character": lambda line: line[:9] + b"\xc3" + line[9:],
    "a surrogate": lambda line: line[:9] + b"\xed\xa0\x80" + line[9:],
}


def to_cells(mark: bytes) -> dict[str, Damage]:
    return {
        "a cell too few": lambda line: line.rpartition(mark)[0],
        "a cell too many": lambda line: line + mark + b"1",
        "an empty cell": lambda line: mark + line.partition(mark)[2],
        "no number": lambda line: line.rpartition(mark)[0] + mark + b"much",
        "no finite number": lambda line: line.rpartition(mark)[0] + mark + b"nan",
    }


DAMAGES: dict[str, dict[str, Damage]] = {
    "txt": ANYWHERE,
    "tsv": ANYWHERE | to_cells(b"\t"),
    "csv": ANYWHERE | to_cells(b",") | {"text behind a quote": lambda line: line.replace(b'"ein', b'"" ein', 1)},
    "jsonl": {
        **ANYWHERE,
        "an object cut short": lambda line: line[:-1],
        "a list": lambda line: b"[1]",
        "a column missing": lambda line: line.replace(b'"score"', b'"points"'),
        "no number": lambda line: line.rpartition(b" ")[0] + b' "much"}',
        "no text": lambda line: line.replace(b'"was', b'["was').replace(b'?"', b'?"]'),
        "an empty text": lambda line: b'{"sentence1": "", "sentence2": "b", "score": 1}',
        "half of a surrogate pair": lambda line: line.replace(b"was", b"\\ud800", 1),
    },
}


@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gzip"])
@pytest.mark.parametrize("ending", DAMAGES)
def test_the_error_names_the_damaged_line(ending: str, packed: bool, tally: Tally, tmp_path: Path) -> None:
    lines = lines_of(ending)
    for name, damage in DAMAGES[ending].items():
        for at in (2, 15, len(lines) - 1):
            with tally.case(f"{name}, line {at + 1}"):
                raw = b"".join(line + b"\n" for line in [*lines[:at], damage(lines[at]), *lines[at + 1 :]])
                path = tmp_path / f"a.{ending}{'.gz' if packed else ''}"
                path.write_bytes(gzip.compress(raw) if packed else raw)
                with pytest.raises(DataError) as caught:
                    read(path)
                assert {problem.place for problem in caught.value.problems} == {f"line {at + 1}"}
