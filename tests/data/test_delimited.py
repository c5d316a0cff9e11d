"""Lines become rows of cells as RFC 4180 and plain tab-separated files define them."""

import csv
import io
from collections.abc import Iterator

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sentloom.data.delimited import DelimitedRows, csv_rows, split_csv, tsv_rows
from sentloom.data.limits import Allowance
from sentloom.data.scan import Block
from sentloom.errors import DataError
from tests.data.reading import findings, problems


def blocks_of(text: str, sizes: list[int]) -> Iterator[Block]:
    """Split the text into blocks of the given numbers of lines (the last size repeats)."""
    lines = text.splitlines(keepends=True) if "\r" not in text else [*io.StringIO(text, newline="\n")]
    number = 1
    while lines:
        size = sizes.pop(0) if len(sizes) > 1 else sizes[0]
        yield number, "".join(lines[:size])
        number, lines = number + size, lines[size:]


def rows_of(batches: Iterator[DelimitedRows]) -> list[tuple[int, list[str]]]:
    """Return rows as lists of cells, with the lines they start at."""
    result = []
    for rows in batches:
        cells = iter(rows.cells)
        for place, width in zip(rows.places, rows.widths, strict=True):
            result.append((place, [next(cells) for _ in range(width)]))
        assert next(cells, None) is None
    return result


def test_tsv_has_no_quotes_and_a_line_of_tabs_is_not_blank() -> None:
    recorded = findings()
    text = 'a\t"b\tc"\n\t\n\n  \r\n'
    assert rows_of(tsv_rows([(1, text)], recorded)) == [(1, ["a", '"b', 'c"']), (2, ["", ""])]
    assert recorded.skipped == {"blank lines": 2}


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
    recorded = findings()
    assert rows_of(csv_rows(blocks_of(file.getvalue(), sizes), recorded)) == list(zip(starts, rows, strict=True))
    assert recorded.total == 0


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
        recorded = findings()
        try:
            rows = rows_of(csv_rows(blocks_of(text, cut), recorded))
        except DataError:
            rows = []
        results.append((rows if not recorded.total else None, recorded.total and problems(recorded), recorded.skipped))
    assert results[0] == results[1]


def test_problems_in_csv_are_located_and_reading_continues() -> None:
    recorded = findings()
    text = 'a,b\n5" disk,x\n"open\nclosed"x,y\n1,2\n'
    assert rows_of(csv_rows([(1, text)], recorded)) == [(1, ["a", "b"]), (5, ["1", "2"])]
    assert [problem.place for problem in recorded.error().problems] == ["line 2", "line 3"]
    assert "quote inside an unquoted cell" in problems(recorded)[0]
    assert "text after a cell's closing quote" in problems(recorded)[1]


def test_an_unclosed_quote_is_located_where_it_opens() -> None:
    recorded = findings()
    with pytest.raises(DataError, match="line 4: quote that is not closed before the end"):
        list(csv_rows([(1, 'a,b\n1,2\n"two\nlines","open\nx,y\n')], recorded))


def test_an_unclosed_quote_is_refused_at_the_limit() -> None:
    lines = ((number, "a cell\n") for number in range(3, 1000))
    taken = []

    def blocks() -> Iterator[Block]:
        yield 1, 'a,b\n"open\n'
        for block in lines:
            taken.append(block)
            yield block

    with pytest.raises(DataError, match="line 2: quote that is not closed within 50 characters"):
        list(csv_rows(blocks(), findings(Allowance(longest=50))))
    assert len(taken) < 10
