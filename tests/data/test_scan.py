import csv
import gzip
import hashlib
import io
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sentloom.data import delimited, scan
from sentloom.data.delimited import DelimitedRows, csv_rows, split_csv, tsv_rows
from sentloom.data.findings import Findings
from sentloom.data.json_lines import jsonl_records
from sentloom.data.scan import Block, Digest, text_blocks, text_lines
from sentloom.errors import DataError


def findings() -> Findings:
    empty = Findings()
    empty.begin("a.csv", "line")
    return empty


def problems(found: Findings) -> list[str]:
    return [str(problem) for problem in found.error().problems]


def blocks_of(text: str, sizes: list[int]) -> Iterator[Block]:
    """Split the text into blocks of the given numbers of lines (the last size repeats)."""
    lines = text.splitlines(keepends=True) if "\r" not in text else [*io.StringIO(text, newline="\n")]
    number = 1
    while lines:
        size = sizes.pop(0) if len(sizes) > 1 else sizes[0]
        yield number, "".join(lines[:size])
        number, lines = number + size, lines[size:]


def rows_of(found: Iterator[DelimitedRows]) -> list[tuple[int, list[str]]]:
    """Return rows as lists of cells, with the lines they start at."""
    result = []
    for rows in found:
        cells = iter(rows.cells)
        for place, width in zip(rows.places, rows.widths, strict=True):
            result.append((place, [next(cells) for _ in range(width)]))
        assert next(cells, None) is None
    return result


def decoded(path: Path, found: Findings) -> str:
    return "".join(text for _, text in text_blocks(path, Digest(), found))


# --- findings ---


def test_all_problems_are_counted_and_the_first_ten_in_file_order_shown() -> None:
    found = findings()
    for line in [*range(30, 10, -1), 5, 5]:
        found.problem(line, f"x{line}", "y")
    error = found.error()
    assert error.total == 22
    assert [problem.place for problem in error.problems] == [f"line {line}" for line in (5, 5, *range(11, 19))]
    assert "12 more problems, 22 in all" in str(error)


def test_a_later_file_comes_later() -> None:
    found = findings()
    found.problem(9, "x", "y")
    found.begin("b.csv", "row")
    found.problem(1, "x", "y")
    found.problem(0, "z", "y")
    assert problems(found) == [
        "a.csv, line 9: x. Expected y.",
        "b.csv: z. Expected y.",
        "b.csv, row 1: x. Expected y.",
    ]


# --- bytes to text ---


@given(content=st.text(alphabet="aä\n\r€😀 ", max_size=60), block=st.integers(1, 9), zipped=st.booleans())
def test_text_is_complete_in_blocks_of_whole_lines(
    content: str, block: int, zipped: bool, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("scan") / ("a.txt.gz" if zipped else "a.txt")
    raw = content.encode()
    stored = gzip.compress(raw) if zipped else raw
    path.write_bytes(stored)
    found, digest = findings(), Digest()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scan, "BLOCK", block)
        blocks = list(text_blocks(path, digest, found))
    only_returns = "\n" not in content and "\r" in content.rstrip("\r")  # these then end lines
    assert "".join(text for _, text in blocks) == (content.replace("\r", "\n") if only_returns else content)
    assert all(text.endswith("\n") for _, text in blocks[:-1])
    line = 1
    for number, text in blocks:
        assert number == line
        line += text.count("\n")
    assert found.total == 0
    assert (digest.hexdigest(), digest.size) == (hashlib.sha256(stored).hexdigest(), len(stored))


