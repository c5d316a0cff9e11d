"""`sentloom fit` on data with some rows that cannot be used: they are left out and reported, or refused."""

import re

import pytest

from sentloom import fit
from sentloom.data.inputs import named
from sentloom.errors import DataError
from sentloom.fitting.inputs import InputSource, look
from tests.fitting import small_base

ROWS = 500


def with_empty_answers(path, rows):
    """500 pairs; those of these numbers, from 0, have an empty answer. Row 0 is in line 2."""
    pairs = [
        (sentence, "" if row in rows else small_base.other(sentence))
        for row, sentence in enumerate(small_base.sentences(ROWS, 1))
    ]
    return small_base.write_rows(path, "question answer", pairs)


@pytest.mark.long
def test_a_few_are_left_out_and_reported_everywhere(run, tmp_path):
    data = with_empty_answers(tmp_path / "faq.tsv", {3, 50, 400})
    done, result, output = run(data, budget="10steps", options=["--force"])
    assert done.returncode == 0, done.stdout + done.stderr
    why = f"3 empty cells in column 'answer' ({data}, line 5, 52, 402)"
    said = f"3 of 500 rows cannot be used and are left out: {why}"
    assert said in done.stdout
    (source,) = result.sources
    assert source.notes[0] == said
    assert source.rows.read == ROWS
    assert source.rows.left_out["empty cells in column 'answer'"] == 3
    folder = tmp_path / "model.fit"
    for text in (folder / "report.md", folder / "report.html", output / "README.md"):
        shown = re.sub(r"&#x27;|&#39;", "'", text.read_text("utf-8")).replace("\\", "")
        assert "3 of 500 rows cannot be used and are left out: 3 empty cells in column 'answer'" in shown, text.name
        assert "line 5, 52, 402" in shown, text.name


@pytest.mark.parametrize("rows", [{3}, {3, 50, 400}])
def test_strict_refuses_a_single_one(run, base, tmp_path, rows):
    data = with_empty_answers(tmp_path / "faq.tsv", rows)
    done, result, output = run(data, budget="60steps", options=["--strict"])
    assert done.returncode == 2
    assert "line 5: empty cell" in done.stderr
    assert f"sentloom check {data} -o" in done.stderr
    assert result is None
    assert not output.exists()
    with pytest.raises(DataError, match="line 5: empty cell"):
        fit(data, tmp_path / "model", base=str(base), budget="60steps", strict=True)


def test_more_than_five_percent_are_refused(run, tmp_path):
    data = with_empty_answers(tmp_path / "faq.tsv", set(range(100, 126)))
    done, result, output = run(data, budget="60steps")
    assert done.returncode == 2
    assert "26 of 500 rows are unusable, more than 5%" in done.stderr
    assert "--max-unusable 6%" in done.stderr
    (source,) = look([InputSource(named(data, max_unusable="6%"))])
    assert (len(source.data), source.name) == (474, f"{data}?max_unusable=0.06")
    assert f"sentloom check {data} -o" in done.stderr
    assert result is None
    assert not output.exists()
