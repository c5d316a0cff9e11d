"""Batches, list columns, joined rows and hashes of text columns."""

import json
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sentloom.data.columns import Seen, among, any_sentence, evenly_spaced, flat, hashes, joined, refill, walk
from sentloom.data.shapes import Shape
from tests.data.reading import put
from tests.encoder.small_models import build_model_folder
from tests.small_data import build_dataset

LISTS = pa.array([["a", "b"], ["c"], ["d", "e", "f"]], pa.list_(pa.large_string()))


def texts(*values: str) -> pa.Array:
    return pa.array(values, pa.large_string())


def test_numbers_are_evenly_spaced_from_the_first_to_the_last() -> None:
    assert evenly_spaced(9, 3).tolist() == [0, 4, 8]
    assert evenly_spaced(3, 9).tolist() == [0, 1, 2]
    assert evenly_spaced(1, 1).tolist() == [0]
    assert evenly_spaced(0, 5).tolist() == []


def test_walk_numbers_the_rows() -> None:
    dataset = build_dataset(Shape.TEXTS, [(str(number),) for number in range(7)], chunk=3)
    seen = [(start, batch.column("text").to_pylist()) for start, batch in walk(dataset, ("text",))]
    assert seen == [(0, ["0", "1", "2"]), (3, ["3", "4", "5"]), (6, ["6"])]


def test_walk_skips_empty_chunks() -> None:
    dataset = build_dataset(Shape.TEXTS, [("a",), ("b",)], chunk=1)
    full = dataset.table.to_batches()
    table = pa.Table.from_batches([full[0], full[0].slice(0, 0), full[1]])
    assert [(start, batch.num_rows) for start, batch in walk(replace(dataset, table=table))] == [(0, 1), (1, 1)]


def test_a_slice_of_a_list_column_is_flattened_and_rebuilt() -> None:
    column = LISTS.slice(1)
    sentences, owner = flat(column)
    assert sentences.to_pylist() == ["c", "d", "e", "f"]
    assert owner.tolist() == [0, 1, 1, 1]
    assert refill(column, texts("C", "D", "E", "F")).to_pylist() == [["C"], ["D", "E", "F"]]


def test_any_sentence_looks_into_lists() -> None:
    batch = pa.record_batch([texts("x", "e", "y"), LISTS], names=["anchor", "negatives"])
    passed = any_sentence(batch, ("anchor", "negatives"), lambda part: np.array(part.to_pylist()) == "e")
    assert passed.tolist() == [False, True, True]


def test_joined_rows_differ_if_any_cell_differs() -> None:
    rows = {
        "anchor": texts("a", "ab", "a", "a", "a"),
        "score": pa.array([1.0, 1.0, 0.5, 1.0, 1.0]),
        "negatives": pa.array([["b", "c"], ["b", "c"], ["b", "c"], ["bc"], ["b", "c"]], pa.list_(pa.large_string())),
    }
    batch = pa.record_batch(list(rows.values()), names=list(rows))
    keys = joined(batch, tuple(rows)).to_pylist()
    assert keys[0] == keys[4]
    assert len(set(keys)) == 4


@given(st.lists(st.text(alphabet="ab é", max_size=3)))
def test_hashes_are_equal_exactly_for_equal_texts(values: list[str]) -> None:
    codes = hashes(texts(*values))
    for value, code in zip(values, codes, strict=True):
        assert [other == value for other in values] == (codes == code).tolist()


@given(st.lists(st.lists(st.integers(0, 40))))
def test_seen_equals_a_set(calls: list[list[int]]) -> None:
    seen, oracle = Seen(), set()
    for call in calls:
        expected = []
        for value in call:
            expected.append(value in oracle)
            oracle.add(value)
        assert seen.repeats(np.array(call, np.uint64)).tolist() == expected


@given(st.lists(st.integers(0, 20)), st.sets(st.integers(0, 20)))
def test_among_equals_the_in_operator(values: list[int], members: set[int]) -> None:
    ordered = np.array(sorted(members), np.uint64)
    assert among(np.array(values, np.uint64), ordered).tolist() == [value in members for value in values]


TRIPLETS = {
    "mined.jsonl": json.dumps({"query": "a", "passage": "b", "negatives": ["c", "d"]}) + "\n",
    "mined.csv": "query,passage,hard_neg_1,hard_neg_2\na,b,c,d\n",
}


@pytest.mark.parametrize(
    ("file", "column"), [("mined.jsonl", "negatives"), ("mined.jsonl", "Negatives"), ("mined.csv", "hard_neg_2")]
)
def test_a_command_says_why_the_negatives_cannot_be_its_column(sentloom, tmp_path, file, column) -> None:
    data, model = put(tmp_path / file, TRIPLETS[file]), build_model_folder("bert", tmp_path / "model")
    done = sentloom("encode", data, "-o", tmp_path / "v.npy", "--model", model, "--column", column)
    assert done.returncode == 2, done.stdout + done.stderr
    shown = " ".join(done.stderr.split())
    assert f"the column '{column}' holds negatives, which can be several texts per row, and cannot be chosen" in shown
    assert "one of query, passage" in shown
    assert "there is no" not in shown
    assert not (tmp_path / "v.npy").exists()


def test_a_column_of_another_name_is_still_unknown_in_triplets(sentloom, tmp_path) -> None:
    data, model = put(tmp_path / "mined.jsonl", TRIPLETS["mined.jsonl"]), build_model_folder("bert", tmp_path / "model")
    done = sentloom("encode", data, "-o", tmp_path / "v.npy", "--model", model, "--column", "answer")
    assert done.returncode == 2, done.stdout + done.stderr
    assert "there is no text column 'answer'" in " ".join(done.stderr.split())
