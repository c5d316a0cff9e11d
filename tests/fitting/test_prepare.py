"""Prepare: real files become inputs, splits, training files and tasks; labels decide over raw text."""

import json

import pyarrow.parquet as pq
import pytest

from sentloom.data import read
from sentloom.data.shapes import Shape
from sentloom.encoder import Encoder
from sentloom.evaluation.bench import main_scores
from sentloom.fitting.prepare import prepare_inputs
from sentloom.fitting.request import make_request
from tests.fitting import small_base
from tests.fitting.test_request import request


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    return Encoder.load(small_base.build_base(tmp_path_factory.mktemp("base")))


def test_labels_decide_and_raw_text_only_trains(base, tmp_path):
    files = small_base.pairs(tmp_path / "faq.tsv"), small_base.prose(tmp_path / "raw.txt")
    said = []
    prepared = prepare_inputs(request(data=tuple(map(str, files)), output=tmp_path / "model"), [base], said.append)
    assert [fit_input.name for fit_input in prepared.inputs] == list(map(str, files))
    assert {training_set.shape: training_set.rows for training_set in prepared.training_sets} == {
        Shape.PAIRS: len(prepared.splits[0].train),
        Shape.TEXTS: len(prepared.splits[1].train),
    }
    assert [len(read(file)) for training_set in prepared.training_sets for file in training_set.files] == [
        training_set.rows for training_set in prepared.training_sets
    ]
    assert (prepared.labelled, prepared.label_free) == (True, False)
    assert [part.name for part in prepared.test] == [str(files[0])]
    assert [task.name for task in prepared.deciding(prepared.validation)] == [str(files[0])]
    assert pq.read_table(tmp_path / "model.fit" / "corpus.parquet").num_rows == 900
    assert said[0].startswith(f"{files[0]}: 500 pairs (anchor, positive)")
    assert prepared.training_sets[0].length == 16  # a sentence has five words
    assert f"{files[0]}: training reads texts in full, up to 16 tokens" in said


def test_raw_text_alone_is_label_free_unless_a_set_decides(base, tmp_path):
    text, asked = small_base.prose(tmp_path / "raw.txt"), small_base.pairs(tmp_path / "asked.tsv", 60)
    plain = request(data=(str(text),), output=tmp_path / "model")
    assert prepare_inputs(plain, [base], [].append).label_free
    against = request(data=(str(text),), output=tmp_path / "model", against=(str(asked),))
    assert not prepare_inputs(against, [base], [].append).label_free


def test_rows_of_a_set_that_decides_are_clustered_by_their_texts(base, tmp_path):
    texts = small_base.sentences(300, 6)
    data = small_base.pairs(tmp_path / "faq.tsv", 120)
    rows = [(texts[n % 50 + 200], texts[n], str(n % 5)) for n in range(100)]  # 50 first sentences, twice each
    asked = small_base.write_rows(tmp_path / "asked.tsv", "sentence1 sentence2 score", rows)
    plain = request(data=(str(data),), output=tmp_path / "model", against=(str(asked),))
    (score,) = main_scores(base, prepare_inputs(plain, [base], [].append).proving)
    assert len(score.items) == 100
    assert len(set(score.clusters.tolist())) == 50


def test_nothing_is_chosen_on_test_rows(base, tmp_path):
    for count in (80, 300):
        data = small_base.pairs(tmp_path / f"faq-{count}.tsv", count)
        prepared = prepare_inputs(request(data=(str(data),), output=tmp_path / "model"), [base], [].append)
        chosen, proven = (
            {item for task in tasks for item in task.items} for tasks in (prepared.choosing, prepared.proving)
        )
        assert len(chosen) >= 25
        assert len(proven) >= 25
        assert chosen.isdisjoint(proven)


def test_the_splits_of_a_folder_are_used_though_their_queries_search_one_corpus(base, tmp_path):
    texts, folder = small_base.sentences(120, 6), tmp_path / "beir"
    (folder / "qrels").mkdir(parents=True)
    rows = [{"_id": f"{n}", "text": text} for n, text in enumerate(texts)]
    (folder / "corpus.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    queries = [{**row, "text": small_base.other(row["text"])} for row in rows]
    (folder / "queries.jsonl").write_text("".join(json.dumps(row) + "\n" for row in queries))
    for split, numbers in (("train", range(90)), ("test", range(80, 120))):  # ten queries are in both
        lines = [f"{n}\t{at % 120}\t{grade}" for n in numbers for at, grade in ((n, 2), (n + 1, 1))]
        (folder / "qrels" / f"{split}.tsv").write_text("\n".join(lines) + "\n")
    asked = make_request([str(folder)], tmp_path / "model", {"base": "unused"})
    prepared = prepare_inputs(asked, [base], [].append)
    (counts,) = prepared.row_counts
    assert counts.read == 180
    assert counts.left_out[f"rows with sentences of retrieval:{folder}?split=test"] == 20
    assert counts.train + counts.validation + counts.test > 100
