"""No hidden query is given, and a whole run with a small writer ends in a table."""

import gzip
import json

import pytest

from benchmarks.raw_domains import asked_by_people, main, texts_of
from benchmarks.real_sets import tabled
from tests.writing.small_causal import build_small_causal


def test_all_answers_are_given_and_no_question():
    train = tabled("pairs", {"question": ["who?", "why?"], "answer": ["me", "it rains"]})
    test = tabled("pairs", {"question": ["when?"], "answer": ["at noon"]})
    assert texts_of(train, test) == ["me", "it rains", "at noon"]


def test_of_labelled_texts_only_those_for_training_are_given():
    train = tabled("labels", {"text": ["lamp on", "lamp off"], "label": ["on", "off"]})
    test = tabled("labels", {"text": ["light on"], "label": ["on"]})
    assert texts_of(train, test) == ["lamp on", "lamp off"]


def test_people_ask_for_answers_and_name_intents():
    train = tabled("pairs", {"question": ["who?", "why?"], "answer": ["me", "it rains"]})
    assert asked_by_people(train, 1) == [("who?", "me")]
    labelled = tabled("labels", {"text": ["lamp on", "stop", "light on"], "label": ["on", "halt", "on"]})
    assert sorted(asked_by_people(labelled, 2)) == [("lamp on", "light on"), ("light on", "lamp on")]


@pytest.mark.long
def test_a_whole_run_resumes_and_ends_in_a_table(tmp_path, capsys):
    (tmp_path / "data/qa").mkdir(parents=True)
    rows = [
        f"What is the price of ticket {n}?\tTicket {n} costs {3 * n} euros. Pay it soon.\tSelQA" for n in range(200)
    ]
    with gzip.open(tmp_path / "data/qa/qa_pairs.en.tsv.gz", "wt", encoding="utf-8") as file:
        file.write("\n".join(["question\tanswer\tsubset", *rows]) + "\n")
    writer = build_small_causal(tmp_path / "writer")
    given = [str(tmp_path / "data"), "-o", str(tmp_path / "out"), "--sets", "selqa", "--seeds", "1", "--rows", "60"]
    given += ["--texts", "4", "--steps", "1", "--endpoint-texts", "3", "--writer", str(writer)]
    main(given)
    first = capsys.readouterr().out
    assert "selqa, queries: the filters kept no pairs of 4 sentences" in first, "its weights are random"
    assert json.loads((tmp_path / "out/endpoint.json").read_text()) == {"set": "selqa", "rows": 3, "equal": 3}
    main(given)
    shown = capsys.readouterr().out
    assert "minutes left" not in shown, "everything was kept"
    assert shown.endswith((tmp_path / "out/table.md").read_text())
    assert shown.count("| selqa |") == 8
