"""Cells are checked by role, and every problem names its place and column."""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sentloom.data import read
from tests.data.reading import put, refused, rows


def test_some_columns_of_negatives_may_be_empty(tmp_path: Path) -> None:
    lines = ["query,answer,negative_1,negative_2", "q,p,m,n", "r,s,,t", "u,v,w, "]
    (tmp_path / "a.csv").write_text("\n".join(lines) + "\n", "utf-8")
    assert rows(read(tmp_path / "a.csv"))["negatives"] == [["m", "n"], ["t"], ["w"]]
    (problem,) = refused(put(tmp_path / "a.csv", "\n".join([*lines, "x,y,,"]) + "\n"))
    assert problem.startswith("line 5: empty cell in column 'negative_1'")


def test_negatives_may_be_a_list(tmp_path: Path) -> None:
    objects = [
        {"query": "q", "positive": "p", "negatives": ["m", "n"]},
        {"query": "q", "positive": "p", "negatives": "n"},
    ]
    dataset = read(put(tmp_path / "a.jsonl", "\n".join(map(json.dumps, objects))))
    assert rows(dataset)["negatives"] == [["m", "n"], ["n"]]
    pq.write_table(pa.Table.from_pylist(objects[:1]), tmp_path / "a.parquet")
    assert rows(read(tmp_path / "a.parquet"))["negatives"] == [["m", "n"]]


def test_rows_without_a_gold_label_are_dropped_and_counted(tmp_path: Path) -> None:
    dataset = read(put(tmp_path / "a.tsv", "premise\thypothesis\tlabel\na\tb\t-\nc\td\tneutral\ne\tf\t-1\n"))
    assert rows(dataset) == {"premise": ["c"], "hypothesis": ["d"], "label": ["neutral"]}
    assert dataset.skipped == {"rows without a gold label": 2}
    unlabelled = put(tmp_path / "b.tsv", "premise\thypothesis\tlabel\na\tb\t-\n")
    assert refused(unlabelled) == [": there are no rows. Expected at least one row."]


def test_problems_of_cells_in_text(tmp_path: Path) -> None:
    content = b"sentence1\tsentence2\tscore\na\tb\nc\t \tx\nd\te\tnan\n\xff\tf\t1\t2\n\ng\th\t1\n"
    assert refused(put(tmp_path / "a.tsv", content)) == [
        "line 2: found 2 cells. Expected 3 cells, as in the first line.",
        "line 3: empty cell in column 'sentence2'. Expected text.",
        "line 3: found 'x' in column 'score'. Expected a finite number.",
        "line 4: found 'nan' in column 'score'. Expected a finite number.",
        "line 5: invalid byte 0xFF at byte 1 of the line. Expected UTF-8.",
        "line 5: found 4 cells. Expected 3 cells, as in the first line.",
    ]


def test_problems_of_values_in_json(tmp_path: Path) -> None:
    objects = [
        '{"sentence1": "a", "sentence2": "b", "score": 1}',
        '{"sentence1": 7, "sentence2": null, "score": "x"}',
        '{"sentence1": "a", "score": 1}',
        '{"sentence1": "\\ud800", "sentence2": "x\\u0000", "score": NaN}',
        '{"sentence1": "\\ud83d\\ude00", "sentence2": ["b"], "score": 1' + "0" * 400 + "}",
    ]
    assert refused(put(tmp_path / "a.jsonl", "\n".join(objects))) == [
        "line 2: found 7 in column 'sentence1'. Expected text.",
        "line 2: empty cell in column 'sentence2'. Expected text.",
        "line 2: found 'x' in column 'score'. Expected a finite number.",
        "line 3: the object has no 'sentence2'. Expected every column in every object.",
        "line 4: lone surrogate U+D800 at character 1 in column 'sentence1'. Expected whole characters.",
        "line 4: NUL character at character 2 in column 'sentence2'. Expected text.",
        "line 4: found nan in column 'score'. Expected a finite number.",
        "line 5: found ['b'] in column 'sentence2'. Expected text.",
        f"line 5: found 1{'0' * 39}... in column 'score'. Expected a finite number.",
    ]


@pytest.mark.parametrize("escape", ["\\u0000", "\\udfff"])
def test_a_single_escaped_problem_is_found(escape: str, tmp_path: Path) -> None:
    objects = ['{"text": "fine"}', f'{{"text": "not {escape}"}}', '{"text": "fine"}']
    (message,) = refused(put(tmp_path / "a.jsonl", "\n".join(objects)))
    assert message.startswith("line 2: ")
    assert "at character 5 in column 'text'" in message


@pytest.mark.parametrize(("label", "expected"), [("maybe", "entailment, neutral"), ("3", "entailment, neutral")])
def test_unknown_nli_labels(label: str, expected: str, tmp_path: Path) -> None:
    path = put(tmp_path / "a.csv", f"premise,hypothesis,label\na,b,neutral\na,b,{label}\n")
    (message,) = refused(path)
    assert message.startswith(f"line 3: found {label!r} in column 'label'. Expected {expected}")
