"""`fit` on rows in memory."""

from dataclasses import replace

import pandas as pd
import pytest

import sentloom
from sentloom.errors import InputError, SentloomError
from tests.api.small_pairs import PAIRS


@pytest.mark.long
def test_fit_of_rows_in_memory_resumes_and_equals_the_fit_of_the_file(base, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    lines = []
    done = sentloom.fit(PAIRS, "model", base=base, budget="20steps", force=True, log=lines.append)
    (file,) = (tmp_path / "model.fit" / "inputs").iterdir()
    assert [*sentloom.read(file)] == [*sentloom.read(PAIRS)]
    assert f"sentloom fit {file.relative_to(tmp_path)} -o model" in done.result.command
    weights = (tmp_path / "model" / "model.safetensors").read_bytes()
    again = sentloom.fit(pd.DataFrame(PAIRS, columns=["anchor", "positive"]), "model", base=base, budget="20steps",
                         force=True, log=lines.append)  # fmt: skip
    assert [*(tmp_path / "model.fit" / "inputs").iterdir()] == [file]  # the same content is the same input
    assert (tmp_path / "model" / "model.safetensors").read_bytes() == weights
    assert (*done.scores,)[0] == "the list"
    assert (*again.scores,)[0] == "the DataFrame"
    assert replace(again.result.total, name="the list") == done.result.total
    named = sentloom.fit(file.relative_to(tmp_path), "other", base=base, budget="20steps", force=True)
    assert replace(named.result.total, name="the list") == done.result.total


def test_a_fit_shows_itself_escaped_and_gives_the_encoder_to_use(base, tmp_path):
    lines = []
    done = sentloom.fit(PAIRS, tmp_path / "a<b>", base=base, budget="2steps", log=lines.append)
    assert lines[0].startswith("the list: 300 pairs")  # not the name of the file that the rows were written to
    assert "the list" in done.scores
    assert done.result.title == "a<b>, fitted to the list"
    assert "  10 steps run, more than the budget of 2: a stage trains for at least 10 steps" in lines
    assert repr(done).startswith(f"Fit(verdict={done.verdict!r}, reason=")
    assert "Measure(" not in repr(done)
    page = done._repr_html_()
    assert "<table>" in page
    assert "a&lt;b&gt;" in page
    assert "a<b>" not in page
    assert "<strong>Better than its base.</strong>" in page
    used = done.model or base
    assert done.encoder.fingerprint() == sentloom.Encoder.load(used).fingerprint()
    assert done.encoder is done.encoder  # loaded once


def test_strict_refuses_unusable_rows_by_number(base, tmp_path):
    rows = [*PAIRS, ("a", "")]
    with pytest.raises(SentloomError, match="the list, row 301: empty cell"):
        sentloom.fit(rows, tmp_path / "m", base=base, budget="2steps", strict=True)
    assert not (tmp_path / "m.fit").exists()


@pytest.mark.long
def test_unusable_rows_are_left_out_and_reported_by_number(base, tmp_path):
    rows, lines = [*PAIRS, ("a", "")], []
    sentloom.fit(rows, tmp_path / "m", base=base, budget="2steps", log=lines.append)
    assert any("the list, row 301" in line for line in lines)


def test_columns_cannot_mean_files_and_rows_at_once(base, tmp_path):
    frame = pd.DataFrame({"q": ["a"], "a": ["b"]})
    with pytest.raises(InputError, match="Read the files first"):
        sentloom.fit([tmp_path / "x.csv", frame], tmp_path / "m", columns={"anchor": "q", "positive": "a"})


def test_arguments_of_a_wrong_value_are_refused_with_a_sentence(base, tmp_path):
    output = tmp_path / "m"
    wrong = {
        "shape": ("pairz", r"'pairz' is unknown\. Expected one of texts, pairs"),
        "budget": ("6 years", "'6 years' is not a budget"),
        "seed": (-1, r"seed: -1 is not a seed\. Expected an integer of 0 or more"),
        "base": (sentloom.Encoder.load(base), r"type Encoder(.|\n)*encoder\.save\(folder\)"),
        "dimensions": (
            "384,256",
            r"dimensions: found '384,256'\. Expected a list of whole numbers\.\nWrite \[384, 256",
        ),
        "group": (["thread"], r"group: there is no column 'thread' in the list\. Expected one of anchor, positive"),
        "columns": ({"anchor": None}, r"columns: found None\. Expected a dict of roles and column names"),
        "against": ([["a"], ["b"]], "the list: texts cannot be scored"),
        "data": ([PAIRS, PAIRS], r"found a list of rows(.|\n)*Join the lists \(a \+ b\), or make each"),
        "corpus": (5, r"corpus: found 5\. Expected a path, or a list of strings, tuples(.|\n)*Pass the rows"),
    }
    for name, (value, said) in wrong.items():
        with pytest.raises(InputError, match=said):
            sentloom.fit(**{"data": PAIRS, "output": output, "base": base, name: value})
    assert not [*tmp_path.glob("m*")]


def test_a_refused_fit_leaves_no_folder(base, tmp_path):
    with pytest.raises(SentloomError, match="the list: 20 pairs"):
        sentloom.fit(PAIRS[:20], tmp_path / "m", base=base, budget="2steps")
    assert not [*tmp_path.glob("m*")]
