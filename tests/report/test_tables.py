"""Tables: the numbers that were given stand in them, and text that looks like markup stays text."""

from rich.console import Console

from sentloom.data import read
from sentloom.hygiene.inspection import inspect
from sentloom.report import tables


def printed(part):
    console = Console(width=200, record=True, file=open("/dev/null", "w"))  # noqa: SIM115, PTH123
    console.print(part)
    console.file.close()
    return console.export_text()


def test_text_that_looks_like_markup_stays_text():
    text = printed(tables.answers("a [bold]query", [(0.5, "f.txt, line 1", "see [/red] and [link]")]))
    assert "a [bold]query" in text
    assert "see [/red] and [link]" in text


def test_long_answers_are_cut():
    text = printed(tables.answers("q", [(0.5, "f.txt, line 1", "x" * 400)]))
    assert "x" * 157 + "..." in text
    assert "x" * 158 not in text


def test_an_inspection_shows_lengths_labels_and_warnings(tmp_path):
    (tmp_path / "a.csv").write_text("text,label\none two,x\none two,x\n<b>bold</b> three four five,y\n")
    text = printed(tables.inspection(inspect(read(tmp_path / "a.csv"))))
    assert "x 2, y 1" in text
    assert "repeated rows" in text
    assert "a.csv, line 4" in text  # where the HTML stands
