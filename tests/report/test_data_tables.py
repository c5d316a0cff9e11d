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


def test_a_summary_says_how_many_rows_were_left_out_and_why(tmp_path):
    (tmp_path / "a.csv").write_text("question,answer\nwho,we\nwhen,\nhow,\n" + "where,here\n" * 7)
    data = read(tmp_path / "a.csv", max_unusable=0.5)
    text = " ".join(printed(data_tables.data_summary("a.csv", data)).split())
    assert "8 rows (question, answer)" in text
    assert "2 of 10 rows cannot be used and are left out: 2 empty cells in column 'answer'" in text
