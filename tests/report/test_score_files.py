"""Score files: the numbers that were found, in three forms, byte for byte the same for the same scores."""

import csv
import json
from dataclasses import replace

import pytest

from sentloom.errors import InputError
from sentloom.evaluation.results import AverageResult, Cell, SetResult, SuiteResult
from sentloom.report.score_files import cell_text, check_scores_file, scores_markdown, write_scores

A = {"accuracy": Cell(50.123456789, 45.0, 55.0)}
B = {"accuracy": Cell(50.5, 46.0, 56.0, difference=0.376543211, p=0.4, difference_low=-1.0, difference_high=1.75)}
SEEDS = {"accuracy": Cell(70.0, deviation=1.25, difference=19.9)}
SETS = (SetResult("MR", "accuracy", 200, {"a": A, "b": B, "s": SEEDS}, "MR.tsv", "0f", {"folds": 10}, ("few rows",)),)
AVERAGES = (AverageResult("mean of seven: 1 of 7", {"a": A["accuracy"], "b": B["accuracy"], "s": SEEDS["accuracy"]}),)
RESULT = SuiteResult("transfer", SETS, AVERAGES, {"CR": "no file"})
MODELS = {name: {"models": [{"model": name, "sha256": name * 4}]} for name in "abs"}


def test_json_has_every_digit_and_what_the_scores_depend_on(tmp_path):
    write_scores(tmp_path / "s.json", MODELS, [RESULT])
    found = json.loads((tmp_path / "s.json").read_text())
    assert found["models"]["a"]["models"][0]["sha256"] == "aaaa"
    (suite,) = found["suites"]
    assert suite["sets"][0]["cells"]["a"]["accuracy"]["value"] == 50.123456789
    assert suite["sets"][0]["settings"] == {"folds": 10}
    assert suite["missing"] == {"CR": "no file"}
    assert suite["notes"] == ["MR: few rows", "CR: missing, left out (no file)"]


def test_the_same_scores_give_the_same_bytes(tmp_path):
    for ending in ("json", "csv", "md", "png"):
        files = [tmp_path / f"{number}.{ending}" for number in range(2)]
        for file in files:
            write_scores(file, MODELS, [RESULT])
        assert files[0].read_bytes() == files[1].read_bytes()


def test_csv_has_a_row_a_model_set_and_score(tmp_path):
    write_scores(tmp_path / "s.csv", MODELS, [RESULT])
    with (tmp_path / "s.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(row["set"], row["model"], float(row["value"])) for row in rows] == [
        *(("MR", "a", 50.123456789), ("MR", "b", 50.5), ("MR", "s", 70.0)),
        *(("mean of seven: 1 of 7", "a", 50.123456789), ("mean of seven: 1 of 7", "b", 50.5)),
        ("mean of seven: 1 of 7", "s", 70.0),
    ]
    assert rows[1]["p"] == "0.4"


def test_no_name_in_the_csv_is_run_as_a_formula(tmp_path):
    cells = {"=a()": {"@score": Cell(-1.5)}}
    sets = (SetResult("+set", "@score", 2, cells, "f.tsv", "0f", {}, ()),)
    averages = (AverageResult("-mean", {"=a()": Cell(-1.5)}),)
    write_scores(tmp_path / "s.csv", {"=a()": {}}, [SuiteResult("=suite", sets, averages, {})])
    with (tmp_path / "s.csv").open(newline="") as file:
        rows = [row[:6] for row in csv.reader(file)][1:]
    assert rows == [
        ["'=suite", "'+set", "2", "'=a()", "'@score", "-1.5"],
        ["'=suite", "'-mean", "", "'=a()", "average", "-1.5"],
    ]


def test_markdown_puts_models_side_by_side():
    lines = scores_markdown(MODELS, [RESULT]).splitlines()
    assert lines[2] == "| set | score | items | a | b | s |"
    assert lines[4] == "| MR | accuracy | 200 | 50.12 (45.0 to 55.0) | ≈ 50.50 (46.0 to 56.0) | 70.00 ± 1.25 |"
    assert lines[7:10] == [
        "| difference from a | b | s |",
        "|---|---:|---:|",
        "| MR | +0.38 (-1.00 to +1.75) | +19.90 (no interval) |",
    ]
    assert "- note: CR: missing, left out (no file)" in lines


def test_a_cell_says_what_is_not_significant():
    cell = Cell(1.0, 0.5, 1.5, difference=0.2, p=0.04, difference_low=0.1, difference_high=0.3)
    assert cell_text(cell) == "1.00 (0.5 to 1.5)"
    assert cell_text(replace(cell, difference_low=-0.1)) == "≈ 1.00 (0.5 to 1.5)"
    assert cell_text(replace(cell, difference_low=None, comparable=False)) == "≈ 1.00† (0.5 to 1.5)"


def test_an_unknown_ending_or_a_folder_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"\.json, \.csv, \.md"):
        check_scores_file(tmp_path / "scores.xlsx")
    (tmp_path / "folder.json").mkdir()
    with pytest.raises(InputError, match="a folder"):
        check_scores_file(tmp_path / "folder.json")


def test_names_mean_nothing_in_markdown():
    script = "<script>alert(1)</script>"
    sets = (SetResult(f"{script}|a\n| b", "accuracy", 200, {script: A}, "x", "0f", {}, (script,)),)
    result = SuiteResult(script, sets, (AverageResult(script, {script: A["accuracy"]}),), {})
    text = scores_markdown({script: {}}, [result])
    assert "<" not in text
    assert {line.replace(r"\|", "").count("|") for line in text.splitlines() if line.startswith("|")} == {5}
