"""Problems are counted by kind with their places, and an allowance decides whether the data are refused."""

from pathlib import Path

import pytest

from sentloom.data import read
from sentloom.data.limits import FITTING, Allowance
from sentloom.errors import DataError
from tests.data.reading import ROWS, findings, pairs, problems, put, tsv


def test_problems_of_all_files_are_counted(tmp_path: Path) -> None:
    put(tmp_path / "a.csv", "text\n" + '""\n' * 7)
    put(tmp_path / "b.csv", "text\n" + '""\n' * 7)
    with pytest.raises(DataError) as caught:
        read(tmp_path)
    assert caught.value.total == 14
    assert [problem.file for problem in caught.value.problems] == [str(tmp_path / "a.csv")] * 7 + [
        str(tmp_path / "b.csv")
    ] * 3


def test_all_problems_are_counted_and_the_first_ten_in_file_order_shown() -> None:
    recorded = findings()
    for line in [*range(30, 10, -1), 5, 5]:
        recorded.problem(line, f"x{line}", "y")
    error = recorded.error()
    assert error.total == 22
    assert [problem.place for problem in error.problems] == [f"line {line}" for line in (5, 5, *range(11, 19))]
    assert "12 more problems, 22 in all" in str(error)


def test_a_later_file_comes_later() -> None:
    recorded = findings()
    recorded.problem(9, "x", "y")
    recorded.begin("b.csv", "row")
    recorded.problem(1, "x", "y")
    recorded.problem(0, "z", "y")
    assert problems(recorded) == [
        "a.csv, line 9: x. Expected y.",
        "b.csv: z. Expected y.",
        "b.csv, row 1: x. Expected y.",
    ]


def test_unusable_rows_are_left_out_up_to_the_allowance(tmp_path) -> None:
    rows = [(question, "" if number in (3, 50) else answer) for number, (question, answer) in enumerate(ROWS)]
    path = put(tmp_path / "a.tsv", tsv(rows) + "alone\n")
    data = read(path, allow=FITTING)
    assert pairs(data) == [row for row in rows if row[1]]
    assert data.left_out == 3
    assert {str(kind) for kind in data.irregular} == {
        f"1 rows with 1 cell where 2 were expected ({path}, line 102)",
        f"2 empty cells in column 'answer' ({path}, line 5, 52)",
    }
    assert data.sha256 != read(put(tmp_path / "b.tsv", tsv([row for row in rows if row[1]]))).sha256
    with pytest.raises(DataError, match=r"3 of 101 rows are unusable, more than 2%(.|\n)*sentloom check"):
        read(path, allow=Allowance(0.02))
    with pytest.raises(DataError, match="sentloom check"):
        read(path)


def test_a_row_with_two_bad_cells_counts_once(tmp_path) -> None:
    data = read(put(tmp_path / "a.tsv", tsv([("", ""), *ROWS])), allow=FITTING)
    assert (data.left_out, len(data)) == (1, 100)


def test_many_problems_are_summarised_with_their_cause(tmp_path) -> None:
    with pytest.raises(DataError) as caught:
        read(put(tmp_path / "a.tsv", tsv(ROWS) + "alone\n" * 30 + "one\t\n"))
    assert "  30 rows with 1 cell where 2 were expected\n  1 empty cells in column 'answer'" in str(caught.value)
    assert "Likely cause: line breaks in cells" in str(caught.value)
