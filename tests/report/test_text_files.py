"""Text files: complete, and without cells that a spreadsheet would run."""

import csv
import io
import json

from hypothesis import given
from hypothesis import strategies as st

from sentloom.report.tables import csv_text, write_text
from sentloom.terminal import json_text


@given(
    st.lists(
        st.lists(st.text() | st.just("a\rb") | st.integers() | st.floats(allow_nan=False), min_size=1, max_size=4),
        max_size=4,
    )
)
def test_no_cell_is_a_formula_and_numbers_stay(rows):
    found = list(csv.reader(io.StringIO(csv_text(["head"], rows), newline="")))[1:]
    for cells, texts in zip(rows, found, strict=True):
        for cell, text in zip(cells, texts, strict=True):
            if isinstance(cell, str):
                assert text in (cell, f"'{cell}")
                assert not text.startswith(("=", "+", "-", "@"))
            else:
                assert text == str(cell)


def test_every_digit_is_in_the_json():
    assert json.loads(json_text({"é": 0.1 + 0.2})) == {"é": 0.30000000000000004}


def test_an_odd_file_name_does_not_stop_a_report(tmp_path):
    write_text(tmp_path / "a.md", "from \udcff.txt\n")
    assert (tmp_path / "a.md").read_text() == "from \ufffd.txt\n"
    assert [path.name for path in tmp_path.iterdir() if path.name != "scratch"] == ["a.md"]
