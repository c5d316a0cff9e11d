"""`--spreadsheet-safe`: no cell that a command writes is run as a formula; without it, texts are written as they are."""

import csv

import pytest

from tests.encoder.small_models import build_model_folder
from tests.writing.views.small_parts import build_translation_model

FORMULA = '=HYPERLINK("evil")'
PAIRS = [(FORMULA, "@SUM(A1)"), ("a dog", "a cat runs"), ("-x", "+y"), ("plain", "1 = 1")]


@pytest.fixture
def pairs(tmp_path):
    path = tmp_path / "pairs.csv"
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([("question", "answer"), *PAIRS])
    return path


def rows(path):
    with path.open(newline="") as file:
        return list(csv.reader(file))[1:]


def safe(texts):
    return [f"'{text}" if text[0] in "=+-@" else text for text in texts]


def both_ways(sentloom, output, *command):
    """The rows that a command writes without and with the option."""
    found = []
    for option in ([], ["--spreadsheet-safe"]):
        done = sentloom(*command, *option, "-o", output)
        assert done.returncode == 0, done.stderr
        found.append(rows(output))
    return found


def test_check(sentloom, pairs, tmp_path):
    plain, made_safe = both_ways(sentloom, tmp_path / "fixed.csv", "check", pairs)
    assert plain == [*map(list, PAIRS)]
    assert made_safe == [["'" + FORMULA, "'@SUM(A1)"], ["a dog", "a cat runs"], ["'-x", "'+y"], ["plain", "1 = 1"]]


def test_views(sentloom, pairs, tmp_path):
    (tmp_path / "texts.txt").write_text("".join(f"{one}\n" for one, _ in PAIRS))
    command = ["lab", "views", tmp_path / "texts.txt", "--kind", "file", "--file", pairs]
    plain, made_safe = both_ways(sentloom, tmp_path / "views.csv", *command)
    assert plain == [*map(list, PAIRS)]
    assert made_safe == [*map(safe, PAIRS)]


def test_translate(sentloom, tmp_path):
    pytest.importorskip("sentencepiece")
    (tmp_path / "texts.txt").write_text(f"{FORMULA}\nplain\n")
    model = build_translation_model(tmp_path, 0)
    command = ["lab", "translate", tmp_path / "texts.txt", "--model", model, "--beams", "1"]
    plain, made_safe = both_ways(sentloom, tmp_path / "translated.csv", *command)
    assert [row[0] for row in plain] == [FORMULA, "plain"]
    assert made_safe == [*map(safe, plain)]


def test_mine(sentloom, pairs, tmp_path):
    model = build_model_folder("bert", tmp_path / "model")
    command = ["lab", "mine", pairs, "--model", model, "--margin", "-2"]
    plain, made_safe = both_ways(sentloom, tmp_path / "triplets.csv", *command)
    assert [row[:2] for row in plain] == [*map(list, PAIRS)]
    assert any(row[2][0] in "=+-@" for row in plain)  # a negative too
    assert made_safe == [*map(safe, plain)]
