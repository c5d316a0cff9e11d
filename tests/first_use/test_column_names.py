"""Columns are called what they are called in the user's file: in options, in messages and in what is written."""

import csv
import json
import os
import re
import subprocess
import sys
import urllib.request

import pytest

import sentloom as loom

ROWS = [
    ("How do I reset my password?", "Open the settings and choose a new one."),
    ("Where is the canteen?", "On the ground floor, next to the entrance."),
    ("How do I reset my password quickly?", "Ask the help desk on the second floor."),
    ("Is there parking for bicycles?", "Behind the building, under the roof."),
]
OWN = ("question", "answer")


@pytest.fixture(autouse=True)
def model(sentloom, tmp_path_factory):
    """A small model, made once; its vectors say nothing, which does not matter here."""
    folder = tmp_path_factory.getbasetemp() / "column-names"
    if not folder.exists():
        folder.mkdir()
        (folder / "texts.txt").write_text("\n".join(text for row in ROWS for text in row) + "\n", "utf-8")
        small = ["--layers", 1, "--width", 32, "--vocabulary", 90, "--max-length", 32]
        assert sentloom("lab", "init-model", folder / "texts.txt", "-o", folder / "model", *small).returncode == 0
    return folder / "model"


def put(path, names=OWN, rows=ROWS):
    if path.suffix == ".jsonl":
        lines = [json.dumps(dict(zip(names, row, strict=True))) for row in rows]
        path.write_text("\n".join(lines) + "\n", "utf-8")
    else:
        with path.open("w", encoding="utf-8", newline="") as file:
            csv.writer(file, delimiter="\t" if path.suffix == ".tsv" else ",").writerows([names, *rows])
    return path


def said(done, code=0):
    assert done.returncode == code, done.stdout + done.stderr
    shown = done.stdout + done.stderr
    assert not re.search(r"\b(anchor|positive)\b", shown), shown
    return shown


@pytest.mark.parametrize("kind", ["csv", "tsv", "jsonl"])
def test_search_finds_answers_or_the_column_that_is_named(sentloom, model, tmp_path, kind):
    data = put(tmp_path / f"faq.{kind}")
    for options, side in (((), 1), (("--column", "answer"), 1), (("--column", "Question"), 0)):
        shown = said(sentloom("search", data, "canteen", "-k", 4, "--model", model, *options))
        assert all(row[side] in shown for row in ROWS)
        assert not any(row[1 - side] in shown for row in ROWS)


@pytest.mark.long
def test_serve_searches_the_answers_of_pairs(model, tmp_path):
    data = put(tmp_path / "faq.csv")
    command = [sys.executable, "-m", "sentloom", "serve", f"small={model}", "--corpus", str(data), "--port", "0"]
    environment = {**os.environ, "PYTHONUNBUFFERED": "1", "COLUMNS": "500"}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment
    ) as server:
        try:
            lines = []
            while not (address := re.search(r"Serving at (\S+)", lines[-1] if lines else "")):
                lines.append(server.stdout.readline())
                assert lines[-1], lines
            body = json.dumps({"query": "canteen", "k": 4}).encode()
            asked = urllib.request.Request(f"{address[1]}/v1/search", body, {"Content-Type": "application/json"})
            with urllib.request.urlopen(asked, timeout=60) as answer:
                found = answer.read().decode()
        finally:
            server.terminate()
    assert all(row[1] in found for row in ROWS)
    assert not any(row[0] in found for row in ROWS)


def test_triplets_and_other_names_for_pairs_are_searched_by_their_answers(sentloom, model, tmp_path):
    for names in (("query", "passage"), ("title", "body"), ("Query", "Document")):
        shown = said(sentloom("search", put(tmp_path / "a.csv", names), "canteen", "--model", model))
        assert ROWS[1][1] in shown
    rows = [(*row, f"something else {at}") for at, row in enumerate(ROWS)]
    data = put(tmp_path / "t.csv", (*OWN, "negative"), rows)
    shown = said(sentloom("search", data, "canteen", "--model", model))
    assert ROWS[1][1] in shown
    assert "something else" not in shown


def test_names_that_are_not_guessed_are_named_once_and_then_known(sentloom, model, tmp_path):
    data = put(tmp_path / "fragen.csv", ("Frage", "Antwort"))
    columns = ("--columns", "anchor=Frage,positive=Antwort")
    shown = said(sentloom("search", data, "canteen", "--model", model, *columns))
    assert ROWS[1][1] in shown
    assert "(Frage, Antwort)" in shown
    shown = said(sentloom("search", data, "canteen", "--model", model, *columns, "--column", "Frage"))
    assert ROWS[1][0] in shown
    error = said(sentloom("search", data, "canteen", "--model", model, *columns, "--column", "Text"), 2)
    assert "one of Frage, Antwort" in error


