import gzip
import hashlib
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sentloom.data import read
from sentloom.data.findings import Findings
from sentloom.data.limits import Allowance
from sentloom.data.scan import Digest, text_blocks, text_lines
from sentloom.errors import DataError
from tests.data.reading import findings, pairs, problems, put


def decoded(path: Path, recorded: Findings) -> str:
    return "".join(text for _, text in text_blocks(path, Digest(), recorded))


# --- bytes to text ---


@given(content=st.text(alphabet="aä\n\r€😀 ", max_size=60), block=st.integers(1, 9), zipped=st.booleans())
def test_text_is_complete_in_blocks_of_whole_lines(
    content: str, block: int, zipped: bool, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("scan") / ("a.txt.gz" if zipped else "a.txt")
    raw = content.encode()
    stored = gzip.compress(raw) if zipped else raw
    path.write_bytes(stored)
    recorded, digest = findings(Allowance(block=block)), Digest()
    blocks = list(text_blocks(path, digest, recorded))
    only_returns = "\n" not in content and "\r" in content.rstrip("\r")  # these then end lines
    assert "".join(text for _, text in blocks) == (content.replace("\r", "\n") if only_returns else content)
    assert all(text.endswith("\n") for _, text in blocks[:-1])
    line = 1
    for number, text in blocks:
        assert number == line
        line += text.count("\n")
    assert recorded.total == 0
    assert (digest.hexdigest(), digest.size) == (hashlib.sha256(stored).hexdigest(), len(stored))


def test_a_byte_order_mark_is_removed(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes("\ufeffone\n\ufefftwo".encode())
    assert decoded(tmp_path / "a.txt", findings()) == "one\n\ufefftwo"


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-be", "utf-32"])
def test_wide_encodings_are_read_and_noted(encoding: str, tmp_path: Path) -> None:
    mark = "\ufeff" if encoding.endswith("be") else ""
    (tmp_path / "a.txt").write_bytes(f"{mark}one\ntwo".encode(encoding))
    recorded = findings()
    assert decoded(tmp_path / "a.txt", recorded) == "one\ntwo"
    assert recorded.notes == [f"{tmp_path / 'a.txt'}: read as {encoding[:6].upper()}, as its byte order mark says"]


def test_bad_bytes_and_nul_are_reported_and_become_replacement_characters(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"good\nna\xefve\nn\0l\ntwo \xff\0\nlast")
    recorded = findings()
    assert decoded(tmp_path / "a.txt", recorded) == "good\nna\ufffdve\nn\ufffdl\ntwo \ufffd\ufffd\nlast"
    assert problems(recorded) == [
        "a.csv, line 2: invalid byte 0xEF at byte 3 of the line. Expected UTF-8.",
        "a.csv, line 3: NUL character at character 2 of the line. Expected text.",
        "a.csv, line 4: invalid byte 0xFF at byte 5 of the line. Expected UTF-8.",
        "a.csv, line 4: NUL character at character 6 of the line. Expected text.",
    ]


@pytest.mark.parametrize("block", [1, 7, 20])
def test_overlong_lines_are_reported_and_dropped(block: int, tmp_path: Path) -> None:
    lines = ["short", "x" * 20, "x" * 21, "after", "y" * 500, "", "z" * 21]
    (tmp_path / "a.txt").write_text("\n".join(lines))
    recorded = findings(Allowance(longest=20, block=block))
    assert decoded(tmp_path / "a.txt", recorded).split("\n")[:6] == ["short", "x" * 20, "", "after", "", ""]
    assert [problem.place for problem in recorded.error().problems] == ["line 3", "line 5", "line 7"]


@pytest.mark.parametrize(
    "damage", [lambda raw: raw[:-9], lambda raw: raw[:20] + b"\xff" + raw[21:], lambda raw: b"no gzip"]
)
def test_damaged_gzip_is_refused(damage: Callable[[bytes], bytes], tmp_path: Path) -> None:
    raw = gzip.compress("\n".join(map(str, range(1000))).encode())
    (tmp_path / "a.txt.gz").write_bytes(damage(raw))
    with pytest.raises(DataError, match="gzip"):
        decoded(tmp_path / "a.txt.gz", findings())


def test_a_gzip_file_of_several_members_is_read_to_the_end(tmp_path: Path) -> None:
    (tmp_path / "a.txt.gz").write_bytes(gzip.compress(b"one\nt") + gzip.compress(b"wo\n"))
    assert decoded(tmp_path / "a.txt.gz", findings()) == "one\ntwo\n"


def test_an_unreadable_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="cannot be read"):
        decoded(tmp_path, findings())  # nobody can open a folder as a file, not even root


# --- lines ---


def test_lines_keep_their_numbers_when_blank_ones_are_skipped() -> None:
    recorded = findings()
    text = "one\r\n\r\n \t\ntwo  \nthree"
    assert [*text_lines([(4, text)], recorded)] == [([4, 7, 8], ["one", "two  ", "three"])]
    assert recorded.skipped == {"blank lines": 2}


@pytest.mark.parametrize("block", [1, 5, 1 << 18])
def test_lines_may_end_in_carriage_returns(block, tmp_path) -> None:
    data = read(put(tmp_path / "a.csv", "question,answer\ra b,c d\re,f\r"), allow=Allowance(block=block))
    assert pairs(data) == [("a b", "c d"), ("e", "f")]
    assert data.place(1).endswith("line 3")
    assert data.notes == (f"{tmp_path / 'a.csv'}: lines end in carriage returns without line feeds",)
    kept = read(put(tmp_path / "b.csv", 'question,answer\r\n"a\rb",c\r\n'))
    assert pairs(kept) == [("a\rb", "c")]
    assert kept.notes == ()
