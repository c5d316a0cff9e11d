"""Data tables show the numbers that they were given."""

from sentloom.data import read
from sentloom.data.hygiene.inspection import inspect
from sentloom.report import data_tables
from tests.report.printing import printed


def test_an_inspection_shows_lengths_labels_and_problems(tmp_path):
    (tmp_path / "a.csv").write_text("text,label\none two,x\none two,x\n<b>bold</b> three four five,y\n")
    text = printed(data_tables.inspection(inspect(read(tmp_path / "a.csv"))))
    assert "x 2, y 1" in text
    assert "duplicate rows" in text
    assert "a.csv, line 4" in text  # where the HTML is