def test_naming_the_column_is_enough_where_names_are_not_guessed(sentloom, model, tmp_path):
    data = put(tmp_path / "vragen.csv", ("Vraag", "Antwoord"), [*ROWS, ("", "A row without a question.")])
    shown = said(sentloom("search", data, "canteen", "-k", 5, "--model", model, "--column", "Antwoord"))
    assert all(row[1] in shown for row in ROWS)
    assert "5 vectors" in said(
        sentloom("encode", data, "-o", tmp_path / "v.npy", "--model", model, "--column", "Antwoord")
    )
    error = sentloom("search", data, "canteen", "--model", model, "--column", "Text")
    assert error.returncode == 2
    assert "there is no column 'Text' among the columns 'Vraag', 'Antwoord'" in " ".join(error.stderr.split())


def test_a_column_that_is_really_called_positive_works(sentloom, model, tmp_path):
    data = put(tmp_path / "pairs.csv", ("positive", "anchor"))
    for name, side in (("positive", 0), ("anchor", 1)):
        done = sentloom("search", data, "canteen", "--model", model, "--column", name)
        assert done.returncode == 0, done.stderr
        assert ROWS[1][side] in done.stdout


@pytest.mark.parametrize(
    "command",
    [
        ("search", "{data}", "canteen", "--model", "{model}"),
        ("encode", "{data}", "-o", "{folder}/v.npy", "--model", "{model}"),
        ("lab", "translate", "{data}", "-o", "{folder}/t.csv", "--model", "{model}"),
        ("lab", "vocabulary", "{model}", "{data}", "-o", "{folder}/larger"),
        ("serve", "{model}", "--corpus", "{data}"),
        ("check", "{data}", "-o", "{folder}/c.csv"),
    ],
    ids=lambda command: " ".join(command[:2]).partition(" {")[0],
)
def test_an_unknown_column_is_refused_with_the_names_of_the_file(sentloom, model, tmp_path, command):
    data = put(tmp_path / "faq.csv")
    option = "--distinct" if command[0] == "check" else "--column"
    arguments = [part.format(data=data, model=model, folder=tmp_path) for part in command]
    error = said(sentloom(*arguments, option, "reply"), 2)
    assert "there is no text column 'reply'" in error
    assert "one of question, answer" in error
    assert f"{option} answer" in error
    assert {path.name for path in tmp_path.iterdir()} <= {"faq.csv", "scratch"}


def test_serve_takes_columns_that_are_not_recognised(sentloom, model, tmp_path):
    (tmp_path / "fragen.csv").write_text("Frage,Antwort\nWo ist die Kantine?,Im Erdgeschoss.\n", "utf-8")
    command = ("serve", model, "--corpus", tmp_path / "fragen.csv", "--columns", "anchor=Frage,positive=Antwort")
    error = said(sentloom(*command, "--column", "Reply"), 2)
    assert "there is no text column 'Reply'" in error
    assert "one of Frage, Antwort" in error


@pytest.mark.parametrize("kind", ["csv", "tsv", "jsonl"])
def test_encode_takes_the_names_of_the_file(sentloom, model, tmp_path, kind):
    data = put(tmp_path / f"faq.{kind}")
    error = said(sentloom("encode", data, "-o", tmp_path / "v.npy", "--model", model), 2)
    assert "pairs have several text columns" in error
    assert "one of question, answer" in error
    assert "4 vectors" in said(
        sentloom("encode", data, "-o", tmp_path / "v.npy", "--model", model, "--column", "answer")
    )


def test_vocabulary_takes_and_shows_the_names_of_the_file(sentloom, model, tmp_path):
    rows = [(f"What is xylophonist {at}?", f"A xylophonist plays the xylophone {at}.") for at in range(30)]
    data = put(tmp_path / "faq.csv", rows=rows)
    shown = said(
        sentloom("lab", "vocabulary", model, data, "-o", tmp_path / "larger", "--size", 120, "--column", "answer")
    )
    assert "question: " in shown
    assert "answer: " in shown


def test_check_shows_and_writes_the_names_of_the_file(sentloom, model, tmp_path):
    data = put(tmp_path / "faq.csv")
    shown = said(sentloom("check", data, "--model", model, "--json", tmp_path / "found.json"))
    assert "4 rows (question, answer)" in shown
    found = json.loads((tmp_path / "found.json").read_text("utf-8"))
    assert [one["column"] for one in found["lengths"]] == [*OWN]
    assert [one["column"] for one in found["tokens"]] == [*OWN]


@pytest.mark.parametrize("kind", ["csv", "tsv", "jsonl"])
def test_the_copy_takes_and_has_the_names_of_the_file(sentloom, tmp_path, kind):
    data = put(tmp_path / f"faq.{kind}", rows=[*ROWS, (ROWS[0][0], "Another answer to the same question.")])
    shown = said(sentloom("check", data, "-o", tmp_path / f"clean.{kind}", "--distinct", "question"))
    assert "repeats an earlier question" in shown
    shown = said(sentloom("check", tmp_path / f"clean.{kind}"))
    assert "4 rows (question, answer)" in shown
    error = said(sentloom("check", data, "-o", tmp_path / f"other.{kind}", "--scripts", "Latin"), 2)
    assert "one for each column: question, answer" in error


