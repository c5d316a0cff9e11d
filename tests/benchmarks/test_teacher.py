"""Only texts are given, and a whole run with a small teacher resumes and ends in a table."""

import gzip
import json

import pytest

from benchmarks.real_sets import tabled
from benchmarks.teacher import domain_texts, main, variants
from tests.encoder.small_models import build_model_folder


def test_the_texts_of_scored_pairs_are_those_of_training_rows():
    train = tabled("scores", {"sentence1": ["a", "b"], "sentence2": ["c", "a"], "score": ["1", "2"]})
    test = tabled("scores", {"sentence1": ["d"], "sentence2": ["e"], "score": ["3"]})
    assert domain_texts(train, test) == ["a", "b", "c"]


def test_only_passages_are_ranked():
    assert list(variants("texts.csv", 2, "bge-small", has_passages=False)) == ["base", "teacher"]
    base, _, ranking = variants("texts.csv", 2, "bge-small", has_passages=True).values()
    assert base == ()
    assert [stage.method for stage in ranking] == ["views", "mine", "teacher"]


@pytest.mark.long
def test_a_whole_run_resumes_and_ends_in_a_table(tmp_path, capsys):
    (tmp_path / "data/qa").mkdir(parents=True)
    rows = [
        f"What is the price of ticket {n}?\tTicket {n} costs {3 * n} euros. Pay it soon.\tSelQA" for n in range(200)
    ]
    with gzip.open(tmp_path / "data/qa/qa_pairs.en.tsv.gz", "wt", encoding="utf-8") as file:
        file.write("\n".join(["question\tanswer\tsubset", *rows]) + "\n")
    teacher = str(build_model_folder("bert", tmp_path / "teacher"))
    given = [str(tmp_path / "data"), "-o", str(tmp_path / "out"), "--sets", "selqa", "--texts", "100", "--test", "40"]
    given += ["--steps", "1", "--teacher", teacher]
    main(given)
    assert "minutes left" in capsys.readouterr().out
    assert json.loads((tmp_path / "out/selqa/ranking-1.json").read_text())["seconds"] > 0
    main(given)
    shown = capsys.readouterr().out
    assert "minutes left" not in shown, "everything was kept"
    assert shown.endswith((tmp_path / "out/table.md").read_text())
    assert shown.count("| selqa |") == 4
