"""Parquet and Arrow: rows, class names, damage."""

import hashlib
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sentloom.data import Shape, read
from sentloom.errors import DataError, InputError
from tests.data.reading import put, refused, rows, saved

PAIRS = {"anchor": ["was ist das?", "und das?"], "positive": ["ein Bär", "ein Zug"]}


def test_parquet(tmp_path: Path) -> None:
    table = pa.table(
        {"id": [1, 2], "question": PAIRS["anchor"], "answer": pa.array(PAIRS["positive"]).dictionary_encode()}
    )
    pq.write_table(table, tmp_path / "a.parquet")
    dataset = read(tmp_path / "a.parquet", keep=["id"])
    assert (dataset.shape, rows(dataset)) == (Shape.PAIRS, {**PAIRS, "id": ["1", "2"]})
    assert dataset.place(0) == f"{tmp_path / 'a.parquet'}, row 1"
    assert dataset.sha256 == hashlib.sha256((tmp_path / "a.parquet").read_bytes()).hexdigest()


FEATURES = {"info": {"features": {"label": {"_type": "ClassLabel", "names": ["not_entailment", "entailment"]}}}}


def test_saved_data_count_their_rows_over_all_files_and_name_their_classes(tmp_path: Path) -> None:
    parts = [
        pa.table({"sentence1": ["a", "c"], "sentence2": ["b", "d"], "label": labels}).replace_schema_metadata(
            {"huggingface": json.dumps(FEATURES)}
        )
        for labels in ([0, 1], [1, 1])
    ]
    dataset = read(saved(tmp_path / "s", parts))
    assert dataset.shape is Shape.NLI
    assert rows(dataset)["label"] == ["not_entailment", "entailment", "entailment", "entailment"]
    assert [dataset.place(row) for row in range(4)] == [f"{tmp_path / 's'}, row {row}" for row in (1, 2, 3, 4)]
    (tmp_path / "s" / "data-00001-of-00002.arrow").unlink()
    with pytest.raises(InputError, match=r"state\.json: no such file: data-00001-of-00002\.arrow"):
        read(tmp_path / "s")
    put(tmp_path / "s" / "state.json", "{}")
    with pytest.raises(InputError, match=r"state\.json"):
        read(tmp_path / "s")


def test_data_saved_by_the_datasets_package_is_read(tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets")
    made = datasets.Dataset.from_dict({"text": ["a", "b"], "label": [1, 0]})
    made = made.cast_column("label", datasets.ClassLabel(names=["no", "yes"]))
    made.save_to_disk(tmp_path / "one")
    made.to_parquet(tmp_path / "a.parquet")
    datasets.DatasetDict({"train": made, "test": made}).save_to_disk(tmp_path / "two")
    for path in (tmp_path / "one", tmp_path / "two" / "train", tmp_path / "a.parquet"):
        assert rows(read(path)) == {"text": ["a", "b"], "label": ["yes", "no"]}
    with pytest.raises(InputError, match="the splits test, train"):
        read(tmp_path / "two")


def test_problems_of_rows_in_parquet(tmp_path: Path) -> None:
    bad = pa.array([b"fine", b"caf\xe9", None, b" "], pa.binary()).view(pa.string())
    pq.write_table(pa.table({"text": bad, "label": ["a", "b", "c", None]}), tmp_path / "a.parquet")
    assert refused(tmp_path / "a.parquet") == [
        "row 2: found b'caf\\xe9' in column 'text'. Expected text.",
        "row 3: empty cell in column 'text'. Expected text.",
        "row 4: empty cell in column 'text'. Expected text.",
        "row 4: empty cell in column 'label'. Expected a label.",
    ]


@pytest.mark.parametrize("content", [b"", b"PAR1", b"not parquet at all"])
def test_files_that_are_not_parquet(content: bytes, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="cannot be read"):
        read(put(tmp_path / "a.parquet", content))
