"""Our reader is right about every file of the comparison of readers, and its verdicts are what they claim to be."""

import csv
import json

import pytest

from benchmarks.reading_peers import (
    CASES,
    GOOD,
    RIGHT,
    TEXTS,
    Case,
    measured,
    ours,
    pairs,
    verdict,
    write_csv,
    write_jsonl,
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.what)
def test_ours_reads_or_names_the_line(case, tmp_path):
    path = tmp_path / case.file
    path.write_bytes(case.content)
    result = json.loads(json.dumps(measured(ours, path, case.columns)))
    assert verdict(case, result) in RIGHT
    assert str(path) in result.get("error", str(path))


@pytest.mark.parametrize(
    ("result", "word"),
    [
        ({"error": "bad.csv, line 5: found 1 cell"}, "line"),
        ({"error": "CSV parse error: Row #3: Expected 2 columns"}, "another line (3)"),
        ({"error": "line 50: found 1 cell"}, "another line (50)"),
        ({"error": "invalid csv file"}, "no line"),
        ({"first": [["a\nb", "c"], ["x", None], ["d", "e"]]}, "passed on"),
        ({"first": [["a\nb", "c"], ["d", "e"]]}, "**read wrongly**"),
    ],
)
def test_verdicts_about_a_bad_value_on_line_5(result, word):
    case = Case("empty cell", "bad.csv", b"", 5, values=[GOOD[0], ("x", ""), GOOD[1]])
    assert verdict(case, result) == word


def test_verdicts_about_a_good_file():
    case = Case("blank line", "good.csv", b"", GOOD)
    assert verdict(case, {"first": [["a\nb", "c"], [None, None], ["d", "e"]]}) == "read"
    assert verdict(case, {"first": [["a\nb", "c"]]}) == "**read wrongly**"
    assert verdict(case, {"error": "line 1"}) == "refused wrongly"


def test_both_files_hold_the_same_rows_with_commas_quotes_and_line_breaks(tmp_path):
    rows = [*pairs(200)]
    write_csv(tmp_path / "a.csv", 200)
    write_jsonl(tmp_path / "a.jsonl", 200)
    with (tmp_path / "a.csv").open(newline="") as file:
        assert [tuple(row) for row in csv.reader(file)] == [tuple(TEXTS), *rows]
    objects = map(json.loads, (tmp_path / "a.jsonl").read_text().splitlines())
    assert [tuple(one.values()) for one in objects] == rows
    assert [sum(mark in answer for _, answer in rows) for mark in ',"\n'] == [100, 40, 4]