def test_a_byte_order_mark_is_removed(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes("\ufeffone\n\ufefftwo".encode())
    assert decoded(tmp_path / "a.txt", findings()) == "one\n\ufefftwo"


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-be", "utf-32"])
def test_wide_encodings_are_refused_with_a_conversion_command(encoding: str, tmp_path: Path) -> None:
    mark = "\ufeff" if encoding.endswith("be") else ""
    (tmp_path / "a.txt").write_bytes(f"{mark}one\ntwo".encode(encoding))
    with pytest.raises(DataError, match="byte order mark of UTF") as caught:
        decoded(tmp_path / "a.txt", findings())
    assert f"iconv -f {encoding[:6].upper()} -t UTF-8" in caught.value.fix


def test_bad_bytes_and_nul_are_reported_and_become_replacement_characters(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"good\nna\xefve\nn\0l\ntwo \xff\0\nlast")
    found = findings()
    assert decoded(tmp_path / "a.txt", found) == "good\nna\ufffdve\nn\ufffdl\ntwo \ufffd\ufffd\nlast"
    assert problems(found) == [
        "a.csv, line 2: invalid byte 0xEF at byte 3 of the line. Expected UTF-8.",
        "a.csv, line 3: NUL character at character 2 of the line. Expected text.",
        "a.csv, line 4: invalid byte 0xFF at byte 5 of the line. Expected UTF-8.",
        "a.csv, line 4: NUL character at character 6 of the line. Expected text.",
    ]


@pytest.mark.parametrize("block", [1, 7, 20])
def test_overlong_lines_are_reported_and_dropped(block: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scan, "BLOCK", block)
    monkeypatch.setattr(scan, "LONGEST", 20)
    lines = ["short", "x" * 20, "x" * 21, "after", "y" * 500, "", "z" * 21]
    (tmp_path / "a.txt").write_text("\n".join(lines))
    found = findings()
    assert decoded(tmp_path / "a.txt", found).split("\n")[:6] == ["short", "x" * 20, "", "after", "", ""]
    assert [problem.place for problem in found.error().problems] == ["line 3", "line 5", "line 7"]


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


# --- lines, tsv, jsonl ---


def test_lines_keep_their_numbers_when_blank_ones_are_skipped() -> None:
    found = findings()
    text = "one\r\n\r\n \t\ntwo  \nthree"
    assert [*text_lines([(4, text)], found)] == [([4, 7, 8], ["one", "two  ", "three"])]
    assert found.skipped == {"blank lines": 2}


def test_tsv_has_no_quotes_and_a_line_of_tabs_is_not_blank() -> None:
    found = findings()
    text = 'a\t"b\tc"\n\t\n\n  \r\n'
    assert rows_of(tsv_rows([(1, text)], found)) == [(1, ["a", '"b', 'c"']), (2, ["", ""])]
    assert found.skipped == {"blank lines": 2}


def test_jsonl_reports_values_that_are_not_objects() -> None:
    found = findings()
    text = '{"a": 1}\n[1]\n{"a": }\n\n"s"\n' + "[" * 100_000 + "\n" + "9" * 5000 + '\n{"b": "x"}\n'
    assert [*jsonl_records([(1, text)], found)] == [([1, 8], [{"a": 1}, {"b": "x"}])]
    assert [problem.place for problem in found.error().problems] == [f"line {n}" for n in (2, 3, 5, 6, 7)]
    assert "'[1]'" in problems(found)[0]
    assert "character 7" in problems(found)[1]


# --- csv ---

CELL = st.text(alphabet='a,"\n\r é', max_size=8)
ENDS = st.sampled_from(["\n", "\r\n"])


def not_blank(rows: list[list[str]]) -> bool:
    """Whether a row is written as more than a blank line; the writer does not quote a single blank cell."""
    return all(any(cell.strip() for cell in row) for row in rows)


@given(
    rows=st.lists(st.lists(CELL, min_size=2, max_size=4), min_size=1, max_size=8).filter(not_blank),
    end=ENDS,
    quoting=st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]),
    sizes=st.lists(st.integers(1, 5), min_size=1, max_size=4),
)
def test_csv_reads_what_the_csv_module_writes(rows: list[list[str]], end: str, quoting: int, sizes: list[int]) -> None:
    file = io.StringIO(newline="")
    starts = []
    for row in rows:
        starts.append(file.getvalue().count("\n") + 1)
        # "\r" is quoted only if it is in the line end, so every cell that holds one is.
        style = csv.QUOTE_ALL if any("\r" in cell for cell in row) else quoting
        csv.writer(file, lineterminator=end, quoting=style).writerow(row)
    found = findings()
    assert rows_of(csv_rows(blocks_of(file.getvalue(), sizes), found)) == list(zip(starts, rows, strict=True))
    assert found.total == 0


def slow_split(text: str) -> list[str] | None:
    """Parse one record character by character; None if RFC 4180 does not allow it."""
    cells, cell, state = [], "", "start"
    for letter in text + ",":
        if state == "quoted":
            state = "closed" if letter == '"' else state
            cell += letter if state == "quoted" else ""
        elif letter == ",":
            cells.append(cell)
            cell, state = "", "start"
        elif letter == '"' and state in ("start", "closed"):
            cell += '"' if state == "closed" else ""
            state = "quoted"
        elif letter == '"' or state == "closed":
            return None
        else:
            cell, state = cell + letter, "plain"
    return cells if state == "start" else None


@given(st.text(alphabet='a",', max_size=12))
def test_one_record_equals_a_slow_parser(text: str) -> None:
    cells, fault = split_csv(text)
    assert (cells if fault is None else None) == slow_split(text)


@given(st.text(alphabet='a",\n\r', max_size=30), st.lists(st.integers(1, 3), min_size=1, max_size=3))
@example('""\na\r', [1])
@example('a"\n\n\n\r', [2])
def test_block_boundaries_do_not_matter(text: str, sizes: list[int]) -> None:
    results = []
    for cut in ([1000], list(sizes)):
        found = findings()
        try:
            rows = rows_of(csv_rows(blocks_of(text, cut), found))
        except DataError:
            rows = []
        results.append((rows if not found.total else None, found.total and problems(found), found.skipped))
    assert results[0] == results[1]


def test_problems_in_csv_are_located_and_reading_continues() -> None:
    found = findings()
    text = 'a,b\n5" disk,x\n"open\nclosed"x,y\n1,2\n'
    assert rows_of(csv_rows([(1, text)], found)) == [(1, ["a", "b"]), (5, ["1", "2"])]
    assert [problem.place for problem in found.error().problems] == ["line 2", "line 3"]
    assert "quote inside an unquoted cell" in problems(found)[0]
    assert "text after a cell's closing quote" in problems(found)[1]


def test_an_unclosed_quote_is_located_where_it_opens() -> None:
    found = findings()
    with pytest.raises(DataError, match="line 4: quote that is not closed before the end"):
        list(csv_rows([(1, 'a,b\n1,2\n"two\nlines","open\nx,y\n')], found))


def test_an_unclosed_quote_is_refused_at_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delimited, "LONGEST", 50)
    lines = ((number, "a cell\n") for number in range(3, 1000))
    taken = []

    def blocks() -> Iterator[Block]:
        yield 1, 'a,b\n"open\n'
        for block in lines:
            taken.append(block)
            yield block

    with pytest.raises(DataError, match="line 2: quote that is not closed within 50 characters"):
        list(csv_rows(blocks(), findings()))
    assert len(taken) < 10