def test_check_fixed_keeps_the_names_of_every_shape(sentloom, tmp_path):
    shapes = {
        ("sentence",): [("One text.",), ("Two texts.",)],
        ("query", "document", "relevance"): [("a b", "c d", 0.0), ("e f", "g h", 2.0)],
        ("premise", "hypothesis", "gold_label"): [("a b", "c d", "entailment"), ("e f", "g h", "neutral")],
        ("src", "tgt"): [("a b", "c d"), ("e f", "g h")],
        ("sentence", "category"): [("a b", "one"), ("c d", "two")],
    }
    for number, (names, rows) in enumerate(shapes.items()):
        data, cleaned = put(tmp_path / f"{number}.csv", names, rows), tmp_path / f"{number}-clean.csv"
        assert sentloom("check", data, "-o", cleaned).returncode == 0
        assert cleaned.read_text("utf-8").splitlines()[0] == ",".join(names)
        assert loom.read(cleaned).shape == loom.read(data).shape


def test_check_fixed_keeps_names_that_are_not_recognised(sentloom, tmp_path):
    data = put(tmp_path / "fragen.csv", ("Frage", "Antwort", "Falsch"), [(*row, "Something else.") for row in ROWS])
    columns = ("--columns", "anchor=Frage,positive=Antwort,negative=Falsch")
    said(sentloom("check", data, "-o", tmp_path / "clean.csv", *columns))
    assert (tmp_path / "clean.csv").read_text("utf-8").splitlines()[0] == "Frage,Antwort,Falsch"
    assert "4 rows (Frage, Antwort, Falsch)" in said(sentloom("check", tmp_path / "clean.csv", *columns))


def test_check_fixed_gives_a_file_without_a_header_one_that_is_recognised(sentloom, tmp_path):
    data = put(tmp_path / "faq.csv", *ROWS[:1], ROWS[1:])
    sentloom("check", data, "-o", tmp_path / "clean.csv", "--columns", "anchor=1,positive=2")
    assert len(loom.read(tmp_path / "clean.csv")) == len(ROWS)


def test_the_advice_to_clean_has_the_columns_that_were_given(sentloom, tmp_path):
    data = put(tmp_path / "fragen.csv", ("Frage", "Antwort"), [*ROWS, ("Where?", "")])
    columns = ("--columns", "anchor=Frage,positive=Antwort")
    error = sentloom("check", data, *columns)
    assert error.returncode == 2
    advice = " ".join(error.stderr.split())
    assert f"fragen.csv {' '.join(columns)} -o FIXED`" in advice


def test_mined_triplets_keep_the_names_of_the_pairs(sentloom, model, tmp_path):
    data = put(tmp_path / "faq.csv")
    said(sentloom("lab", "mine", data, "-o", tmp_path / "mined.jsonl", "--model", model, "--margin", -2))
    first = json.loads((tmp_path / "mined.jsonl").read_text("utf-8").splitlines()[0])
    assert [*first] == [*OWN, "negatives"]
    assert "triplets, 4 rows (question, answer, negatives)" in said(sentloom("check", tmp_path / "mined.jsonl"))


def test_mine_says_that_pairs_without_negatives_are_left_out(sentloom, model, tmp_path):
    data = put(tmp_path / "faq.csv", rows=[*ROWS, ("What is the answer?", "What is the answer?")])
    for margin, absent in ((-2, ""), (0.0, "are not in the output")):
        shown = said(
            sentloom("lab", "mine", data, "-o", tmp_path / "mined.jsonl", "--model", model, "--margin", margin)
        )
        written = len((tmp_path / "mined.jsonl").read_text("utf-8").splitlines())
        assert (f"the other {5 - written} are not in the output" in shown) == (written < 5)
        assert absent in shown


def test_python_knows_the_names_of_the_file_too(model, tmp_path):
    data = loom.read(put(tmp_path / "faq.csv"))
    assert data["answer"] == data["positive"] == [answer for _, answer in ROWS]
    with pytest.raises(loom.SentloomError, match="one of question, answer"):
        data["reply"]
    encoder = loom.Encoder.load(str(model))
    assert {hit.text for hit in encoder.search("canteen", data, k=4)} == {answer for _, answer in ROWS}
    with pytest.raises(loom.SentloomError, match="the columns question, answer"):
        encoder.encode(data)


def test_two_files_of_different_shapes_are_described_by_their_own_names(sentloom, tmp_path):
    (folder := tmp_path / "both").mkdir()
    put(folder / "a.csv")
    put(folder / "b.csv", ("question", "answer", "score"), [(*row, 1) for row in ROWS])
    error = said(sentloom("check", folder), 2)
    assert "scored-pairs with question, answer, score" in error
