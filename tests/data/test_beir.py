"""Folders in the form of BEIR: judged pairs with their splits, or the corpus."""

import json
from pathlib import Path

import pytest

from sentloom.data import Shape, read
from sentloom.errors import InputError
from sentloom.evaluation.set_source import SetSource
from sentloom.evaluation.user_tasks import own_task
from tests.data.reading import put


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "qrels").mkdir()
    corpus = [{"_id": f"d{n}", "title": "", "text": f"document {n}", "metadata": {}} for n in range(4)]
    corpus[1]["title"] = "Title"
    put(tmp_path / "corpus.jsonl", "".join(json.dumps(row) + "\n" for row in corpus))
    put(
        tmp_path / "queries.jsonl", "".join(json.dumps({"_id": f"q{n}", "text": f"query {n}"}) + "\n" for n in range(3))
    )
    put(tmp_path / "qrels/train.tsv", "query-id\tcorpus-id\tscore\nq0\td0\t1\nq0\td1\t1\nq1\td2\t0\n")
    put(tmp_path / "qrels/test.tsv", "query-id\tcorpus-id\tscore\nq2\td3\t1\nq9\td3\t1\n")
    return tmp_path


def test_judged_pairs_of_all_splits_and_of_one(folder: Path) -> None:
    data = read(folder, keep=["*"])
    assert data.shape is Shape.PAIRS
    assert [tuple(row.values()) for row in data] == [
        ("query 0", "document 0", "q0", "d0", "train"),
        ("query 0", "Title document 1", "q0", "d1", "train"),
        ("query 2", "document 3", "q2", "d3", "test"),
    ]
    assert sum(data.lost.values()) == 2  # five judgements: one is not relevant, one of an unknown query
    assert read(f"{folder}?split=test")["anchor"] == ["query 2"]
    assert read(f"{folder}?split=corpus")["text"] == ["document 0", "Title document 1", "document 2", "document 3"]


def test_grades_are_kept_if_there_are_several(folder: Path) -> None:
    put(folder / "qrels/train.tsv", "q0\td0\t2\nq0\td1\t1\nq1\td2\t0\n")
    data = read(f"{folder}?split=train")
    assert data.shape is Shape.SCORED_PAIRS
    assert data.used == {"sentence1": "query", "sentence2": "passage", "score": "relevance"}
    assert data["score"] == [2.0, 1.0, 0.0]


def test_judgements_of_trec_and_unknown_splits(folder: Path) -> None:
    put(folder / "qrels/test.tsv", "q2\t0\td3\t1\n")
    assert read(f"{folder}?split=test")["positive"] == ["document 3"]
    with pytest.raises(InputError, match=r"there is no split 'dev'. Expected one of train, test, corpus"):
        read(f"{folder}?split=dev")


def test_evaluate_asks_the_test_queries_about_the_whole_corpus(folder: Path) -> None:
    task = own_task(None, str(folder), SetSource())
    assert task.texts["query"] == ["query 2"]
    assert sorted(task.texts["document"]) == ["Title document 1", "document 0", "document 2", "document 3"]
    assert own_task(None, f"{folder}?split=train", SetSource()).texts["query"] == ["query 0"]
