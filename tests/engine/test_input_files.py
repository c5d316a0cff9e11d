"""Rows in memory become files under a hash of their content; files and names stay as they are."""

from pathlib import Path

import pandas as pd
import pytest

from sentloom.data import read
from sentloom.engine.rows import input_file, inputs_in, labelled, recipe_changes

ROWS = [("a", "b"), ("c", "d")]


def test_a_name_stays_and_rows_are_written_once(tmp_path):
    assert input_file("faq.csv", tmp_path, print).name == "faq.csv"
    from_rows, from_frame = (
        input_file(rows, tmp_path, print) for rows in (ROWS, pd.DataFrame(ROWS, columns=["anchor", "positive"]))
    )
    assert from_rows.name == from_frame.name
    assert not Path(from_rows.name).exists()
    from_rows.write()
    before = Path(from_rows.name).stat().st_mtime_ns
    from_frame.write()
    assert Path(from_rows.name).stat().st_mtime_ns == before
    assert [*read(from_rows.name)] == [*read(ROWS)]
    assert input_file(ROWS[:1], tmp_path, print).name != from_rows.name


def test_rows_in_memory_are_called_by_what_they_are(tmp_path):
    some = (ROWS, "faq.csv", pd.DataFrame(ROWS[:1], columns=["anchor", "positive"]), ROWS[1:])
    files = [input_file(rows, tmp_path, print) for rows in some]
    assert [file.label for file in labelled(files)] == ["the list (input 1)", "", "the DataFrame", "the list (input 4)"]


def test_a_list_is_texts_or_rows_unless_it_holds_files_or_tables(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("a.txt", "b.txt"):
        Path(name).write_text("x\n")
    frame = pd.DataFrame({"text": ["x"]})
    assert inputs_in("a.txt") == ["a.txt"]
    assert inputs_in(["a.txt", "b.txt"]) == ["a.txt", "b.txt"]
    assert inputs_in(["a.txt", "a text"]) == [["a.txt", "a text"]]
    assert inputs_in([Path("c.txt"), Path("d.txt")]) == [Path("c.txt"), Path("d.txt")]
    assert inputs_in(ROWS) == [ROWS]
    assert inputs_in(["x" * 5000, "a\0b"]) == [["x" * 5000, "a\0b"]]
    several = inputs_in([frame, Path("a.txt"), ["one", "two"]])
    assert len(several) == 3
    assert inputs_in(()) == []
    assert inputs_in(["a.txt", "misspelt.csv"]) == ["a.txt", "misspelt.csv"]


def test_strings_to_score_on_are_names():
    assert inputs_in(["sts-b", "sts12"], scored=True) == ["sts-b", "sts12"]
    assert inputs_in(ROWS, scored=True) == [ROWS]


@pytest.mark.parametrize("value", ["stage:views", ["texts.txt"], "embedded", ["embedded/pairs", "stage:one"]])
def test_names_in_changes_of_a_recipe_are_left_alone(tmp_path, value):
    (tmp_path / "texts.txt").write_text("x\n")
    changes, files = recipe_changes({"learn.data": value, "seeds": [1, 2]}, tmp_path / "r.yaml", tmp_path / "out")
    assert files == []
    assert changes[1] == "seeds=[1, 2]"


def test_rows_in_changes_of_a_recipe_become_files(tmp_path):
    (change,), (file,) = recipe_changes({"learn.data": ["a text", "b"]}, tmp_path / "r.yaml", tmp_path / "out")
    assert change == f'learn.data="{file.name}"'
    assert Path(file.name).parent == tmp_path / "out" / "inputs"
    assert recipe_changes(["learn.batch=3"], tmp_path / "r.yaml", tmp_path) == (["learn.batch=3"], [])


def test_names_that_are_not_recognised_are_written_as_names_that_are(tmp_path):
    rows = [{"Frage": question, "Antwort": answer} for question, answer in ROWS]
    file = input_file(rows, tmp_path, print, columns="anchor=Frage,positive=Antwort")
    file.write()
    assert read(file.name)["positive"] == [answer for _, answer in ROWS]
