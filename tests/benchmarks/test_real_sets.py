"""Sets are divided by whole clusters, and templates become the sentences that they describe."""

import gzip
import random

import numpy as np
import pytest

from benchmarks.real_sets import SETS, connected, divide, expand, slot_values, tabled


def test_rows_with_an_equal_text_in_any_column_are_connected():
    table = tabled("pairs", {"a": ["one", "two", "three", "ONE "], "b": ["x", "one", "y", "z"]})
    assert table.clusters.tolist() == [0, 0, 1, 0], "the first text of row 0 is the second of row 1"


def test_groups_connect_rows_and_labels_do_not():
    columns = {"text": ["a", "b", "c"], "label": ["same", "same", "same"]}
    assert tabled("labels", columns).clusters.tolist() == [0, 1, 2]
    assert tabled("labels", columns, ["g", "h", "g"]).clusters.tolist() == [0, 1, 0]


def test_a_chain_of_equal_keys_is_one_component():
    assert connected([["a", "b", "c", "q"], ["b", "c", "d", "r"]]).tolist() == [0, 0, 0, 1]


def test_training_and_test_rows_share_no_cluster_and_large_clusters_are_trained_on():
    answers = [f"answer {number // 2}" for number in range(100)] + ["yes"] * 20
    table = tabled("pairs", {"question": [f"question {number}" for number in range(120)], "answer": answers})
    train, test = divide(table, 60, 40, seed=3)
    assert not set(train["answer"]) & set(test["answer"])
    assert (len(train), len(test)) == (60, 40)
    assert "yes" not in test["answer"], "20 of 40 rows are more than 5%"
    assert divide(table, 60, 40, seed=3)[0].columns == train.columns
    assert divide(table, 60, 40, seed=4)[1].columns != test.columns


def test_a_template_gives_what_it_describes():
    draw, rules, slots = random.Random(1), {"the": "(the|my)", "set": "<turn> on", "turn": "turn"}, {"area": ["attic"]}
    some = {expand("<set> [<the>] {area:place} light[s]", rules, slots, draw) for _ in range(200)}
    assert some == {f"turn on {the}attic light{s}" for the in ("", "the ", "my ") for s in ("", "s")}
    assert {expand("lights (on;in here)", {}, {}, draw) for _ in range(50)} == {
        "lights on in here",
        "lights in here on",
    }
    assert {expand("[a|b] (c|[d] e)", {}, {}, draw) for _ in range(300)} == {
        f"{first}{second}" for first in ("", "a ", "b ") for second in ("c", "e", "d e")
    }


def test_slots_have_values_numbers_or_fillers():
    values = [{"in": "(closed|shut)", "out": "off"}, "open"]
    slots = slot_values(
        {"state": {"values": values}, "hours": {"range": {"from": 1, "to": 8}}, "name": {"wildcard": True}}
    )
    assert slots["state"] == ["(closed|shut)", "open"]
    assert slots["hours"] == ["2", "3", "4", "5", "6", "7", "8"]
    assert "radio" in slots["name"]


@pytest.fixture
def data(tmp_path):
    """A folder with the layout of the real data, and a few rows."""
    (tmp_path / "qa").mkdir()
    (tmp_path / "parallel").mkdir()
    rows = [f"who is {n}?\tperson {n // 2}\tSelQA" for n in range(20)] + ["is it?\tTrue\tSelQA", "what?\tthat\tMedQuAD"]
    with gzip.open(tmp_path / "qa/qa_pairs.en.tsv.gz", "wt", encoding="utf-8") as file:
        file.write("\n".join(["question\tanswer\tsubset", *rows]) + "\n")
    rows = [
        "I see the big house.\tIch sehe es.",
        "I see the big house.\tDas sehe ich.",
        "Hi.\tHallo!",
        'He said "no" to me.\tNein.',
    ]
    with gzip.open(tmp_path / "parallel/tatoeba.en-de.tsv.gz", "wt", encoding="utf-8") as file:
        file.write("\n".join(["source\ttarget", *rows]) + "\n")
    return tmp_path


def test_questions_are_those_of_a_subset_with_open_answers(data):
    table = SETS["selqa"].read(data)
    assert len(table) == 20
    assert len(np.unique(table.clusters)) == 10
    train, test = SETS["selqa"].split(data, 10, 4)
    assert (len(train), len(test)) == (10, 0), "pairs of rows are more than 5% of four"


def test_a_sentence_has_one_translation(data):
    table = SETS["tatoeba-de"].read(data)
    assert sorted(table["source"]) == ['He said "no" to me.', "I see the big house."]


def test_a_table_is_written_as_csv(data, tmp_path):
    SETS["tatoeba-de"].read(data).write(tmp_path / "some.csv")
    lines = (tmp_path / "some.csv").read_text("utf-8").splitlines()
    assert lines[0] == "source,target"
    assert '"He said ""no"" to me.",Nein.' in lines
